"""What a run writes down, one JSON object a line. Knows no file, no network and no statistics.

Field names and meanings are a file format: `VERSION` changes when one of them changes its meaning. Times are seconds
since 1970 from a monotonic clock; a field at its default is left out of the line.
"""

from __future__ import annotations

import msgspec

VERSION = 1


class Generation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One request and what came back. `error` set: nothing was scored, and no rate counts it."""

    n: int
    """The request's number at this server: with the plan's seed it gives the prompt. Negative while warming up."""
    server: str
    card: str
    position: int
    """How many generations this server had finished in this run before: the order for clusters and gaps."""
    planned: float
    """When the slot was free to send it; `start` minus `planned` is the client's own delay."""
    start: float
    end: float
    first: float = 0.0
    """When the first text arrived; 0 when not streamed."""
    prompt_tokens: int = 0
    tokens: int = 0
    finish: str = ""
    status: int = 200
    error: str = ""
    run: int = 0
    char: str = ""
    period: int = 0
    cycle: int = 0
    entropy: float = 0.0
    kinds: tuple[str, ...] = ()
    chars: int = 0
    text: str = ""
    """Only of a generation that failed its score."""

    @property
    def warm(self) -> bool:
        return self.n < 0


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that happened to the run or to a server: began, ended, health, lost, down, corrupted, …"""

    t: float
    kind: str
    server: str = ""
    card: str = ""
    text: str = ""
    requests: tuple[int, ...] = ()
    """What was in flight."""
    values: dict[str, float] = {}


class Watched(msgspec.Struct, frozen=True, omit_defaults=True):
    """A server's own counters at one moment."""

    t: float
    server: str
    healthy: bool = True
    values: dict[str, float] = {}
