"""check, apply and audit see the same operators in every form of registration, and agree on what becomes of each."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import registration_forms as forms
from hypothesis import given, settings
from hypothesis import strategies as st

from schema_patch.audit import apply, judge
from schema_patch.commands.console import Steps
from schema_patch.model import Verdict
from schema_patch.python import tree as python_tree
from schema_patch.schemas import rules, table
from schema_patch.schemas.annotate import Returns
from schema_patch.schemas.selection import ALL
from schema_patch.source import patch, tree

Seen = list[tuple[str, str]]


def audited(root: str) -> tuple[judge.Audit, Seen]:
    result = judge.audit([root], Steps(), cached=False)
    told = [(f.code, f.message) for f in result.findings if f.code not in ("SP101", "SP107")]
    assert (result.errors, told) == ([], [])
    return result, [(row.op, row.verdict.value) for row in result.checked]


def checked(root: str) -> list[str]:
    """The operators that `check` names; of none of them any table knows."""
    units, errors = tree.read([root], table.load())
    rows, findings, unread = tree.registered_in_python([root], table.load(), ALL)
    report = patch.report(units, errors=[*errors, *unread], python=findings, registered=rows)
    assert (report.findings, report.errors) == ((), ())
    assert {row.verdict for row in report.checked} <= {Verdict.UNKNOWN}
    return [row.op for row in report.checked]


def applied(root: str, result: judge.Audit) -> int:
    """Writes what `apply --infer` would; gives the number of schemas that it changes."""
    known = judge.inferred_table(table.load(), result)
    units, _ = tree.read([root], known)
    plans = [
        patch.annotate_all(units, known, Returns.ALIAS),
        apply.plan(root, known.audit.cpp),
    ]
    for plan in plans:
        assert plan.errors == []
        for file in plan.files:
            file.file.real.write_bytes(file.new)
    return sum(len(file.changes) for plan in plans for file in plan.files)


def agree(name: str, text: str, op: str = "op") -> None:
    with tempfile.TemporaryDirectory() as root:
        Path(root, name).write_text(text)
        result, before = audited(root)
        assert before == [(op, "wrong")], text
        assert checked(root) == [op], text
        assert applied(root, result) == 1, text
        assert audited(root)[1] == [(op, "right")], Path(root, name).read_text()
        assert checked(root) == [op]


@pytest.mark.parametrize("text", forms.TEXTS)
def test_every_text(text: str) -> None:
    agree("a.cpp", forms.source("TORCH_LIBRARY", text, "impl"))


@pytest.mark.parametrize("block", forms.BLOCKS)
def test_every_block(block: str) -> None:
    agree("a.cpp", forms.source(block, "a literal", "impl" if block != "a chain" else "a chain"))


@pytest.mark.parametrize("bind", forms.BINDS)
def test_every_binding(bind: str) -> None:
    agree("a.cpp", forms.source("TORCH_LIBRARY", "a literal", bind))


BLOCK = st.sampled_from([name for name in forms.BLOCKS if name != "a chain"])


@given(BLOCK, st.sampled_from(list(forms.TEXTS)), st.sampled_from(list(forms.BINDS)), st.sampled_from(["", "out"]))
@settings(max_examples=100, deadline=None)
def test_all_of_them_together(block: str, text: str, bind: str, overload: str) -> None:
    agree("a.cpp", forms.source(block, text, bind, overload), "op.out" if overload else "op")


@pytest.mark.parametrize("form", forms.PYTHON)
def test_every_form_of_python(form: str) -> None:
    agree("a.py", "import torch\n" + forms.PYTHON[form])


# What is not followed is told by each of them, and nothing is written.
UNTOLD = {
    "a counted loop": 'const char* kTable[] = {"op(Tensor x, Tensor out) -> ()"};\nTORCH_LIBRARY(planted, m) { for (int i = 0; i < 1; ++i) m.def(kTable[i], &op); }',
    "a table that grows": 'static std::vector<std::string> kTable = {"op(Tensor x, Tensor out) -> ()"};\nvoid more() { kTable.push_back(""); }\nTORCH_LIBRARY(planted, m) { for (auto& s : kTable) m.def(s, &op); }',
    "a loop over what is not known": 'const char* s = "op(Tensor x, Tensor out) -> ()";\nTORCH_LIBRARY(planted, m) { for (auto& s : schemas()) m.def(s, &op); }',
    "a row of a class with a base": 'struct Base { const char* a; };\nstruct Row : Base { const char* text; };\nstatic const Row kRows[] = {{"op(Tensor x, Tensor out) -> ()", "op(Tensor x, Tensor(a!) out) -> ()"}};\nTORCH_LIBRARY(planted, m) { for (auto& r : kRows) m.def(r.text, &op); }',
    "a row of one of two classes": 'namespace one { struct Row { const char *a, *text; }; }\nstruct Row { const char *text, *a; };\nstatic const Row kRows[] = {{"op(Tensor x, Tensor out) -> ()", "op(Tensor x, Tensor(a!) out) -> ()"}};\nTORCH_LIBRARY(planted, m) { for (auto& r : kRows) m.def(r.text, &op); }',
    "a row of a class with conditions": 'struct Row {\n#ifdef A\nconst char* a;\n#endif\nconst char* text; };\nstatic const Row kRows[] = {{"op(Tensor x, Tensor out) -> ()", "op(Tensor x, Tensor(a!) out) -> ()"}};\nTORCH_LIBRARY(planted, m) { for (auto& r : kRows) m.def(r.text, &op); }',
    "a row that is changed": 'struct Row { const char *text, *a; };\nstatic const Row kRows[] = {{"op(Tensor x, Tensor out) -> ()", "op(Tensor x, Tensor(a!) out) -> ()"}};\nvoid set() { kRows[0].text = ""; }\nTORCH_LIBRARY(planted, m) { for (auto& r : kRows) m.def(r.text, &op); }',
    "a loop that assigns": 'TORCH_LIBRARY(planted, m) { for (std::string s : {"op(Tensor x, Tensor out) -> ()"}) { s = more(s); m.def(s, &op); } }',
    "a loop that inserts": 'TORCH_LIBRARY(planted, m) { for (std::string s : {"op(Tensor x, Tensor out) -> ()"}) { s.insert(0, more()); m.def(s, &op); } }',
    "what a function gives": "TORCH_LIBRARY(planted, m) { m.def(schema(), &op); }",
    "two values": 'const char* s = "op(Tensor x, Tensor out) -> ()";\nvoid set() { s = ""; }\nTORCH_LIBRARY(planted, m) { m.def(s, &op); }',
}  # fmt: skip


@pytest.mark.parametrize("form", UNTOLD)
def test_what_is_not_followed_is_told(form: str, tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text(forms.KERNEL + UNTOLD[form])
    result = judge.audit([str(tmp_path)], Steps(), cached=False)
    units, _ = tree.read([str(tmp_path)], table.load())
    assert [f.code for f in result.findings] == [f.code for f in patch.report(units).findings] == ["SP002"]
    assert applied(str(tmp_path), result) == 0


@pytest.mark.parametrize(
    "other", ["static int n;", "static constexpr int n = 1;", "const char* n() const;", "Row* n();"]
)
def test_what_is_no_field_of_an_object_takes_no_place_of_one(other: str, tmp_path: Path) -> None:
    row = f"struct Row {{ {other} void (*f)(torch::Tensor, torch::Tensor); const char *text, *control; }};\n"
    rows = 'const Row kRows[] = {{&op, "op(Tensor x, Tensor out) -> ()", "op(Tensor x, Tensor(a!) out) -> ()"}};\n'
    loop = "TORCH_LIBRARY(planted, m) { for (auto& r : kRows) m.def(r.text, r.f); }\n"
    (tmp_path / "a.cpp").write_text(forms.KERNEL + row + rows + loop)
    assert audited(str(tmp_path))[1] == [("op", "wrong")]


def test_a_schema_that_torch_would_not_take_is_told_by_both(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text(forms.source("TORCH_LIBRARY", "a literal", "impl").replace("x, Tensor", "x Tensor"))
    result = judge.audit([str(tmp_path)], Steps(), cached=False)
    units, _ = tree.read([str(tmp_path)], table.load())
    assert [(f.code, f.location) for f in result.findings] == [
        (f.code, f.location) for f in patch.report(units).findings
    ]
    assert [f.code for f in result.findings] == ["SP001"]


def test_an_operator_of_the_table_that_python_registers_is_judged_by_it(tmp_path: Path) -> None:
    op, entry = next((name, e) for name, e in table.load().entries.items() if e.writes and e.returns in e.arguments)
    arguments = ", ".join(f"Tensor {name}" for name in entry.arguments)
    (tmp_path / "a.py").write_text(
        f'import torch\nlib = torch.library.Library("{table.load().namespaces[0]}", "DEF")\n'
        f'lib.define("{op}({arguments}) -> Tensor")\n'
    )
    rows, findings, _ = tree.registered_in_python([str(tmp_path)], table.load(), ALL)
    assert [(row.op, row.verdict) for row in rows] == [(op, Verdict.WRONG)]
    assert [finding.code for finding in findings] == ["SP101"]


@pytest.mark.parametrize(
    "form",
    [
        "@custom_op({name}, mutates_args={mutates})",
        "custom_op({name}, mutates_args={mutates})(f)",
        "custom_op({name}, f, mutates_args={mutates})",
    ],
)
@pytest.mark.parametrize("says", ["nothing", "less", "all", "more"])
def test_annotations_of_an_operator_of_the_table_are_judged_by_it(tmp_path: Path, form: str, says: str) -> None:
    """`custom_op` has no schema in the source: torch makes it of the function's parameters and `mutates_args`."""
    entries = table.load().entries.items()
    op, entry = next((name, e) for name, e in entries if len(e.writes) > 1 and e.returns not in e.arguments)
    spare = next(name for name in entry.arguments if name not in entry.writes)
    mutates = {"nothing": [], "less": entry.writes[:1], "all": entry.writes, "more": [*entry.writes, spare]}[says]
    use = form.format(name=repr(f"{table.load().namespaces[0]}::{op}"), mutates=tuple(mutates))
    function = f"def f({', '.join(f'{name}: torch.Tensor' for name in entry.arguments)}) -> None: ..."
    lines = [use, function] if use.startswith("@") else [function, use]
    (tmp_path / "a.py").write_text("\n".join(["import torch", "from torch.library import custom_op", *lines]))
    rows, findings, _ = tree.registered_in_python([str(tmp_path)], table.load(), ALL)
    assert [(row.op, row.reason == rules.NOT_IN_TABLE) for row in rows] == [(op, False)]
    codes = {"nothing": ["SP101"], "less": ["SP102"], "all": [], "more": ["SP106"]}
    assert [finding.code for finding in findings] == codes[says]


