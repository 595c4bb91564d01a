"""What an earlier run told is believed as long as it holds: every sequence of changes gives what a first run gives."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import trees
from hypothesis import given, settings
from hypothesis import strategies as st

from schema_patch.audit import judge
from schema_patch.commands.console import Steps
from schema_patch.inference import infer, work
from schema_patch.inference.index import asked, index
from schema_patch.inference.index.scan import FileIndex
from schema_patch.schemas.inferred import Inferred

# What each file may hold: all the ways in which one file's definitions decide what another one's code means.
FILES = {
    "op.cpp": [
        trees.source(f"#include <all>\nvoid op(at::Tensor a, at::Tensor b) {{ {body} }}")
        for body in ("step(a, b);", "Worker w; w.run(a, b);", "PUT(b)", "worker_stub(at::kCPU, a, b);", "Alias w; w.run(a, b);")
    ]
    + [trees.source("void op(at::Tensor a, at::Tensor b) { step(a, b); }").replace("&op)", "[](at::Tensor a, at::Tensor b) { step(b, a); })")],
    "steps.cpp": ["void step(at::Tensor x, at::Tensor y) { y.zero_(); }", "void step(at::Tensor x, at::Tensor y) { deeper(x, y); }",
                  "\n\nvoid step(at::Tensor x, at::Tensor y) { y.zero_(); }", "// nothing",
                  "void step(at::Tensor x, at::Tensor y) { table[0](x, y); }\nF table[] = {deeper};", "void step(at::Tensor x, at::Tensor y) { table[0](x, y); }\nF table[] = {two};",
                  "#define PUT(t) x.zero_();\n#define PUT(t) t.zero_();\nvoid step(at::Tensor x, at::Tensor y) { PUT(y) }", "#define PUT(t) x.zero_();\n\nvoid step(at::Tensor x, at::Tensor y) { PUT(y) }\n#define PUT(t) t.zero_();"],
    "other/steps.cpp": ["void step(at::Tensor x, at::Tensor y) { x.zero_(); }", "void deeper(at::Tensor x, at::Tensor y) { PUT(x) }", "int step;"],
    "worker.h": ["struct Worker { void run(at::Tensor x, at::Tensor y) { x.zero_(); } };", "struct Base { void run(at::Tensor x, at::Tensor y) { y.zero_(); } };\nstruct Worker : public Base {};",
                 "struct Other { void run(at::Tensor x, at::Tensor y) { step(x, y); } };\nusing Worker = Other;"],
    "macros.h": ["#define PUT(t) t.zero_();", "#define PUT(t)", "#define PUT(t) step(t, t);\nusing Alias = Worker;", "using Alias = Other;"],
    "stub.cpp": ["void k(at::Tensor x, at::Tensor y) { y.zero_(); }\nREGISTER_DISPATCH(worker_stub, &k);", "REGISTER_DISPATCH(worker_stub, &step);",
                 'TORCH_LIBRARY(more, m) { m.def("two(Tensor a) -> ()"); m.impl("two", torch::kCPU, &two); }\nvoid two(at::Tensor a) { PUT(a) }'],
    "late.cpp": ["void deeper(at::Tensor x, at::Tensor y) { x.copy_(y); }", "void call(at::Tensor x) { c10::Dispatcher::singleton().findSchemaOrThrow(\"planted::op\", \"\").typed<F>().call(x, x); }\n"
                 'TORCH_LIBRARY(more, m) { m.def("three(Tensor a) -> ()", &call); }'],
}  # fmt: skip
CHANGES = st.lists(
    st.sampled_from([(name, text) for name, texts in FILES.items() for text in (*texts, None)]), min_size=3, max_size=9
)


def audited(root: Path, *, cached: bool) -> list[tuple[str, Inferred]]:
    result = judge.audit([str(root)], Steps(), cached=cached)
    return [(row.operator.op, row.inferred) for row in result.rows]


def differs(changes: list[tuple[str, str | None]], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a cached run ever says something else than one without a cache, as files come, change and go."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_CACHE_HOME", f"{folder}/cache")
        root = Path(folder, "code")
        for name, texts in FILES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(texts[0])
        for name, text in [*changes, ("op.cpp", FILES["op.cpp"][0])]:
            if audited(root, cached=True) != audited(root, cached=False):
                return True
            if text is None:
                (root / name).unlink(missing_ok=True)
            else:
                (root / name).write_text(text)
        return audited(root, cached=True) != audited(root, cached=False)


@given(CHANGES)
@settings(max_examples=60, deadline=None)
def test_a_cached_run_says_what_a_first_run_says(changes: list[tuple[str, str | None]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        assert not differs(changes, patch)


# Each takes one reason to ask again away.
DEFECTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a function's own names": lambda p: p.setattr(infer.Summaries, "names", lambda self: self.called.pop(None, set()) and set()),
    "a file as a whole": lambda p: p.setattr(index.Index, "whole", lambda self, path: self.text(path).masked),
    "a macro's place": lambda p: p.setattr(work, "meanings", lambda one: _without_places(one)),
    "what a cache gives": lambda p: p.setattr(asked.Asked, "names", property(lambda self: set(), lambda self, _: None), raising=False),
}  # fmt: skip
MEANINGS = work.meanings
TELLING = [
    ("steps.cpp", FILES["steps.cpp"][1]),
    ("late.cpp", None),
    ("macros.h", FILES["macros.h"][1]),
    ("other/steps.cpp", FILES["other/steps.cpp"][1]),
    ("steps.cpp", FILES["steps.cpp"][3]),
    ("steps.cpp", FILES["steps.cpp"][2]),
    *(("steps.cpp", text) for text in FILES["steps.cpp"][4:]),
]


def _without_places(index: FileIndex) -> dict[str, list[object]]:
    functions = (replace(f, whole=(f.whole[0], 0, f.whole[2])) for f in index.functions)
    return MEANINGS(replace(index, functions=tuple(functions)))


@pytest.mark.parametrize("name", DEFECTS)
def test_a_reason_that_is_forgotten_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not differs(TELLING, monkeypatch)
    DEFECTS[name](monkeypatch)
    assert differs(TELLING, monkeypatch)


def test_only_what_a_change_may_concern_is_inferred_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "code"
    root.mkdir()
    for number in range(5):
        (root / f"help{number}.cpp").write_text(f"void help_{number}(at::Tensor t) {{ t.zero_(); }}\n")
        text = trees.source(f"void op_{number}(at::Tensor a, at::Tensor b) {{ help_{number}(b); }}")
        (root / f"op{number}.cpp").write_text(text.replace('"op', f'"op_{number}').replace("&op", f"&op_{number}"))
    asked_again: list[str] = []
    real = infer.Inference.told
    monkeypatch.setattr(infer.Inference, "told", lambda self, one: asked_again.append(one.op) or real(self, one))
    audited(root, cached=True)
    assert len(asked_again) == 5
    for name, before, after, again in (
        ("op3.cpp", "", "// touched\nvoid nobody_asks() {}\n", ["op_3"]),
        ("help2.cpp", "", "// touched\n", []),  # what stands behind a function that is read has no say
        ("help1.cpp", "\n", "", ["op_1"]),  # its line is told
    ):
        asked_again.clear()
        (root / name).write_text(before + (root / name).read_text() + after)
        assert audited(root, cached=True) == audited(root, cached=False)
        assert asked_again[:-5] == again
