"""`apply --infer` on Python registrations: byte-exact edits in the literal's own style, told where it cannot be edited."""

from __future__ import annotations

import ast
import importlib.util
import textwrap
from pathlib import Path

import pytest
import trees
from hypothesis import given
from hypothesis import strategies as st

from schema_patch.audit import apply
from schema_patch.audit.python import CppFacts
from schema_patch.commands import main
from schema_patch.model import Span
from schema_patch.python import edits as pyedits
from schema_patch.python import literals, registrations
from schema_patch.text import edits
from schema_patch.text.mapped import Unreadable

BODY = "def op(x: Tensor, out: Tensor, more: Tensor) -> None:\n    out.copy_(x)\n    more.zero_()\n"
LIBRARY = 'lib = torch.library.Library("lib", "DEF")\n'
BOUND = BODY + 'lib.impl("op", op, "CPU")\n'

# What stands in the file -> what stands there afterwards; the rest of the file is the same bytes.
LITERALS = {
    "()": '("out", "more")',
    "[]": '["out", "more"]',
    "{}": '{"out", "more"}',
    "[  # none yet\n]": '["out", "more"  # none yet\n]',
    '("out",)': '("out", "more",)',
    "['out']": "['out', 'more']",
    '{"out"}': '{"out", "more"}',
    '[\n    "out",  # first\n]': '[\n    "out",\n    "more",  # first\n]',
    "[\r\n\t'out'\r\n]": "[\r\n\t'out',\r\n\t'more'\r\n]",
    '["o" "ut"]': '["o" "ut", "more"]',
}
WRAPPED = {
    'op_name="op", op_func=op, mutates_args=[], fake_impl=f': 'op_name="op", op_func=op, mutates_args=["out", "more"], fake_impl=f',
    '"op", op, [], f': '"op", op, ["out", "more"], f',
    'op_name="op", op_func=op, fake_impl=(f)': 'op_name="op", op_func=op, mutates_args=["out", "more"], fake_impl=(f)',
    '\n    op_name="op",\n    op_func=op,\n': '\n    op_name="op",\n    mutates_args=["out", "more"],\n    op_func=op,\n',
}  # fmt: skip
SCHEMAS = {
    '"op(Tensor x, Tensor out, Tensor more) -> ()"': '"op(Tensor x, Tensor(a!) out, Tensor(b!) more) -> ()"',
    "'op(Tensor x, Tensor! out, Tensor more) -> ()'": "'op(Tensor x, Tensor! out, Tensor! more) -> ()'",
    '"op(Tensor x, "\n    "Tensor out, Ten"  # split\n    "sor more) -> ()"': '"op(Tensor x, "\n    "Tensor(a!) out, Ten"  # split\n    "sor(b!) more) -> ()"',
    '"""op(\n  Tensor x,\r\n  Tensor out, Tensor[]? more\n) -> ()"""': '"""op(\n  Tensor x,\r\n  Tensor(a!) out, Tensor(b!)[]? more\n) -> ()"""',
    'r"op(Tensor x, Tensor(c) out, " + (u"Tensor more) -> ()")': 'r"op(Tensor x, Tensor(c!) out, " + (u"Tensor(a!) more) -> ()")',
    '"op(Tensor x,\\\n Tensor out, Tensor more)\\t-> ()"': '"op(Tensor x,\\\n Tensor(a!) out, Tensor(b!) more)\\t-> ()"',
}  # fmt: skip


def run(folder: Path, *arguments: str) -> int:
    return main.main(["apply", "--infer", *arguments, str(folder)])


def applied(tmp_path: Path, before: str) -> str:
    """The file after `apply --infer`, which a second run leaves alone and `revert` takes back."""
    path = tmp_path / "ops.py"
    path.write_bytes(before.encode())
    assert run(tmp_path, "--diff") == 1
    assert path.read_bytes() == before.encode()
    assert run(tmp_path) == 0
    after = path.read_bytes()
    assert run(tmp_path) == 0
    assert path.read_bytes() == after
    assert main.main(["revert", str(tmp_path)]) == 0
    assert path.read_bytes() == before.encode()
    return after.decode()


@pytest.fixture(autouse=True)
def _no_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.mark.parametrize("literal", LITERALS)
@pytest.mark.parametrize("kind", ["torch.library.custom_op", "triton_op"])
def test_mutates_args_keeps_its_style(tmp_path: Path, literal: str, kind: str) -> None:
    text = f'\ufeffimport torch  # é\n@{kind}("lib::op", mutates_args=%s)\n{BODY}'
    assert applied(tmp_path, text.replace("%s", literal)) == text.replace("%s", LITERALS[literal])


