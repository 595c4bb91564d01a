"""What a run writes down, one JSON object a line. Knows no file, no network and no statistics.

Field names and meanings are a file format: `VERSION` changes when one of them changes its meaning. Times are seconds
since 1970 from a monotonic clock; a field at its default is left out of the line. Version 1 knew neither `partial` nor
`unjudged`: in it nothing with an error was scored.
"""

from __future__ import annotations

import msgspec

VERSION = 2
READABLE = (1, 2)


class EndedRequest(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """What of a request tells whether it counts: in rates it does when it was judged."""

    n: int
    """The request's number at this server: with the plan's seed it gives the prompt. Negative while warming up."""
    server: str
    end: float
    error: str = ""
    """Why it is not whole; its first word is the kind."""
    partial: bool = False
    """Not whole, but what was received was enough to judge."""
    unjudged: str = ""
    """Whole, but nothing that can be judged: withheld by a filter, or cut by the token limit before any limit."""
    kinds: tuple[str, ...] = ()

    @property
    def warm(self) -> bool:
        return self.n < 0

    @property
    def judged(self) -> bool:
        return (not self.error or self.partial) and not self.unjudged


class Measured(EndedRequest, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """What statistics ask of a request."""

    card: str
    start: float
    first: float = 0.0
    """When the first text arrived; 0 when not streamed."""
    tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    """Draft tokens of speculative decoding, where the reply tells them."""
    gaps: dict[int, int] = {}
    """Times between pieces of the stream: `load.gaps` names the buckets."""


class Generation(Measured, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """One request and what came back."""

    position: int
    """How many generations this server had finished in this run before."""
    planned: float
    """When it was due, or its slot free; `start` minus `planned` is the client's own delay, or the cap's."""
    prompt_tokens: int = 0
    finish: str = ""
    status: int = 200
    run: int = 0
    char: str = ""
    period: int = 0
    cycle: int = 0
    entropy: float = 0.0
    ratio: float = 0.0
    why: str = ""
    chars: int = 0
    choices: int = 1
    """Above 1: that many answers in one reply, each scored by itself; the measures are those of the worst."""
    text: str = ""
    """Only of a generation that failed its score."""


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that happened to the run or to a server: began, ended, served, health, lost, down, corrupted, …"""

    t: float
    kind: str
    server: str = ""
    card: str = ""
    text: str = ""
    requests: tuple[int, ...] = ()
    """What was in flight."""
    values: dict[str, float | None] = {}
    facts: dict[str, str] = {}
    """Of `served`: what the server says that it serves."""


class Watched(msgspec.Struct, frozen=True, omit_defaults=True):
    """A server's own counters at one moment."""

    t: float
    server: str
    healthy: bool = True
    values: dict[str, float | None] = {}
    """None where the server said NaN or infinity."""
