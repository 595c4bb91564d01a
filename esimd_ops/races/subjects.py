"""With what an operator of an order can be tried: as the table or a user says, or with the one call of a reproducer."""

from __future__ import annotations

from esimd_ops.trials import given
from esimd_ops.trials.subject import TrialSubject
from schema_patch.schemas.grammar import Schema

from . import case
from .order import Order


def of(order: Order, op: str, schema: Schema) -> TrialSubject | None:
    """None for an operator of which nobody said what to try it with."""
    shapes = "all" if order.shapes == "decode" or order.replay else order.shapes
    found = given.subject(order.samples, shapes, op, schema)
    return case.OfCase(case.read(order.replay)) if found is None and order.replay else found
