"""Writes registration.cpp, the only C++ with schemas: from the typed functions of esimd_ops/ops and the operator table.

A function there is the signature of its operator, written once; the table says what of it is written; ops.h declares
what does the work, under the same name without `esimd_`, and torch refuses to load a schema whose types differ from it.
Runs in setup.py, before anything is installed: the standard library alone.
"""

from __future__ import annotations

import ast
import string
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TYPES = ("Tensor", "int", "float", "bool")  # alike in Python and in schemas
WRITTEN = "build/registration.cpp"

TEXT = """\
// Written by csrc/registration.py: not to be edited.
//
// An operator that writes its arguments says so and returns nothing: the form that torch.compile can trace. The host
// functions return the caller's buffer, as the originals do, and drop_return leaves it behind.
#include <torch/library.h>

#include "autograd.h"
#include "ops.h"
#include "schema_patch/source/drop_return.h"  // the wrapper that the patcher writes into other people's registrations

TORCH_LIBRARY(esimd_ops, m) {{
{definitions}
}}

// One function for both: it runs where its tensors are.
TORCH_LIBRARY_IMPL(esimd_ops, CPU, m) {{
{implementations}
}}

TORCH_LIBRARY_IMPL(esimd_ops, XPU, m) {{
{implementations}
}}

TORCH_LIBRARY_IMPL(esimd_ops, Autograd, m) {{
{autograd}
}}
"""


def text(root: Path) -> str:
    """What registration.cpp holds. Raises ValueError where a function and the table disagree."""
    table = tomllib.loads((root / "schema_patch/schemas/policies/esimd.toml").read_text("utf-8"))["operators"]
    functions = {function.name: function for function in declared(root)}
    if functions.keys() != table.keys():
        raise ValueError(f"in esimd_ops/ops or in the table, not in both: {sorted(functions.keys() ^ table.keys())}")
    schemas = {name: schema(function, table[name]) for name, function in functions.items()}
    return TEXT.format(
        definitions="\n".join(f'  m.def("{words}");' for words in schemas.values()),
        implementations="\n".join(
            f'  m.impl("{name}", drop_return<&esimd_ops::{name.removeprefix("esimd_")}>);' for name in schemas
        ),
        autograd="\n".join(
            f'  m.impl("{name}", torch::CppFunction::makeFromBoxedFunction<&esimd_ops::without_derivative>());'
            for name in schemas
        ),
    )


def declared(root: Path) -> Iterator[ast.FunctionDef]:
    """The functions of esimd_ops/ops, file by file; one that is `@like(other)` with the arguments of that one."""
    for path in sorted((root / "esimd_ops/ops").glob("*.py")):
        functions = {n.name: n for n in ast.parse(path.read_text("utf-8")).body if isinstance(n, ast.FunctionDef)}
        for function in functions.values():
            for decorator in map(ast.unparse, function.decorator_list):
                if decorator.startswith("like("):
                    function.args = functions[decorator[5:-1]].args
                if decorator == "operator" or decorator.startswith("like("):
                    yield function


def schema(function: ast.FunctionDef, entry: dict[str, Any]) -> str:
    """The schema that tells what is written and returns nothing."""
    name, letters, words = function.name, iter(string.ascii_lowercase), []
    if [argument.arg for argument in function.args.args] != entry["arguments"]:
        raise ValueError(f"{name}: the table has other arguments than esimd_ops/ops")
    if (entry["returns"] in entry["arguments"]) != (ast.unparse(function.returns or ast.Constant(None)) == "Tensor"):
        raise ValueError(f"{name}: returns {entry['returns']} in the table, something else in esimd_ops/ops")
    for argument in function.args.args:
        kind = ast.unparse(argument.annotation) if argument.annotation else ""
        if kind not in TYPES:
            raise ValueError(f"{name}: {argument.arg}: expected one of {', '.join(TYPES)}, found {kind or 'none'}")
        written = argument.arg in (*entry.get("writes", ()), *entry.get("inplace", ()))
        words.append(f"{kind}({next(letters)}!) {argument.arg}" if written else f"{kind} {argument.arg}")
    return f"{name}({', '.join(words)}) -> ()"


def write(root: Path) -> None:
    """Write the file where it is not there or holds something else, so that a build compiles it only then."""
    path, words = root / WRITTEN, text(root)
    if not path.is_file() or path.read_text("utf-8") != words:
        path.parent.mkdir(exist_ok=True)
        path.write_text(words, "utf-8")
