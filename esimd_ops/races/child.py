"""The process that loads a host build's libraries and runs operators under schedules; it may die of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from esimd_ops.trials.child import serve
from esimd_ops.trials.roster import tried
from schema_patch.schemas.grammar import Schema

from .order import Order, Ran

if TYPE_CHECKING:
    from esimd_ops.trials.subject import TrialSubject

    from .residency import Residency
    from .trial import RaceTrial


def work(order: Order, tell: Callable[[Any], None]) -> None:
    @cache
    def residency() -> Residency:
        from . import cards
        from .residency import Residency
        from .watch import HostRuntime

        return Residency(HostRuntime.loaded(), cards.read(order.kernels) if order.kernels else {}, order.registers)

    def find(op: str, schema: Schema) -> TrialSubject | None:
        from . import subjects

        return subjects.of(order, op, schema)

    for schema, subject, step in tried(order, tell, find, residency):
        from .trial import RaceTrial

        refused = _one(order, RaceTrial(subject, schema, residency(), step), tell)
        tell(Ran(schema.op, str(schema), refused))


def _one(order: Order, trial: RaceTrial, tell: Callable[[Any], None]) -> str:
    """Runs the operator with each of its samples; what it refused with, or ""."""
    from . import subjects

    subject = trial.subject
    labels = [order.shapes] if order.replay else subject.chosen(order.shapes, beyond=order.beyond)
    try:
        for label in labels:
            tell(trial.run(label, subjects.arguments(order, subject, label), order.schedules))
    except (RuntimeError, ValueError, TypeError) as raised:
        return str(raised).splitlines()[0]
    return ""


if __name__ == "__main__":
    serve(Order, work)
