"""The process that probes one operator; it may die of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from esimd_ops.trials.child import Step, serve
from schema_patch.model import ToolError

from .order import Answer, Order

if TYPE_CHECKING:
    from .subjects import Subject


def work(order: Order, tell: Callable[[Answer | Step], None]) -> None:
    tell(Step(order.op, "loading"))
    subject = _subject(order)
    if isinstance(subject, str):
        tell(Answer(failed=subject))
        return
    tell(Step(order.op, ""))
    tell(_answer(order, subject))


def _subject(order: Order) -> Subject | str:
    """The operator, or why it cannot be probed."""
    from esimd_ops.trials.given import described
    from esimd_ops.trials.libraries import load
    from esimd_ops.trials.messages import Request

    from . import subjects

    libraries = tuple(library for library in order.libraries if library != order.samples)
    try:
        if libraries or not order.samples:  # a samples file may register its operators itself
            load(Request(namespace=order.namespace, device="cpu", libraries=libraries))
        if order.samples:
            described(order.samples)
        return subjects.find(order.namespace, order.op, order.samples)
    except (ImportError, OSError, ToolError) as error:
        return str(error)


def _answer(order: Order, subject: Subject) -> Answer:
    import torch

    from . import replay, subjects
    from .trial import make_call, stand_in, try_out

    torch.manual_seed(0)
    call = make_call(subject.op, subject.arguments, subject.effect)
    if not (call.written or call.returns):
        return Answer(failed="nothing to compare: it returns nothing, and WRITES names nothing that its sample passes")
    no_fake = stand_in(call)
    names: tuple[str, ...] = (subject.op.name(),)
    if order.guard:
        names += subjects.guard(order.namespace, order.op, subject)
    given = subject.other() if replay.available(order.device) else None
    other = make_call(subject.op, given, subject.effect) if given else None
    seen = try_out(call, other, names, order.device)
    return Answer(subject.schema, tuple(seen), no_fake=no_fake and not order.guard)


if __name__ == "__main__":
    serve(Order, work)