def test_a_schema_in_python_that_torch_would_not_take_is_told_by_both(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        'import torch, grammar\nlib = torch.library.Library("planted", "DEF")\nlib.define("op(Tensor x -> Tensor")\n'
        'grammar.define("f(x) = x")\n'
    )
    result = judge.audit([str(tmp_path)], Steps(), cached=False)
    _, findings, _ = tree.registered_in_python([str(tmp_path)], table.load(), ALL)
    for found in (result.findings, findings):
        assert [(f.code, f.op, f.location.line) for f in found] == [("SP001", "op", 3)]


def test_python_that_cannot_be_read_is_an_error_of_check(tmp_path: Path) -> None:
    (tmp_path / "a.py").symlink_to("/proc/self/mem")  # opens, and cannot be read
    _, _, errors = tree.registered_in_python([str(tmp_path)], table.load(), ALL)
    assert [str(error).partition(": ")[0] for error in errors] == [str(tmp_path / "a.py")]


def test_a_name_that_is_computed_in_part_is_no_name(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        'import os, torch\nlib = torch.library.Library("planted", "DEF")\ndef named(op): return f"{op}(Tensor x) -> ()"\n'
        'lib.define(named("told" if len(os.environ) else os.environ["X"]))\n'
    )
    rows, _, _ = tree.registered_in_python([str(tmp_path)], table.load(), ALL)
    assert rows == []