@pytest.mark.parametrize("call", WRAPPED)
def test_the_wrapper(tmp_path: Path, call: str) -> None:
    text = f"{BODY}direct_register_custom_op(%s)\n"
    assert applied(tmp_path, text.replace("%s", call)) == text.replace("%s", WRAPPED[call])


@pytest.mark.parametrize("literal", SCHEMAS)
@pytest.mark.parametrize("style", ["Library", "torch.library"])
def test_a_schema_string_gets_what_one_in_c_plus_plus_gets(tmp_path: Path, literal: str, style: str) -> None:
    text = f"{LIBRARY}lib.define(%s)\n{BOUND}"
    before, after = literal, SCHEMAS[literal]
    if style == "torch.library":
        text = f'torch.library.define("lib::op", %s)\n@torch.library.impl("lib::op", "cpu")\n{BODY}'
        before, after = (part.replace("op(", "(", 1) for part in (before, after))
    assert applied(tmp_path, text.replace("%s", before)) == text.replace("%s", after)


BY_HAND = {
    "a name": '@custom_op("lib::op", mutates_args=NAMES)\n' + BODY,
    "a call": '@custom_op("lib::op", mutates_args=tuple(["out"]))\n' + BODY,
    "spread": '@custom_op("lib::op", mutates_args=[*NAMES])\n' + BODY,
    "none": '@custom_op("lib::op")\n' + BODY,
    "beside a schema": '@custom_op("lib::op", mutates_args=(), schema="(Tensor x, Tensor out, Tensor more) -> ()")\n' + BODY,
    "keywords from elsewhere": f'{BODY}direct_register_custom_op(op_name="op", op_func=op, **more)\n',
    "no tensor": '@custom_op("lib::op", mutates_args=())\n' + BODY.replace("more: Tensor", "more: Buffer"),
    "added": f'{LIBRARY}lib.define(f"op(Tensor x, Tensor out, Tensor more)" + " -> ()")\n{BOUND}',
    "a name of its own": f'{LIBRARY}lib.define("op(Tensor x, Tensor \\x6fut, Tensor more) -> ()")\n{BOUND}',
}  # fmt: skip


@pytest.mark.parametrize("case", BY_HAND)
def test_what_cannot_be_edited_is_told_and_left(tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    (tmp_path / "ops.py").write_text(BY_HAND[case])
    code = run(tmp_path)
    assert (tmp_path / "ops.py").read_text() == BY_HAND[case]
    shown = capsys.readouterr()
    assert code in (1, 2)
    assert "by hand" in shown.out
    assert "op:" in shown.out


def test_only_the_operators_asked_for(tmp_path: Path) -> None:
    one = '@custom_op("lib::op", mutates_args=())\n' + BODY
    two = one.replace("op(x", "other(x").replace("lib::op", "lib::other")
    (tmp_path / "ops.py").write_text(one + two)
    assert run(tmp_path, "--ops", "other") == 0
    assert (tmp_path / "ops.py").read_text() == one + two.replace("()", '("out", "more")', 1)


def test_a_link_out_of_the_tree_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "ops.py").write_text('@custom_op("lib::op", mutates_args=())\n' + BODY)
    (tmp_path / "tree" / "ops.py").symlink_to(tmp_path / "ops.py")
    plan = apply.plan(str(tmp_path / "tree"), CppFacts())
    assert plan.files == []
    assert "leads out of the tree" in str(plan.errors[0])


def test_an_edit_that_says_something_else_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ops.py").write_text('@custom_op("lib::op", mutates_args=())\n' + BODY)
    right = pyedits.named
    monkeypatch.setattr(pyedits, "named", lambda data, where, names: right(data, where, names[:1]))
    plan = apply.plan(str(tmp_path), CppFacts())
    assert plan.files == []
    assert "would not declare what was meant" in str(plan.errors[0])


