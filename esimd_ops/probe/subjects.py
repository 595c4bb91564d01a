"""An operator to probe: its overload, what it writes, and arguments to try it with, from the table or from the user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from esimd_ops import registry
from esimd_ops.table import OPS
from esimd_ops.trials import given
from esimd_ops.trials.subject import OfTable
from schema_patch.model import Effect, ToolError


@dataclass(frozen=True)
class ProbedOperator:
    """One operator and the arguments of a call. `others`: those of other calls, each made when it is asked for."""

    op: torch._ops.OpOverload
    schema: str  # as registered
    effect: Effect
    arguments: dict[str, Any]
    others: Iterator[dict[str, Any]]

    def other(self) -> dict[str, Any] | None:
        """The first of them whose tensors have the same shapes."""
        return next((found for found in self.others if _shapes(found) == _shapes(self.arguments)), None)


def find(namespace: str, name: str, samples: str) -> ProbedOperator:
    """Raises ToolError where the operator cannot be probed."""
    schema = registry.schemas(namespace).get(name)
    if schema is None:
        raise ToolError(f"{namespace}::{name} is not registered")
    one: given.OfUser | OfTable
    if samples:
        if name not in given.named(samples, schema.namespace):
            raise ToolError(f"{samples} has no SAMPLES for {name}")
        one = given.OfUser(schema, samples)
        made = (one.make(label) for label in one.labels())
    elif name in OPS:
        one = OfTable(OPS[name])
        ordinary = one.labels()[0]
        made = (make(ordinary) for make in (one.make, one.others))
    else:
        raise ToolError("not in the operator table: give --samples")
    op = registry.overload(schema)
    effect = one.effect(schema) or Effect(name, one.writes, "unknown", "its schema")
    return ProbedOperator(op, str(op._schema), effect, next(made), made)


def _shapes(arguments: dict[str, Any]) -> list[tuple[str, list[torch.Size]]]:
    tensors = ((n, v if isinstance(v, (list, tuple)) else [v]) for n, v in arguments.items())
    return [(name, [part.shape for part in parts if isinstance(part, torch.Tensor)]) for name, parts in tensors]


def guard(namespace: str, name: str, subject: ProbedOperator) -> tuple[str, ...]:
    """Guards the operator; returns the name of its twin."""
    from esimd_ops import guard as guards

    returns = {} if subject.effect.returns in ("unknown", "nothing") else {name: subject.effect.returns}
    found = guards.enable(namespace, writes={name: subject.effect.writes}, returns=returns)
    return tuple(d.twin.partition("(")[0] for d in found.decisions if d.twin and d.op == f"{namespace}::{name}")