@pytest.mark.parametrize(
    "more", ["T.append(more())", "T.extend(more())", "T[0] = more()", "def f(): T.insert(0, more())", "T += more()"]
)
def test_a_table_of_python_that_grows_is_told(more: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        'import torch\nlib = torch.library.Library("planted", "DEF")\nT = ["op(Tensor x) -> ()"]\n'
        f"{more}\nfor text in T:\n    lib.define(text)\n"
    )
    (source,) = python_tree.gather([str(tmp_path)], lambda _: None).sources
    assert [place.line for place in source.untold] == [6]


def test_what_a_decorated_function_gives_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        'import torch\nfrom mine import changed\nlib = torch.library.Library("planted", "DEF")\n'
        '@changed\ndef text(): return "op(Tensor x) -> ()"\nlib.define(text())\n'
    )
    rows, _, _ = tree.registered_in_python([str(tmp_path)], table.load(), ALL)
    assert rows == []


ROWS = """#include <torch/library.h>
struct Row { const char* schema; int n; };
void fix(std::vector<Row>& r);
%sstd::vector<Row> rows = {{"first(Tensor x) -> ()", 1}, {"second(Tensor x) -> ()", 2}};
void init() { %s }
TORCH_LIBRARY(lib, m) { for (const auto& row : rows) m.def(row.schema); }
"""
LENT = [
    "for (auto& r : rows) r.schema = other();", "for (Row& r : rows) { if (r.n) r.schema = other(); }",
    "for (auto& [s, n] : rows) s = other();", "for (auto& r : rows) change(r);", "auto& r = rows[0]; r.schema = other();",
    "Row* r = &rows[1]; r->schema = other();", "auto it = rows.begin(); it->schema = other();",
    "rows.at(0).schema = other();", "rows.back().schema = other();", "fix(rows);", "std::swap(rows, others);",
]  # fmt: skip
KEPT = [
    "", "for (const auto& r : rows) puts(r.schema);", "for (auto& r : rows) puts(r.schema);",
    "for (auto r : rows) r.schema = other();", "int n = std::size(rows);",
]  # fmt: skip


@pytest.mark.parametrize("code", [*LENT, *KEPT])
def test_a_table_that_another_name_changes_is_told(code: str, tmp_path: Path) -> None:
    (tmp_path / "op.cpp").write_text(ROWS % ("", code))
    units, _ = tree.read([str(tmp_path)], table.load())
    report = patch.report(units)
    changed = code in LENT
    assert [finding.code for finding in report.findings] == (["SP002"] if changed else [])
    assert [row.op for row in report.checked] == ([] if changed else ["first", "second"])
    (tmp_path / "op.cpp").write_text(ROWS % ("static const ", code))
    units, _ = tree.read([str(tmp_path)], table.load())
    assert [row.op for row in patch.report(units).checked] == ["first", "second"]