def test_torch_reads_what_was_written(tmp_path: Path) -> None:
    """The oracle: torch's own schema of the operator, before and after."""
    torch = pytest.importorskip("torch")
    text = textwrap.dedent("""
        import torch
        from torch import Tensor
        from torch.library import custom_op
        @custom_op("schema_kit_%s::op", mutates_args=())
    """)
    before = text + BODY + LIBRARY.replace('"lib"', '"schema_kit_%s"')
    before += 'lib.define("two(Tensor x, Tensor out) -> ()")\ndef two(x, out):\n    out.copy_(x)\nlib.impl("two", two, "CPU")\n'
    path = tmp_path / "ops.py"
    for name in ("before", "after"):
        path.write_text(before.replace("%s", name))
        if name == "after":
            assert run(tmp_path) == 0
        spec = importlib.util.spec_from_file_location(f"schema_kit_{name}", path)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for op in ("op", "two"):
            schema = getattr(getattr(torch.ops, f"schema_kit_{name}"), op).default._schema
            written = [a.name for a in schema.arguments if a.alias_info and a.alias_info.is_write]
            assert written == ([] if name == "before" else ["out", "more"][: 2 if op == "op" else 1])


quoted = st.sampled_from(["'%s'", '"%s"', '"""%s"""', "r'%s'"])
names = st.lists(st.from_regex(r"[a-z_]{1,6}", fullmatch=True), unique=True, max_size=4)


@given(names, st.data())
def test_names_are_added_and_nothing_else_changes(present: list[str], data: st.DataObject) -> None:
    more = data.draw(names.filter(lambda found: found and not set(found) & set(present)))
    opening, closing = data.draw(st.sampled_from(["[]", "()", "{}"]))
    gap = st.sampled_from(["", " ", "\n    ", "\r\n\t", "  # why, ( [\n  "])
    items = [data.draw(gap) + data.draw(quoted) % name + data.draw(gap) for name in present]
    comma = "," if items and (data.draw(st.booleans()) or (opening == "(" and len(items) == 1)) else ""
    source = (
        f"@custom_op('n::o', mutates_args={opening}{','.join(items)}{comma}{data.draw(gap)}{closing})\ndef o(): ...\n"
    )
    before = registrations.read(source.encode(), "o.py")
    assert before
    (operator,) = before.operators
    assert operator.mutates == tuple(present)
    made = pyedits.named(source.encode(), operator.mutates_span, more)
    assert all(edit.span.start == edit.span.end for edit in made)
    after = registrations.read(edits.apply(source.encode(), made), "o.py")
    assert after
    assert after.operators[0].mutates == (*present, *more)
    assert after.operators[0].declares == (*present, *more)


@given(
    st.lists(st.tuples(quoted, st.text(st.sampled_from("ab(!) \t#,"), max_size=5)), min_size=1, max_size=4), st.data()
)
def test_each_character_of_a_string_is_found_in_the_file(pieces: list[tuple[str, str]], data: st.DataObject) -> None:
    between = st.sampled_from([" ", "\n", "  # 'x'\n", " + ", " \\\n"])
    source = "(" + data.draw(between).join(form % text for form, text in pieces) + ")"
    try:
        expected = eval(compile(ast.parse(source, mode="eval"), "", "eval"))
    except SyntaxError:
        return
    if not isinstance(expected, str):
        return
    found = literals.read(source.encode(), Span(0, len(source)), expected)
    assert "".join(source[span.start : span.end] for span in found.spans) == expected == found.text


@pytest.mark.parametrize(
    "source", ['"é"', "f'a'", "a", '"a" b', "'\\x41'", "'\\N{DASH}'", "b'a'", "'a' 'b", "'a' % 'b'"]
)
def test_a_string_that_is_not_read(source: str) -> None:
    with pytest.raises(Unreadable):
        literals.read(source.encode(), Span(0, len(source.encode())), "a")


def test_c_plus_plus_and_python_in_one_run(tmp_path: Path) -> None:
    """A file that both registers an operator and uses a result that is gone is written twice, and reverted whole."""
    before = """import torch
from torch import Tensor
def wrapper(a, b):
    return torch.ops.planted.op(a, b)
@torch.library.custom_op("lib::mine", mutates_args=())
def mine(a: Tensor, b: Tensor) -> None:
    torch.ops.planted.op(a, b)
"""
    (tmp_path / "ops.py").write_text(before)
    code = "at::Tensor op(const at::Tensor& a, at::Tensor& b) { b.copy_(a); return b; }"
    trees.write(tmp_path, op_cpp=trees.source(code, returns="Tensor"))
    assert run(tmp_path, "--returns", "void") == 0
    after = before.replace("return torch.ops.planted.op(a, b)", "torch.ops.planted.op(a, b)\n    return b")
    assert (tmp_path / "ops.py").read_text() == after.replace("mutates_args=()", 'mutates_args=("b",)')
    assert main.main(["revert", str(tmp_path)]) == 0
    assert (tmp_path / "ops.py").read_text() == before
