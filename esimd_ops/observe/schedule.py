"""Which calls are watched: the first ones of each shape, then one in so many, within a share of the run's time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

FIRST, EVERY = 10, 100
LEAST_REST_S = 0.02


@dataclass
class Schedule:
    """first   of each operator and shape so many calls are watched, whatever they cost
    every   then one in so many; 0: none
    budget  the share of run time that all of it may cost; None: as much as it takes. An operator whose first calls are
            done rests, and costs nothing, until the share is kept again.
    """

    first: int = FIRST
    every: int = EVERY
    budget: float | None = None
    spent_s: float = 0.0
    _began: float = field(default_factory=lambda: time.perf_counter())
    _resting: list[Callable[[], None]] = field(default_factory=list)
    _clock: threading.Timer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def watches(self, turn: int) -> bool:
        """Whether the call that is the `turn`-th of its shape, from 1, is watched."""
        return turn <= self.first or bool(self.every and (turn - self.first) % self.every == 0)

    @property
    def ran_s(self) -> float:
        return time.perf_counter() - self._began

    def spend(self, seconds: float) -> bool:
        """Counts what watching cost. Is it more than the budget allows?"""
        self.spent_s += seconds
        return self.budget is not None and self.spent_s > self.budget * self.ran_s

    def rest(self, wake: Callable[[], None]) -> None:
        """Calls `wake`, from another thread, when the budget is kept again."""
        with self._lock:
            self._resting.append(wake)
            if self._clock is None and self.budget:
                delay = max(LEAST_REST_S, self.spent_s / self.budget - self.ran_s)
                self._clock = threading.Timer(delay, self._wake)
                self._clock.daemon = True
                self._clock.start()

    def begin_anew(self) -> None:
        """In a process that was forked, where no other thread is."""
        self.spent_s, self._began = 0.0, time.perf_counter()
        self._lock, self._clock = threading.Lock(), None
        self._wake()

    def stop(self) -> None:
        with self._lock:
            if self._clock is not None:
                self._clock.cancel()
            self._clock, self._resting = None, []

    def _wake(self) -> None:
        with self._lock:
            awake, self._resting, self._clock = self._resting, [], None
        for wake in awake:
            wake()
