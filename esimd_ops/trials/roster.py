"""The operators of a request, in the process that tries them: loaded, told, and given one after the other.

Imports no torch but with them: one that cannot be loaded is told like a library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from schema_patch.model import ToolError
from schema_patch.schemas.grammar import Schema

from .child import ChildStep
from .libraries import load
from .messages import Failed, Roster, TrialRequest

if TYPE_CHECKING:
    from .subject import TrialSubject

Tell = Callable[[Any], None]
Hear = Callable[[str], None]


def tried(
    request: TrialRequest,
    tell: Tell,
    find: Callable[[str, Schema], TrialSubject | None],
    ready: Callable[[], object] = lambda: None,
) -> Iterator[tuple[Schema, TrialSubject, Hear]]:
    """Each operator that `find` knows how to try, and where to say what is done with it next.

    ready  called once the libraries are loaded; what it lacks is told, as what `find` and the libraries do
    """
    tell(ChildStep("", "loading"))
    try:
        load(request.namespace, request.libraries, request.device)
        from esimd_ops import registry
        from esimd_ops.table import OPS

        ready()
        found = registry.schemas(request.namespace)
        asked = [*OPS, *(op for op in found if op not in OPS)] if not request.operators else request.operators
        known = {op: subject for op in asked if op in found and (subject := find(op, found[op]))}
    except (ImportError, OSError, ToolError) as error:
        # torch says which library could not be loaded, and only its cause says why.
        cause = None if isinstance(error, ToolError) else error.__cause__
        tell(Failed(f"{error}: {cause}" if cause else str(error)))
        return
    tell(Roster({op: str(schema) for op, schema in found.items()}, tuple(known)))
    for op, subject in known.items():
        if op not in request.skip:
            step = partial(_step, tell, op)
            step("")
            yield found[op], subject, step
    tell(ChildStep("", "ending"))


def _step(tell: Tell, op: str, what: str) -> None:
    tell(ChildStep(op, what))
