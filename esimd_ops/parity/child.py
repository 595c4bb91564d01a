"""The process that loads the libraries and runs the operators; it may die of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from esimd_ops.trials.child import serve
from esimd_ops.trials.messages import Request
from esimd_ops.trials.roster import tried
from schema_patch.schemas.grammar import Schema

if TYPE_CHECKING:
    from esimd_ops.trials.subject import TrialSubject


def work(request: Request, tell: Callable[[Any], None]) -> None:
    def find(op: str, schema: Schema) -> TrialSubject | None:
        from esimd_ops.trials import given

        return given.subject(request.samples, request.shapes, op, schema)

    for schema, subject, step in tried(request, tell, find):
        from .trial import ParityTrial

        tell(ParityTrial(subject, schema, request).run(step))


if __name__ == "__main__":
    serve(Request, work)
