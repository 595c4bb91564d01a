"""Operators that their user describes: samples, what is written, and perhaps what should come out. The only reader.

A Python file, `module:function` for a function that returns such a namespace or dictionary, or a folder of calls that
`observe --save` made, with a table of what it saw:

    SAMPLES = {"op": (x, output, 1e-6)}     one call, or a list of calls; a tuple by position or {name: value}; or a
                                            function that makes them, called anew for each run
    WRITES = {"op": ("output",)}            what it writes
    INPLACE = {"op": ()}                    those of them whose old contents it reads; all of them where nothing is said
    RETURNS = {"op": "output"}              the argument that it returns, "fresh", "nothing" or "private buffer"; of
                                            several results ("output", "fresh")
    REFERENCE = {"op": function}            the same arguments -> {name: expected value}, for what it writes

Only SAMPLES is needed. Where there is no reference, runs are compared with each other.
"""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from esimd_ops.reference import Tensors
from esimd_ops.samples.build import Arguments
from esimd_ops.table import OPS
from esimd_ops.tensors import bits
from schema_patch.model import Effect, ToolError
from schema_patch.schemas import table as tables
from schema_patch.schemas.grammar import Schema

from .judge import Truth, at, fraction, poisoned, share
from .libraries import python_file
from .messages import Observation
from .subject import OfTable, TrialSubject

TABLE = "operators.toml"  # in a folder of saved calls


@cache
def described(where: str) -> Any:
    """What a file, function or folder says, read once. Raises ToolError where it is none of them."""
    if Path(where).is_dir():
        return _folder(Path(where))
    module, colon, name = where.partition(":")
    if not colon:
        if not where.endswith(".py") or not Path(where).is_file():
            raise ToolError("expected a Python file with SAMPLES, module:function, or a folder of saved calls", where)
        return python_file(where)
    try:
        made = getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError, TypeError) as error:
        raise ToolError(f"expected a function without arguments that describes samples: {error}", where) from error
    return SimpleNamespace(**made) if isinstance(made, Mapping) else made


def _folder(folder: Path) -> Any:
    """Calls as `observe --save` writes them, and the table beside them."""
    samples: dict[str, SavedCalls] = {}
    for path in sorted(folder.glob("*.pt")):
        parts = path.name.split(".")  # namespace.op[.overload].DIGEST.pt
        samples.setdefault(".".join(parts[1:-2]), SavedCalls()).append(path)
    if not samples:
        raise ToolError("expected calls that `observe --save` wrote (*.pt), found none", str(folder))
    known = tables.read_file(folder / TABLE).entries if (folder / TABLE).exists() else {}
    writes = {op: (*entry.writes, *entry.inplace) for op, entry in known.items()}
    return SimpleNamespace(SAMPLES=samples, WRITES=writes, RETURNS={op: e.returns for op, e in known.items()})


def subject(samples: str, shapes: str, op: str, schema: Schema) -> TrialSubject | None:
    """What the user's file describes, or what the table knows with these arguments, for these shapes."""
    if samples and op in named(samples, schema.namespace):
        return OfUser(schema, samples)
    if op not in OPS or tuple(arg.name for arg in schema.args) != OPS[op].arguments:
        return None
    found = OfTable(OPS[op])
    found.labels("all" if shapes == "decode" else shapes)
    return found


class SavedCalls(list[Any]):
    """The saved calls of operators of one name, by their files, each read when asked for: a program makes many."""

    def of(self, namespace: str | None) -> SavedCalls:
        return SavedCalls(path for path in super().__iter__() if path.name.startswith(f"{namespace}."))

    def __getitem__(self, index: Any) -> Any:
        path: Path = super().__getitem__(index)
        try:
            return torch.load(path, map_location="cpu", weights_only=True)["arguments"]
        except (RuntimeError, KeyError, TypeError, pickle.UnpicklingError) as error:
            raise ToolError(f"not a call that `observe --save` wrote: {error}", str(path)) from error


def named(where: str, namespace: str | None) -> tuple[str, ...]:
    """The operators of this namespace that have samples there; a file of a person names none."""
    given = _table(described(where), where, "SAMPLES").items()
    return tuple(op for op, calls in given if not isinstance(calls, SavedCalls) or calls.of(namespace))


def _table(said: Any, where: str, name: str) -> Mapping[str, Any]:
    found = getattr(said, name, {})
    if not isinstance(found, Mapping):
        raise ToolError(f"{name}: expected a dictionary by operator, found {type(found).__name__}", where)
    return found


