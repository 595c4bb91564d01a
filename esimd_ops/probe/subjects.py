"""An operator to probe: its overload, what it writes, and arguments to try it with, from the table or from the user."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from esimd_ops import registry
from esimd_ops.guard.known import of_caller
from schema_patch.model import Effect, ToolError
from schema_patch.schemas import table as tables


@dataclass(frozen=True)
class Subject:
    """One operator and one or two sets of arguments of the same shapes."""

    op: torch._ops.OpOverload
    schema: str  # as registered
    effect: Effect
    arguments: tuple[dict[str, Any], ...]


def find(namespace: str, name: str, samples: str) -> Subject | str:
    """The operator, or why it cannot be probed."""
    schema = registry.schemas(namespace).get(name)
    if schema is None:
        return f"{namespace}::{name} is not registered"
    op = registry.overload(schema)
    if samples:
        return _from_user(op, [arg.name for arg in schema.args], namespace, name, samples)
    effect = tables.load().effect(schema)
    if effect is None:
        return "not in the operator table: give --samples"
    return Subject(op, str(op._schema), effect, _from_samples(name))


def _from_samples(name: str) -> tuple[dict[str, Any], ...]:
    """The operator's ordinary sample, and the same with the floating-point inputs scaled: other values, same shapes."""
    from esimd_ops import samples

    first, second = samples.make(name).arguments, samples.make(name).arguments
    entry = tables.load().entries[name]
    for argument, value in second.items():
        if (
            argument not in entry.writes
            and isinstance(value, torch.Tensor)
            and value.dtype in (torch.float16, torch.float32)
        ):
            second[argument] = (value.float() * 0.5).to(value.dtype)
    return first, second


def listed(file: str) -> list[str]:
    """The operators that a samples file names. Raises ToolError where it is no Python file."""
    return list(getattr(module(file), "SAMPLES", {}))


def _from_user(op: torch._ops.OpOverload, names: list[str], namespace: str, name: str, file: str) -> Subject | str:
    given_by = module(file)
    given = getattr(given_by, "SAMPLES", {}).get(name)
    if given is None:
        return f"{file} has no SAMPLES for {name}"
    sets = given if isinstance(given, list) else [given]
    arguments = tuple(dict(args) if isinstance(args, dict) else dict(zip(names, args, strict=False)) for args in sets)
    said = of_caller((namespace,), getattr(given_by, "WRITES", {}), getattr(given_by, "RETURNS", {}))
    effect = said.get((namespace, name), Effect(name, (), "unknown", file))
    return Subject(op, str(op._schema), effect, arguments)


@cache
def module(file: str) -> ModuleType:
    """A samples file, run once."""
    specification = importlib.util.spec_from_file_location(Path(file).stem, file)
    if specification is None or specification.loader is None:
        raise ToolError("expected a Python file with SAMPLES and WRITES", file)
    loaded = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(loaded)
    return loaded


def guard(namespace: str, name: str, subject: Subject) -> tuple[str, ...]:
    """Guards the operator; returns the name of its twin."""
    from esimd_ops import guard as guards

    returns = {} if subject.effect.returns in ("unknown", "nothing") else {name: subject.effect.returns}
    found = guards.enable(namespace, writes={name: subject.effect.writes}, returns=returns)
    return tuple(d.twin.partition("(")[0] for d in found.decisions if d.twin and d.op == f"{namespace}::{name}")
