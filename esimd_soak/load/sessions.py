"""How long a run really loaded its servers: sessions, without the pauses between them. Pure."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass, field

from esimd_soak.store.records import Event


@dataclass(slots=True)
class Sessions:
    """From each session's beginning to the last sign of it; times at which the client stood still are no load."""

    began: list[float] = field(default_factory=list)
    last: list[float] = field(default_factory=list)
    still: float = 0.0

    @classmethod
    def of(cls, events: Iterable[Event]) -> Sessions:
        known = sorted(events, key=lambda event: event.t)
        began = [event.t for event in known if event.kind == "began"]
        found = cls(began, list(began))
        for event in known:
            found.saw(event.t)
            if event.kind == "paused":
                found.still += event.values.get("seconds") or 0.0
        return found

    def saw(self, t: float) -> None:
        session = bisect.bisect_right(self.began, t) - 1
        if session >= 0:
            self.last[session] = max(self.last[session], t)

    @property
    def seconds(self) -> float:
        return max(0.0, sum(self.last) - sum(self.began) - self.still)
