"""Where more places meet than are followed, each of them is unknown by that name, and in every run the same is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import trees
import wide

from schema_patch.inference import work
from schema_patch.inference.index import tree
from schema_patch.inference.index.index import Index
from schema_patch.inference.index.store import Store

LIMIT = "one of more than 48 places that meet"


@pytest.mark.parametrize("shape", wide.SHAPES)
def test_a_few_places_are_followed(tmp_path: Path, shape: str) -> None:
    assert {kind for _, kind, _ in wide.said(tmp_path, shape, 10)} == {"written"}


@pytest.mark.parametrize("count", [60, 200])
@pytest.mark.parametrize("shape", wide.SHAPES)
def test_too_many_places_are_unknown_by_name(tmp_path: Path, shape: str, count: int) -> None:
    assert {(kind, reason) for _, kind, reason in wide.said(tmp_path, shape, count)} == {("unknown", LIMIT)}


def test_every_run_says_the_same(tmp_path: Path) -> None:
    script = Path(wide.__file__)
    runs = [
        subprocess.run(
            [sys.executable, str(script), str(tmp_path)],
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(3)
    ]
    assert runs[0].count("\n") == len(wide.SHAPES) * len(wide.COUNTS)
    assert runs[0] == runs[1] == runs[2]


DEEP = "struct S%d { S%d in; }; "
LIMITS = {
    "a lambda that is called again and again": (
        "auto set = [&](float* p) { p[0] = 1; }; " + "set(a.data_ptr<float>()); " * 14 + "set(b.data_ptr<float>());",
        "passed to a lambda that is called more than 12 times",
    ),
    "a macro that calls a macro, and so on": (
        "".join(f"\n#define M{n}(x) M{n + 1}(x)\n" for n in range(20)) + "\n#define M20(x) x[0] = 1\n"
        "M0(b.data_ptr<float>());",
        "passed to a_macro_that_grows_too_large, not in this tree",
    ),
    "many definitions of one name": (
        "pick(b.data_ptr<float>(), 0);",
        "passed to pick, which has more than 256 definitions",
    ),
}
OVERLOADS = "".join(f"struct T{n} {{}}; inline void pick(float* p, T{n}) {{}}\n" for n in range(300))


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_ends_in_unknown(tmp_path: Path, name: str) -> None:
    body, reason = LIMITS[name]
    code = (OVERLOADS if "pick" in body else "") + f"void op(at::Tensor a, at::Tensor b) {{ {body} }}"
    (found,) = trees.infer(trees.write(tmp_path, op_cpp=trees.source(code)))
    answer = found.of("b")
    assert answer is not None
    assert (answer.kind.value, answer.reason.partition(": ")[0]) == ("unknown", reason)


CIRCLE = """

void f(float* a, float* b, int n) { if (n) g(b, a, n - 1); }
void g(float* a, float* b, int n) { if (n) h(a, b, n - 1); else a[0] = 1; }
void h(float* a, float* b, int n) { if (n) f(a, b, n - 1); else b[0] = 1; }
"""


@pytest.mark.parametrize("order", ["fgh", "hgf", "gfh"])
def test_functions_that_call_each_other_are_told_alike_in_any_order(tmp_path: Path, order: str) -> None:
    whole = tree.read(trees.write(tmp_path, op_cpp=trees.source(CIRCLE)), Store("", on=False))
    index = Index(file.index for file in whole.files)
    summaries = work.inference_of(index).summaries
    told = {name: set(summaries.of(index.functions[name][0]).effects) for name in order}
    fresh = work.inference_of(index).summaries
    assert told == {name: set(fresh.of(index.functions[name][0]).effects) for name in "fgh"}
    assert all(told.values())
