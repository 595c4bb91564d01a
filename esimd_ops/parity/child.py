"""The process that loads the libraries and runs the operators; it may die of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from esimd_ops.trials.child import Step, serve
from esimd_ops.trials.libraries import load
from esimd_ops.trials.messages import Failed, Found, Message, Request
from schema_patch.schemas.grammar import Schema


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

    found = {op: schema for op, schema in registry.schemas(request.namespace).items() if _known(op, schema)}
    run = tuple(op for op in OPS if op in found and (not request.operators or op in request.operators))
    tell(Found({op: str(schema) for op, schema in registry.schemas(request.namespace).items()}, run))
    for op in run:
        if op in request.skip:
            continue
        trial = Trial(OPS[op], found[op], device=request.device, repeat=request.repeat, beyond=request.beyond)
        tell(Step(op, ""))
        tell(trial.run(partial(_step, tell, op)))
    tell(Step("", "ending"))


def _step(tell: Callable[[Step], None], op: str, what: str) -> None:
    tell(Step(op, what))


def _known(op: str, schema: Schema) -> bool:
    from esimd_ops.table import OPS

    return op in OPS and tuple(arg.name for arg in schema.args) == OPS[op].arguments


if __name__ == "__main__":
    serve(Request, work)
