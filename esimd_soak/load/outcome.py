"""Reply -> Generation: what was received is judged, whole or not, and written down. Pure.

A generation is judged when it has text that the score can say something about. A reply that was cut, timed out or was
withdrawn is judged by what arrived, for engines die in such moments; a text that was cut before any limit could be
reached, or that a filter withheld, is not judged and counts in no rate. A tool call and a refusal are answers, not
empty ones; the answers of one reply, and its thinking and speaking, are scored apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from esimd_soak.plan import Plan, Server
from esimd_soak.score import Score, score
from esimd_soak.store.records import Generation

from .prompts import Prompt
from .protocol import Reply

KEPT_TEXT = 4000  # characters of a failed generation that are kept
OF_TOOLS = frozenset({"run", "cycle", "entropy", "encoding"})
"""The kinds that a tool's arguments can be of: data have no language."""


@dataclass(frozen=True, slots=True)
class Outcome:
    score: Score
    kinds: tuple[str, ...]
    text: str
    partial: bool = False
    unjudged: str = ""

    @property
    def judged(self) -> bool:
        return not self.unjudged


def judge(reply: Reply, plan: Plan, prompt: Prompt | None = None) -> Outcome:
    """What the reply says of the server: kinds of collapse, or that nothing can be said."""
    asked = prompt if isinstance(prompt, str) else None
    found: list[tuple[tuple[str, ...], Score, str]] = []
    for channel, text in reply.texts:
        if not text.strip() and len(text) < plan.limits.run:
            continue
        one = score(text, plan.limits, prompt=asked)
        kinds = tuple(kind for kind in one.kinds if channel != "tool" or kind in OF_TOOLS)
        found.append((kinds, one, text))
    if found:
        kinds, worst, text = max(found, key=lambda x: (bool(x[0]), len(x[2])))
    else:
        kinds, worst, text = (), score(reply.text, plan.limits), reply.text
    if reply.nan:
        kinds = (*kinds, "nan")
    elif not found:
        return Outcome(worst, *_nothing(reply, worst, text))
    if kinds or not _cut(reply):
        return Outcome(worst, kinds, text, partial=bool(reply.error))
    if len(text) < plan.limits.at_end:
        return Outcome(worst, (), text, unjudged=f"too short: cut after {len(text)} characters")
    return Outcome(worst, (), text, partial=bool(reply.error))


def answered_before(found: Outcome, first: int) -> Outcome:
    """An answer that request `first`, with another prompt, had word for word: it says nothing of this one."""
    if found.kinds or found.unjudged:
        return found
    return replace(found, partial=False, unjudged=f"same answer: as to request {first}, which asked something else")


def _nothing(reply: Reply, empty: Score, text: str) -> tuple[tuple[str, ...], str, bool, str]:
    """(kinds, text, partial, unjudged) of a reply without any text."""
    if reply.error:
        return (), text, False, reply.error.split(":")[0]
    if "filter" in reply.finish:
        return (), text, False, f"withheld: {reply.finish}"
    if reply.finish in ("tool_calls", "function_call"):
        return (), text, False, ""
    return empty.kinds, text, False, ""


def _cut(reply: Reply) -> bool:
    """Whether the text might have gone on: the limit came, or the end did not."""
    return bool(reply.error) or reply.finish in ("length", "max_tokens")


def record(
    found: Outcome, reply: Reply, plan: Plan, server: Server, *, n: int, position: int, planned: float, start: float
) -> Generation:
    """What is written down of one request."""
    measured, failed = found.score, bool(found.kinds) or bool(reply.error)
    # A server that fails to say NaN in JSON did compute it: that is a scored collapse, not a lost request.
    error = "" if reply.nan and not reply.parts else reply.error
    pieces = reply.pieces if server.stream and not reply.error else 0
    return Generation(
        n=n,
        server=server.name,
        card=server.card,
        position=position,
        planned=round(planned, 4),
        start=round(start, 4),
        end=round(reply.end, 4),
        first=round(reply.first, 4),
        tokens=reply.tokens or pieces,
        error=error,
        partial=found.partial and bool(error),
        unjudged="" if error and not found.partial else found.unjudged,
        run=measured.run,
        char=measured.char if measured.run >= plan.limits.run else "",
        kinds=found.kinds,
        why=measured.why if found.kinds else "",
        chars=len(found.text),
        gaps=dict(reply.gaps),
        text=found.text[-KEPT_TEXT:] if failed else "",
        **{name: getattr(measured, name) for name in ("period", "cycle", "entropy", "ratio")},
        **{
            name: getattr(reply, name)
            for name in ("prompt_tokens", "finish", "status", "drafted", "accepted", "choices")
        },
    )
