"""One server under load: which request comes next, what is in flight, whether its card is lost. Knows no network."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from esimd_soak.plan import Server

from .protocol import Reply


@dataclass(slots=True)
class Lane:
    """`limit` 0: no end. Numbers finished by an earlier session are never sent again, those it had in flight are."""

    server: Server
    limit: int
    model: str = ""
    upcoming: int = 0
    holes: list[int] = field(default_factory=list)
    warming: int = 0
    position: int = 0
    scored: int = 0
    collapses: int = 0
    errors: int = 0
    in_flight: dict[int, Reply] = field(default_factory=dict)
    away_since: float = 0.0
    """When the server first refused, and has since answered nothing; 0 while it answers."""
    hold_until: float = 0.0
    """Until then nothing is sent: the server asked for a pause, or does not answer."""
    held: int = 0
    """Arrivals of an open loop that had to wait, because as many as allowed were in flight."""
    failures: int = 0
    stopped: str = ""

    def resume(self, numbers: Iterable[int]) -> None:
        """Takes up where these finished numbers leave off."""
        done = bytearray()
        for n in numbers:
            if n < 0:
                continue
            if n >= len(done):
                done.extend(bytes(n + 1 - len(done)))
            done[n] = 1
            self.position += 1
        self.upcoming = len(done)
        self.holes = [n for n, there in enumerate(done) if not there]

    def next(self) -> int | None:
        """The number of the next request; None when there is none. Warm-up requests have negative numbers."""
        if self.stopped:
            return None
        if self.warming:
            self.warming -= 1
            return -1 - self.warming
        if self.holes:
            return self.holes.pop(0)
        if self.limit and self.upcoming >= self.limit:
            return None
        self.upcoming += 1
        return self.upcoming - 1

    def give_back(self, n: int) -> None:
        """Request `n` was not served: it is sent again."""
        if n >= 0:
            self.holes.append(n)
        else:
            self.warming += 1

    @property
    def complete(self) -> bool:
        """Whether every number was given out and came back."""
        return bool(self.limit) and self.upcoming >= self.limit and not self.holes
