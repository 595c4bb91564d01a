"""Which operators of an order can be tried, and with what: those of the table, a user's, or the one of a reproducer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esimd_ops.samples import Arguments
from esimd_ops.table import OPS
from esimd_ops.trials import given
from esimd_ops.trials.given import Expected, OfUser
from esimd_ops.trials.subject import OfTable, Subject, Truth
from schema_patch.model import Effect
from schema_patch.schemas import grammar
from schema_patch.schemas.grammar import Schema

from . import reproduce
from .order import Order


def of(order: Order, op: str, schema: str) -> Subject | None:
    """The subject, or None for an operator of which nobody said what to try it with."""
    subject: Subject | None = None
    if order.samples and op in given.named(order.samples):
        subject = OfUser(grammar.parse(schema), order.samples)
    elif op in OPS:
        subject = OfTable(OPS[op])
        subject.labels("all" if order.shapes == "decode" or order.replay else order.shapes)
    elif order.replay:
        subject = OfCase(reproduce.read(order.replay))
    return subject


class OfCase(Subject):
    """The operator of a reproducer that no table knows, with the one call that is in it."""

    def __init__(self, case: reproduce.Case) -> None:
        self.name, self.writes, self.overwritten, self.returned = case.operator, case.writes, case.overwritten, None
        self._case = case

    def labels(self, shapes: str = "all") -> tuple[str, ...]:
        del shapes
        return (self._case.sizes,)

    def make(self, label: str) -> Arguments:
        del label
        return reproduce.values(self._case.inputs)

    def truth(self, arguments: Arguments) -> Truth | None:  # noqa: ARG002  recorded
        expected = reproduce.values(self._case.expected)
        return Expected(expected, self.overwritten) if expected else None

    def effect(self, schema: Schema) -> Effect | None:  # noqa: ARG002
        return Effect(self.name, self.writes, "unknown", "a reproducer")

    def fake(self, schema: Schema) -> Callable[..., Any] | None:  # noqa: ARG002
        return None
