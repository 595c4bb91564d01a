"""The process that loads the libraries and runs the operators; it may die of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from esimd_ops.trials.child import Step, serve
from esimd_ops.trials.libraries import load
from esimd_ops.trials.messages import Failed, Message, Request, Roster
from schema_patch.model import ToolError
from schema_patch.schemas.grammar import Schema

if TYPE_CHECKING:
    from esimd_ops.trials.subject import Subject


def work(request: Request, tell: Callable[[Message | Step], None]) -> None:
    tell(Step("", "loading"))
    try:
        load(request)
    except (ImportError, OSError) as error:
        # torch says which library could not be loaded, and only its cause says why.
        tell(Failed(f"{error}: {error.__cause__}" if error.__cause__ else str(error)))
        return

    from esimd_ops import registry
    from esimd_ops.table import OPS

    from .trial import Trial

    found = registry.schemas(request.namespace)
    try:
        asked = {op: schema for op, schema in found.items() if not request.operators or op in request.operators}
        known = {op: subject for op, schema in asked.items() if (subject := _subject(request, op, schema))}
    except ToolError as error:
        tell(Failed(str(error)))
        return
    order = [*OPS, *(op for op in known if op not in OPS)]
    run = tuple(op for op in order if op in known)
    tell(Roster({op: str(schema) for op, schema in found.items()}, run))
    for op in run:
        if op in request.skip:
            continue
        trial = Trial(
            known[op],
            found[op],
            device=request.device,
            repeat=request.repeat,
            beyond=request.beyond,
            shapes="decode" if request.effort == "quick" else request.shapes,
            effort=request.effort,
        )
        tell(Step(op, ""))
        tell(trial.run(partial(_step, tell, op)))
    tell(Step("", "ending"))


def _step(tell: Callable[[Step], None], op: str, what: str) -> None:
    tell(Step(op, what))


def _subject(request: Request, op: str, schema: Schema) -> Subject | None:
    """What the user's file describes, or the table knows with these arguments."""
    from esimd_ops.table import OPS
    from esimd_ops.trials import given
    from esimd_ops.trials.subject import OfTable

    if request.samples and op in given.named(request.samples, schema.namespace):
        return given.OfUser(schema, request.samples)
    if op not in OPS or tuple(arg.name for arg in schema.args) != OPS[op].arguments:
        return None
    subject = OfTable(OPS[op])
    subject.labels(request.shapes)
    return subject


if __name__ == "__main__":
    serve(Request, work)
