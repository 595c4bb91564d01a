"""Which calls are watched: the first ones of each shape, then one in so many, within a share of the run's time."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

FIRST, EVERY = 10, 100
LEAST_REST_S = 0.02
OVER = "over the budget"
Wake = Callable[[], None]  # by which we know who rests, too


class Alarm(threading.Thread):
    """Calls `wake` when it was asked to: no thread of the program. One for all times, since a thread takes milliseconds
    to start where processors are busy."""

    def __init__(self, wake: Wake) -> None:
        super().__init__(daemon=True)
        self._wake = wake
        self._asked = queue.SimpleQueue[float | None]()

    def ring_in(self, seconds: float) -> None:
        self._asked.put(seconds)

    def cancel(self) -> None:
        self._asked.put(None)

    def run(self) -> None:
        while (seconds := self._asked.get()) is not None:
            try:
                if self._asked.get(timeout=seconds) is None:
                    return
            except queue.Empty:
                self._wake()


@dataclass
class Schedule:
    """first   of each operator and shape so many calls are watched
    every   then one in so many; 0: none
    budget  the share of run time that all of it may cost, at every moment of the run; None: as much as it takes. An
            operator whose next call cannot be paid rests, and costs nothing. Who rests is awake again in turn, as soon
            as the share allows what it needs, which is kept for it: nobody is passed over for being dear.
    """

    first: int = FIRST
    every: int = EVERY
    budget: float | None = None
    spent_s: float = 0.0
    _promised: dict[Wake, float] = field(default_factory=dict)
    _began: float = field(default_factory=lambda: time.perf_counter())
    _resting: deque[tuple[float, Wake]] = field(default_factory=deque)
    _alarm: Alarm | None = None
    _is_set: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Begins to keep time for those who rest."""
        if self.budget:
            self._alarm = Alarm(self._wake)
            self._alarm.start()

    def watches(self, turn: int) -> bool:
        """Whether the call that is the `turn`-th of its shape, from 1, is watched."""
        return turn <= self.first or bool(self.every and (turn - self.first) % self.every == 0)

    @property
    def ran_s(self) -> float:
        return time.perf_counter() - self._began

    def spend(self, seconds: float) -> None:
        """Counts what watching cost."""
        self.spent_s += seconds

    def affords(self, seconds: float, who: Wake) -> bool:
        """Whether so much more may be spent now. While others wait, who was promised nothing may not."""
        if self.budget is None:
            return True
        promised = self._promised.get(who, 0.0)
        if 0 < seconds <= promised:
            return True
        return not self._resting and self._left() + promised >= seconds

    def redeem(self, who: Wake) -> None:
        """What was promised is about to be spent."""
        self._promised.pop(who, None)

    def rest(self, needs: float, wake: Wake) -> None:
        """Calls `wake`, from another thread, when so many seconds can be spent, and promises them."""
        began = time.perf_counter()
        with self._lock:
            self._resting.append((needs, wake))
            if not self._is_set:
                self._set_alarm()
        self.spend(time.perf_counter() - began)

    def begin_anew(self) -> None:
        """In a process that was forked, where no other thread is."""
        self.spent_s, self._promised, self._began = 0.0, {}, time.perf_counter()
        self._lock, self._alarm, self._is_set = threading.Lock(), None, False
        resting, self._resting = self._resting, deque()
        for _, wake in resting:
            wake()

    def stop(self) -> None:
        with self._lock:
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm = None
            self._resting.clear()

    def _left(self) -> float:
        return (self.budget or 0.0) * self.ran_s - self.spent_s - sum(self._promised.values())

    def _set_alarm(self) -> None:
        """For the one that is next."""
        if self._alarm is None:
            self.start()
        assert self.budget
        assert self._alarm
        self._alarm.ring_in(max(LEAST_REST_S, (self._resting[0][0] - self._left()) / self.budget))
        self._is_set = True

    def _wake(self) -> None:
        """In the alarm's thread: what it waits for the interpreter, the program runs."""
        began, awake = time.thread_time(), list[Wake]()
        with self._lock:
            while self._resting and self._resting[0][0] <= self._left():
                needs, wake = self._resting.popleft()
                self._promised[wake] = self._promised.get(wake, 0.0) + needs
                awake.append(wake)
            self._is_set = False
            if self._resting:
                self._set_alarm()
        for wake in awake:
            wake()
        self.spend(time.thread_time() - began)