class OfUser(TrialSubject):
    """An operator as its user describes it. Raises ToolError for names that are none of its arguments."""

    def __init__(self, schema: Schema, where: str, said: Any = None) -> None:
        """`said`: what is described, where that is not at `where`."""
        op = schema.op
        self.name, self._where, self._namespace = op, where, schema.namespace
        self._said = said or described(where)
        self._arguments = [arg.name for arg in schema.args]
        self.writes = self._names("WRITES", schema.writes)
        inplace = self._names("INPLACE", self.writes)
        self.overwritten = tuple(name for name in self.writes if name not in inplace)
        returns = self._table("RETURNS").get(op, "unknown")
        self._returns = returns if isinstance(returns, str) else ", ".join(returns)
        self.returned = self._returns if self._returns in self._arguments else None
        self.certain = op in self._table("WRITES")
        self._reference: Callable[..., Tensors] | None = self._table("REFERENCE").get(op)
        self._calls = len(self._given())

    def _table(self, name: str) -> Mapping[str, Any]:
        return _table(self._said, self._where, name)

    def _names(self, table: str, otherwise: Any) -> tuple[str, ...]:
        found = self._table(table).get(self.name, otherwise)
        names = (found,) if isinstance(found, str) else tuple(found)
        for name in names:
            if name not in self._arguments:
                raise ToolError(
                    f"{table}: '{name}' is none of the arguments of {self.name}: {', '.join(self._arguments)}",
                    self._where,
                )
        return names

    def _given(self) -> list[Any]:
        given = self._table("SAMPLES")[self.name]
        given = given() if callable(given) else given
        if isinstance(given, SavedCalls):
            return given.of(self._namespace)
        return given if isinstance(given, list) else [given]

    def labels(self, shapes: str = "all") -> tuple[str, ...]:
        """ "sample 1" and so on; "models" and sizes mean nothing here and give all."""
        del shapes
        return tuple(f"sample {i + 1}" for i in range(self._calls))

    def make(self, label: str) -> Arguments:
        """In the order of the schema. Raises ToolError for what is no call of this operator."""
        call = self._given()[int(label.split()[1]) - 1]
        if isinstance(call, tuple) and len(call) <= len(self._arguments):
            call = dict(zip(self._arguments, call, strict=False))
        if not isinstance(call, Mapping) or not call.keys() <= set(self._arguments):
            found = (
                ", ".join(map(str, call)) if isinstance(call, Mapping) else f"a {type(call).__name__} of {len(call)}"
            )
            raise ToolError(
                f"SAMPLES of {self.name}, {label}: expected a tuple or a dictionary of {', '.join(self._arguments)}; "
                f"found {found}",
                self._where,
            )
        return {name: _copied(call[name]) for name in self._arguments if name in call}

    def truth(self, arguments: Arguments) -> Truth | None:
        if self._reference is None:
            return None
        expected = self._reference(**arguments)
        if unknown := [name for name in expected if name not in self.writes]:
            raise ToolError(f"REFERENCE of {self.name} gives '{unknown[0]}', which WRITES does not name", self._where)
        return ByUser(expected, self.overwritten)

    def effect(self, schema: Schema) -> Effect | None:  # noqa: ARG002  told for this very operator
        said = self.certain or self._returns != "unknown"
        return Effect(self.name, self.writes, self._returns, self._where) if said else None

    def fake(self, schema: Schema) -> Callable[..., Any] | None:
        if schema.returns and self.returned is None:
            return None
        names, returned = self._arguments, self.returned

        def fake(*args: Any, **kwargs: Any) -> Any:
            given = {**dict(zip(names, args, strict=False)), **kwargs}
            return torch.empty_like(given[returned]) if schema.returns and returned else None

        return fake


def _copied(value: Any) -> Any:
    """New tensors, those of a list too: an operator may write them."""
    if isinstance(value, tuple | list):
        return type(value)(_copied(part) for part in value)
    return value.clone() if isinstance(value, Tensor) else value


class ByUser(Truth):
    """Values that a reference gave, with torch.testing's tolerances for their types."""

    def __init__(self, expected: Tensors, overwritten: tuple[str, ...]) -> None:
        self.values, self._overwritten = expected, overwritten

    def told(self, before: Tensors, got: Tensors) -> list[Observation]:
        told = []
        for name, right in self.values.items():
            off = _off(got[name], right)
            if not off.any():
                continue
            left = off & (bits(got[name]) == bits(before[name])) & poisoned(before[name])
            if name in self._overwritten and left.any():
                told.append(Observation("PA105", f"'{name}': {share(left)} left unwritten"))
            else:
                told.append(Observation("PA101", f"'{name}': {at(off, got[name], right)}; {share(off)}"))
        return told

    def shares(self, got: Tensors) -> dict[str, float]:
        return {name: fraction(_off(got[name], right)) for name, right in self.values.items()}


def _off(got: Tensor, right: Tensor) -> Tensor:
    if not right.is_floating_point():
        return got != right
    relative, absolute = torch.testing._comparison.default_tolerances(got.dtype)
    return ~torch.isclose(got.double(), right.double(), rtol=relative, atol=absolute, equal_nan=True)
