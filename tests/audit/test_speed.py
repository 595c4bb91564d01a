"""How much work an audit does, counted, not timed: which files are read how closely. Times: benchmarks/audit_speed.py."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import pytest
import trees
from hypothesis import given, settings
from hypothesis import strategies as st

from schema_patch.audit import judge
from schema_patch.commands.console import Steps
from schema_patch.cpp import registrations as cpp
from schema_patch.inference import work
from schema_patch.inference.engine import summaries
from schema_patch.inference.index import scan as scanning
from schema_patch.inference.index import tree
from schema_patch.inference.index.mask import mask
from schema_patch.inference.index.scan import FileIndex, scan
from schema_patch.python import registrations as pyregs
from schema_patch.text.collector import without_collector

MATTER = 3
HELPER = "#include <torch/torch.h>\nvoid helper_%d(at::Tensor& t) { %s }\n"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each kind of work is done, all of it in this process."""
    counts: Counter[str] = Counter()

    def count(module: object, name: str, label: str) -> None:
        real = getattr(module, name)

        def counting(*arguments: object) -> object:
            counts[label] += 1
            return real(*arguments)

        monkeypatch.setattr(module, name, counting)

    for module in (tree, work):
        monkeypatch.setattr(module, "processes", lambda: 1)
    count(tree, "scan", "scanned")
    count(cpp, "read", "registrations read")
    count(summaries, "parse", "functions parsed")
    return counts


def helpers(folder: Path, count: int) -> None:
    """A chain of MATTER functions that an operator calls, among many that nobody does."""
    for number in range(count):
        call = f"helper_{number + 1}(t);" if number < MATTER - 1 else "t.zero_();"
        (folder / f"h{number}.cpp").write_text(HELPER % (number, call))


@pytest.mark.parametrize("count", [20, 200])
def test_only_what_registers_and_what_calls_lead_to_is_parsed(
    tmp_path: Path, counted: Counter[str], count: int
) -> None:
    helpers(tmp_path, count)
    trees.write(tmp_path, op_cpp=trees.source("void op(at::Tensor a, at::Tensor b) { helper_0(b); }"))
    result = judge.audit([str(tmp_path)], Steps(), cached=False)
    assert [finding.code for finding in result.findings] == ["SP101"]
    assert counted == {"scanned": count + 1, "registrations read": 1, "functions parsed": MATTER + 1}


def test_a_tree_that_registers_nothing_is_not_even_scanned(tmp_path: Path, counted: Counter[str]) -> None:
    helpers(tmp_path, 50)
    result = judge.audit([str(tmp_path)], Steps(), cached=False)
    assert (result.checked, result.errors) == ([], [])
    assert counted == {}


def test_what_is_remembered_is_not_read_again(
    tmp_path: Path, counted: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    code = tmp_path / "code"
    code.mkdir()
    helpers(code, 10)
    trees.write(code, op_cpp=trees.source("void op(at::Tensor a, at::Tensor b) { helper_0(b); }"))
    first = judge.audit([str(code)], Steps())
    counted.clear()
    again = judge.audit([str(code)], Steps())
    assert counted == {}
    assert again.findings == first.findings
    (code / "h9.cpp").write_text(HELPER % (9, ""))
    judge.audit([str(code)], Steps())
    assert counted["scanned"] == 1


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("from vllm import _custom_ops as ops", False),
        ("import x.my_custom_ops", False),
        ("@torch.library.custom_op('n::o', mutates_args=())", True),
        ("direct_register_custom_op(op_name='o')", True),
        ("@triton_op ('n::o')", True),
        ("lib.define('o() -> ()')", True),
        ("torch.library.register_fake('n::o')", True),
        ("lib._register_fake('o', f)", True),
    ],
)
def test_only_python_that_may_register_is_parsed(line: str, hint: bool) -> None:
    assert pyregs.may_register(line.encode()) is hint


@pytest.mark.parametrize("before", [True, False])
def test_the_collector_is_off_within_and_as_it_was_behind(before: bool) -> None:
    (gc.enable if before else gc.disable)()
    try:
        with without_collector():
            assert not gc.isenabled()
        assert gc.isenabled() is before
    finally:
        gc.enable()


def names(found: FileIndex) -> list[tuple[str, tuple[str, ...]]]:
    return [(function.name, function.scope) for function in found.functions]


# The fast way to a name, and the places where the slow one must be taken.
HEADS = {
    "void f": [("f", ())],
    "void A::f": [("f", ("A",))],
    "A :: B\n::\tf": [("f", ("A", "B"))],
    "A::~A": [("~A", ("A",))],
    "std::vector<int> f": [("f", ())],
    "void A<T>::f": [("f", ("A",))],
    "template <> void f<int>": [("f", ())],
    "A::operator bool": [("operatorbool", ("A",))],
    "bool A::operator<": [("operator<", ("A",))],
    "void A::operator()": [("operator()", ("A",))],
    "void *operator new": [("operatornew", ())],
    "void my_operator": [("my_operator", ())],
}


@pytest.mark.parametrize("head", HEADS)
def test_the_name_of_a_definition(head: str) -> None:
    assert names(scan(f"{head}(int x) {{ }}\n".encode(), "a.cpp")) == HEADS[head]


@given(st.lists(st.sampled_from([*"<>~:&*=, \n", "::", "a", "b1", "operator", "template", "é", "()"]), max_size=12))
@settings(max_examples=500)
def test_the_fast_way_to_a_name_is_the_slow_one(pieces: list[str]) -> None:
    before = "".join(pieces)
    slow = scanning.NAME_BEFORE.search(before)
    assert scanning.name_before(before) == (slow and (slow[1], slow[2]))


@given(st.text(st.sampled_from("ab(){}#\n\\\"/*'R xif")))
def test_a_masked_text_keeps_its_length_and_its_lines(text: str) -> None:
    masked, _ = mask(text.encode())
    assert len(masked) == len(text)
    assert [at for at, char in enumerate(masked) if char == "\n"] == [
        at for at, char in enumerate(text) if char == "\n"
    ]
    assert all(one in (other, " ") for one, other in zip(masked, text, strict=True) if other != "R" and one != '"')


def test_what_is_no_comment_and_no_literal_stays() -> None:
    text = 'int a = 1\'000; // c\\\nd\nR"x(")x" LR "s" auto b = 0xF\'F;\n  #define M(x) #x\nint c; # not first\n'
    found = scan((text + "void f() {}\n").encode(), "a.cpp")
    assert [macro.name for macro in found.macros] == ["M"]
    assert names(found) == [("f", ())]
