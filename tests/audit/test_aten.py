"""What ATen's functions give back or write, held against torch's own list of them: none that shares memory is lost."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import trees

from schema_patch.python import flow

INNER = ("_test_", "_cudnn", "cudnn", "mkldnn", "_mkldnn", "_mps", "mps", "miopen", "lstm_mps", "_lstm_mps")
# torch's lists and dictionaries, and what only TorchScript has.
SCRIPT = frozenset("__getitem__ as_tensor get keys values to_here _unwrap_optional items copy setdefault pop".split())
# Not annotated, and found by running them: what they give is a view of what they were given.
UNANNOTATED = frozenset(
    "atleast_1d atleast_2d atleast_3d broadcast_tensors meshgrid unsafe_chunk unsafe_split unsafe_split_with_sizes".split()
)


def schemas() -> Iterator[tuple[str, object]]:
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::")
        if name != schema.name and name not in SCRIPT and not name.startswith(INNER):
            yield name, schema


def sharing() -> list[str]:
    """The functions of which torch says that a result may share memory with an argument, and that write nothing."""
    found = set(UNANNOTATED)
    for name, schema in schemas():
        writes = any(a.alias_info and a.alias_info.is_write for a in schema.arguments)
        if not writes and any(r.alias_info for r in schema.returns):
            found.add(name)
    return sorted(found)


def several() -> dict[str, int]:
    """The functions whose `_out` form writes more than one argument, and how many."""
    found: dict[str, int] = {}
    for name, schema in schemas():
        outs = sum(argument.is_out for argument in schema.arguments)
        if outs > 1:
            found[name] = max(outs, found.get(name, 0))
    return found


def called(folder: Path, lines: list[str]) -> list[str]:
    """The lines after which `b` is called read only."""
    return [
        line
        for line in lines
        if trees.answers(folder, f"void op(at::Tensor a, at::Tensor b) {{ {line} }}")["b"] == "read only"
    ]


def test_what_shares_memory_is_never_a_new_tensor(tmp_path: Path) -> None:
    names = sharing()
    assert len(names) > 80
    functions = [f"auto t = at::{name}(b); t.zero_();" for name in names]
    methods = [f"auto t = b.{name}(); t.zero_();" for name in names if name not in UNANNOTATED]
    assert called(tmp_path, functions + methods) == []


def test_every_output_is_seen(tmp_path: Path) -> None:
    found = several()
    assert len(found) > 80
    lines = []
    for name, count in found.items():
        for place in range(count):
            outs = ["b" if number == place else "x" for number in range(count)]
            lines += [f"at::{name}_out({', '.join([*outs, 'a'])});", f"at::{name}_outf({', '.join(['a', *outs])});"]
    assert called(tmp_path, lines) == []


def test_a_new_tensor_is_none_of_ours(tmp_path: Path) -> None:
    """What torch copies stays a read, so that the two tests above do not pass by calling everything unknown."""
    lines = [f"auto t = at::{name}(b); t.zero_();" for name in ("add", "sum", "mm", "relu", "cat", "sort")]
    assert called(tmp_path, lines) == lines


@pytest.mark.parametrize("form", ["t = b.{}()", "t = torch.{}(b)", "t = torch.ops.aten.{}(b)"])
def test_python_loses_none_either(form: str) -> None:
    lost = []
    for name in sharing():
        source = f"def op(a, b):\n    {form.format(name)}\n    t.zero_()\n    t[0].zero_()\n"
        (function,) = ast.parse(source).body
        assert isinstance(function, ast.FunctionDef)
        answers, _ = flow.read(function, "op.py", {}, {})
        lost += [name] if answers["b"].kind.value == "read only" else []
    assert lost == []
