"""Which operators of an order can be tried, and with what: those of the table, a user's, or the one of a reproducer."""

from __future__ import annotations

from esimd_ops.table import OPS
from esimd_ops.trials import given
from esimd_ops.trials.given import OfUser
from esimd_ops.trials.subject import OfTable, Subject
from schema_patch.schemas import grammar

from . import case
from .order import Order


def of(order: Order, op: str, schema: str) -> Subject | None:
    """The subject, or None for an operator of which nobody said what to try it with."""
    subject: Subject | None = None
    parsed = grammar.parse(schema)
    if order.samples and op in given.named(order.samples, parsed.namespace):
        subject = OfUser(parsed, order.samples)
    elif op in OPS:
        subject = OfTable(OPS[op])
        subject.labels("all" if order.shapes == "decode" or order.replay else order.shapes)
    elif order.replay:
        subject = case.OfCase(case.read(order.replay))
    return subject
