"""The requests of one server: sent, answered, judged and written down. Knows HTTP through `client`, and no stop rule.

A request that was refused, because the server did not answer or said that it is busy, is no generation: its number is
sent again, after the pause that the server asked for. One that was cancelled is written down only when what had arrived
of it collapsed; otherwise it is sent again by whoever goes on with the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from esimd_soak.plan import Plan, Server
from esimd_soak.store.records import Event, Generation

from . import arrivals, client, outcome, protocol
from .answers import Answers
from .client import now
from .health import Health
from .lane import Lane
from .outcome import Outcome
from .prompts import Prompts
from .protocol import Reply

if TYPE_CHECKING:
    import aiohttp

Add = Callable[[Generation | Event], None]


class Sender:
    """Loads one lane. `judged` is told each outcome outside the warm-up, `lost` that the device said it is gone."""

    def __init__(
        self,
        plan: Plan,
        lane: Lane,
        prompts: Prompts,
        health: Health,
        add: Add,
        judged: Callable[[Lane, Outcome], None],
        lost: Callable[[Server, str], None],
    ) -> None:
        self.plan, self.lane, self.prompts, self.health = plan, lane, prompts, health
        self._add, self._judged, self._lost = add, judged, lost
        self.tasks: set[asyncio.Task[None]] = set()
        self._longest_wait = 0.0
        self._answers = Answers()

    async def go(self, http: aiohttp.ClientSession) -> None:
        """Until the lane has no next request and none is in flight."""
        self._http = http
        self._url = self.lane.server.url + protocol.path(self.lane.server)
        self._head = client.headers(self.lane.server)
        if self.plan.rate:
            await self._open()
            return
        while True:
            for number in range(self.plan.concurrency):
                self._start(self._slot(number))
            await self._ended()
            if self.lane.stopped or not self.plan.batches or self.lane.complete:
                return

    def cancel(self) -> None:
        for task in self.tasks:
            task.cancel()

    def event(self, kind: str, text: str) -> None:
        self._add(Event(now(), kind, self.lane.server.name, self.lane.server.card, text))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.add(asyncio.create_task(work))

    async def _ended(self) -> None:
        """Waits for every request in flight; a defect in one of them is raised."""
        if self.tasks:
            done, self.tasks = await asyncio.wait(self.tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                if not task.cancelled():
                    task.result()

    async def _slot(self, number: int) -> None:
        """Closed loop: one request after the other; of a batch only one."""
        if self.plan.ramp:
            await self._until(now() + arrivals.slot_start(self.plan, number))
        free = now()
        while True:
            await self._until(self.lane.hold_until)
            free = max(free, self.lane.hold_until)
            if (n := self.lane.next()) is None:
                return
            await self._one(n, free, free)
            free = now()
            if self.plan.batches:
                return

    async def _open(self) -> None:
        """Open loop: a request is due at its moment; when as many as allowed are in flight, it waits for one to end."""
        gate, began = asyncio.Semaphore(self.plan.concurrency), now()
        for moment in arrivals.moments(self.plan, self.lane.server, self.lane.upcoming):
            await self._until(began + moment)
            await self._until(self.lane.hold_until)
            if (n := self.lane.next()) is None:
                await self._ended()
                if (n := self.lane.next()) is None:  # none came back
                    return
            self.lane.held += gate.locked()
            await gate.acquire()
            self._start(self._arrival(n, began + moment, gate))
            if len(self.tasks) > 2 * self.plan.concurrency:
                done = {task for task in self.tasks if task.done()}
                self.tasks -= done
                for task in done:
                    task.result()

    async def _arrival(self, n: int, due: float, gate: asyncio.Semaphore) -> None:
        try:
            await self._one(n, due, now())
        finally:
            gate.release()

    async def _until(self, moment: float) -> None:
        while not self.lane.stopped and (left := moment - now()) > 0:
            await asyncio.sleep(min(left, 0.5))

    async def _one(self, n: int, planned: float, free: float) -> None:
        """Sends request `n`, which could go out at `free`, and writes down what came."""
        lane, prompt = self.lane, self.prompts[n]
        body = protocol.request(self.plan, lane.server, lane.model, prompt, n)
        start, reply = now(), Reply()
        lane.in_flight[n] = reply
        try:
            await client.generate(self._http, self._url, self._head, body, reply)
        except asyncio.CancelledError:
            reply.end, reply.error = now(), reply.error or "cancelled: its card was lost, or the run was ended"
            if (found := outcome.judge(reply, self.plan, prompt)).kinds:
                self._record(found, reply, n, planned, start)
            raise
        finally:
            del lane.in_flight[n]
        if reply.busy or reply.error.startswith(client.UNREACHED):
            self._refused(n, reply)
            return
        if lane.away_since:
            lane.away_since = 0.0
            self.event("reachable", "answers again")
        found = outcome.judge(reply, self.plan, prompt)
        if (first := self._answers.twin(n, prompt, found.text)) is not None:
            found = outcome.answered_before(found, first)
        self._record(found, reply, n, planned, start)
        self.health.delay(start - free)
        if "DEVICE_LOST" in reply.error:
            self._lost(lane.server, reply.error)
        self._slow_down(reply)

    def _record(self, found: Outcome, reply: Reply, n: int, planned: float, start: float) -> None:
        lane = self.lane
        position = lane.position if n >= 0 else 0
        one = outcome.record(found, reply, self.plan, lane.server, n=n, position=position, planned=planned, start=start)
        self._add(one)
        if n < 0:
            return
        lane.position += 1
        lane.scored += one.judged
        lane.errors += not one.judged
        self._judged(lane, found)

    def _refused(self, n: int, reply: Reply) -> None:
        """What was not served is no generation; a server that stays away is given up."""
        lane, down = self.lane, self.plan.watch.down
        lane.give_back(n)
        self._longest_wait = max(self._longest_wait, reply.retry_after)
        if not lane.away_since:
            lane.away_since = reply.end
            self.event("busy" if reply.busy else "unreachable", reply.error)
        elif reply.end - lane.away_since > down + self._longest_wait and not lane.stopped:
            lane.stopped = f"down for {down:g} s: {reply.error}"
            self.event("down", lane.stopped)
        lane.hold_until = max(lane.hold_until, now() + (reply.retry_after or min(1.0, down / 10)))

    def _slow_down(self, reply: Reply) -> None:
        """A server that only fails is not hammered."""
        lane = self.lane
        lane.failures = lane.failures + 1 if reply.error else 0
        if lane.failures > self.plan.concurrency:
            pause = 0.05 * 2 ** min(8, lane.failures // self.plan.concurrency)
            lane.hold_until = max(lane.hold_until, now() + min(10.0, pause))
