"""The smallest case that shows a finding, of all that an order gave."""

from __future__ import annotations

import msgspec
from torch import Tensor

from esimd_ops.trials.given import ByUser
from esimd_ops.trials.subject import OfTable
from schema_patch.schemas import grammar

from . import subjects
from .case import VERSION, Case, written
from .order import Order, RaceRun


def smallest(order: Order, outcome: RaceRun) -> Case | None:
    """Of the rows with something wrong, the one with the fewest elements, under the first schedule that shows it."""
    cases = []
    for row in outcome.rows:
        shown = [name for name, (share, _) in row.wrong.items() if share] or (
            list(order.schedules)[:1] if row.seen else []
        )
        ran = outcome.done.get(row.op)
        if shown and ran and (subject := subjects.of(order, row.op, grammar.parse(ran.schema))):
            arguments = subjects.arguments(order, subject, row.label)
            size = sum(value.numel() for value in arguments.values() if isinstance(value, Tensor))
            cases.append((size, row, shown[0], subject, arguments))
    if not cases:
        return None
    _, row, name, subject, arguments = min(cases, key=lambda case: case[0])
    case = Case(VERSION, order.namespace, row.op, row.label, order.schedules[name], name, written(arguments))
    if isinstance(subject, OfTable):
        return case
    truth = subject.truth(arguments)
    expected = written(truth.values) if isinstance(truth, ByUser) else ()
    return msgspec.structs.replace(case, writes=subject.writes, overwritten=subject.overwritten, expected=expected)
