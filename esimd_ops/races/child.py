"""The process that loads a host build's libraries and runs operators under schedules; it may die of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from esimd_ops.trials.child import Step, serve
from esimd_ops.trials.libraries import load
from esimd_ops.trials.messages import Failed, Request, Roster
from schema_patch.model import ToolError

from .order import Message, Order, Ran

if TYPE_CHECKING:
    from .trial import Trial

Tell = Callable[[Message | Step], None]


def work(order: Order, tell: Tell) -> None:
    tell(Step("", "loading"))
    try:
        load(Request(namespace=order.namespace, libraries=order.libraries))
        _all(order, tell)
    except (ImportError, OSError, ToolError) as error:
        tell(Failed(str(error)))
        return
    tell(Step("", "ending"))


def _all(order: Order, tell: Tell) -> None:
    from esimd_ops import registry

    from . import cards, subjects
    from .residency import Residency
    from .trial import Trial
    from .watch import Runtime

    found = registry.schemas(order.namespace)
    runtime = Runtime.loaded()
    residency = Residency(runtime, cards.read(order.kernels) if order.kernels else {}, order.registers)
    asked = {op: schema for op, schema in found.items() if not order.operators or op in order.operators}
    wanted = {op: one for op, schema in asked.items() if (one := subjects.of(order, op, str(schema)))}
    tell(Roster({op: str(schema) for op, schema in found.items()}, tuple(wanted)))
    for op, subject in wanted.items():
        if op not in order.skip:
            step = partial(_step, tell, op)
            step("")
            refused = _one(order, Trial(subject, found[op], runtime, residency, step), tell)
            tell(Ran(op, str(found[op]), refused))


def _one(order: Order, trial: Trial, tell: Tell) -> str:
    """Runs the operator with each of its samples; what it refused with, or ""."""
    from . import case

    subject = trial.subject
    labels = [order.shapes] if order.replay else subject.chosen(order.shapes, beyond=order.beyond)
    try:
        for label in labels:
            arguments = case.values(case.read(order.replay).inputs) if order.replay else subject.make(label)
            tell(trial.run(label, arguments, order.schedules))
    except (RuntimeError, ValueError, TypeError) as raised:
        return str(raised).splitlines()[0]
    return ""


def _step(tell: Tell, op: str, what: str) -> None:
    tell(Step(op, what))


if __name__ == "__main__":
    serve(Order, work)
