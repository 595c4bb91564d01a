"""The process that probes one operator; it may die of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from esimd_ops.trials.child import ChildStep, serve
from schema_patch.model import ToolError

from .question import ProbeAnswer, Question

if TYPE_CHECKING:
    from .subjects import ProbedOperator


def work(question: Question, tell: Callable[[ProbeAnswer | ChildStep], None]) -> None:
    tell(ChildStep(question.op, "loading"))
    try:
        subject = _subject(question)
    except (ImportError, OSError, ToolError) as error:
        tell(ProbeAnswer(failed=str(error)))
        return
    tell(ChildStep(question.op, ""))
    tell(_answer(question, subject))


def _subject(question: Question) -> ProbedOperator:
    from esimd_ops.trials.given import described
    from esimd_ops.trials.libraries import load

    from . import subjects

    libraries = tuple(library for library in question.libraries if library != question.samples)
    if libraries or not question.samples:  # a samples file may register its operators itself
        load(question.namespace, libraries)
    if question.samples:
        described(question.samples)
    return subjects.find(question.namespace, question.op, question.samples)


def _answer(question: Question, subject: ProbedOperator) -> ProbeAnswer:
    import torch

    from . import replay, subjects
    from .trial import make_call, stand_in, try_out

    torch.manual_seed(0)
    call = make_call(subject.op, subject.arguments, subject.effect)
    if not (call.written or call.returns):
        return ProbeAnswer(
            failed="nothing to compare: it returns nothing, and WRITES names nothing that its sample passes"
        )
    no_fake = stand_in(call)
    names: tuple[str, ...] = (subject.op.name(),)
    if question.guard:
        names += subjects.guard(question.namespace, question.op, subject)
    given = subject.other() if replay.available(question.device) else None
    other = make_call(subject.op, given, subject.effect) if given else None
    seen = try_out(call, other, names, question.device)
    return ProbeAnswer(subject.schema, tuple(seen), no_fake=no_fake and not question.guard)


if __name__ == "__main__":
    serve(Question, work)
