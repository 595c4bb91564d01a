"""With what an operator of an order can be tried: as the table or a user says, or with the one call of a reproducer."""

from __future__ import annotations

from esimd_ops.samples.build import Arguments
from esimd_ops.trials import given
from esimd_ops.trials.subject import TrialSubject
from schema_patch.schemas.grammar import Schema

from . import case
from .order import Order


def of(order: Order, op: str, schema: Schema) -> TrialSubject | None:
    """None for an operator of which nobody said what to try it with."""
    shapes = "all" if order.shapes == "decode" or order.replay else order.shapes
    found = given.subject(order.samples, shapes, op, schema)
    if found is None and order.replay:
        return given.OfUser(schema, order.replay, case.described(case.read(order.replay)))
    return found


def arguments(order: Order, subject: TrialSubject, label: str) -> Arguments:
    """Those of a sample, or of the reproducer."""
    return case.values(case.read(order.replay).inputs) if order.replay else subject.make(label)
