"""The load itself: Plan -> generations in a Store. Owns the event loop, the clock and the stop rules; judges no rate.

Load is closed-loop: a slot that is free sends at once. What lies between "free" and "sent" is the client's own doing
and is recorded (planned against start); with the delay of the event loop it decides whether the client measured
itself.
"""

from __future__ import annotations

import asyncio
import bisect
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from esimd_soak.plan import Plan, Server
from esimd_soak.score import score
from esimd_soak.store import folder as store
from esimd_soak.store.records import Event, Generation

from . import client, protocol, watch
from .client import now
from .health import Health
from .lane import Lane
from .prompts import Prompts
from .protocol import Reply

if TYPE_CHECKING:
    import aiohttp

KEPT_TEXT = 4000  # characters of a failed generation that are kept
Progress = Callable[["Run"], None]


class _Number(msgspec.Struct):
    n: int
    server: str
    end: float
    kinds: tuple[str, ...] = ()
    error: str = ""


class Run:
    """A soak in progress. `await run.go()` returns why it ended."""

    def __init__(self, plan: Plan, folder: Path, registration: dict[str, Any] | None = None) -> None:
        self.plan = plan
        self.prompts = Prompts(plan)
        self.lanes = [Lane(server, plan.generations) for server in plan.server]
        self.store = store.open_run(folder, plan, registration)
        self.health = Health(plan.client)
        self.began = now()
        self.used = 0.0
        self.reason = ""
        self.interrupted = False
        self._counting = frozenset(plan.count)
        self._slots: dict[str, list[asyncio.Task[None]]] = {lane.server.name: [] for lane in self.lanes}
        self._resume()

    @property
    def collapses(self) -> int:
        return sum(lane.collapses for lane in self.lanes)

    @property
    def scored(self) -> int:
        return sum(lane.scored for lane in self.lanes)

    async def go(self, progress: Progress | None = None) -> str:
        """Runs until a stop rule, a signal, or no server is left. ToolError when nothing can be sent."""
        async with client.session(self.plan.timeout) as http:
            try:
                await self._prepare(http)
                return await self._load(http, progress)
            finally:
                self.store.add(Event(now(), "health", values=self.health.values()))
                self.store.add(Event(now(), "ended", text=self.reason or "an error"))
                self.store.close()

    def stop(self, reason: str) -> None:
        """No new requests; those in flight finish. The first reason stands."""
        self.reason = self.reason or reason
        for lane in self.lanes:
            lane.stopped = lane.stopped or reason

    def interrupt(self) -> None:
        """A first signal drains, a second one ends at once."""
        if self.interrupted:
            for slots in self._slots.values():
                for slot in slots:
                    slot.cancel()
        self.interrupted = True
        self.stop("interrupted")

    async def lost(self, server: Server, why: str) -> None:
        """Stops every server on the card, says what was in flight, and gives that a while to end."""
        hit = [lane for lane in self.lanes if lane.server.card == server.card and not lane.stopped.startswith("lost")]
        for lane in hit:
            lane.stopped = f"lost: {why}"
            flying = tuple(sorted(lane.in_flight))
            self.store.add(Event(now(), "lost", lane.server.name, lane.server.card, why, flying))
        if hit:
            asyncio.get_running_loop().call_later(self.plan.watch.grace, self._cut, hit)

    def _cut(self, lanes: list[Lane]) -> None:
        for lane in lanes:
            for slot in self._slots[lane.server.name]:
                slot.cancel()

    def _resume(self) -> None:
        numbers: dict[str, list[int]] = {lane.server.name: [] for lane in self.lanes}
        lanes = {lane.server.name: lane for lane in self.lanes}
        spent = _Sessions(self.store.folder)
        for done in store.read(self.store.folder, "generations", _Number):
            spent.saw(done.end)
            if done.n >= 0 and done.server in lanes:
                numbers[done.server].append(done.n)
                lane = lanes[done.server]
                lane.scored += not done.error
                lane.errors += bool(done.error)
                lane.collapses += bool(self._counting.intersection(done.kinds))
        for lane in self.lanes:
            lane.resume(numbers[lane.server.name])
            lane.warming = self.plan.warmup
        self.used = spent.seconds

    async def _prepare(self, http: aiohttp.ClientSession) -> None:
        for lane in self.lanes:
            lane.model = await client.model(http, lane.server)
        self.began = now()
        finished = sum(lane.position for lane in self.lanes)
        self.store.add(Event(self.began, "began", text=f"goes on at {finished}" if finished else "begins"))

    async def _load(self, http: aiohttp.ClientSession, progress: Progress | None) -> str:
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signum, self.interrupt)
        watchers = [watch.Watcher(http, lane.server, self.store.add) for lane in self.lanes]
        for watcher in watchers:
            await watcher.look()  # before the first request: what the counters show at the end is this run's
        beside = [watcher.forever(self.plan.watch.seconds) for watcher in watchers]
        if self.plan.watch.command:
            beside.append(watch.log(self.plan.watch, self.plan.server, self.lost))
        watching = asyncio.gather(*beside, self.health.lag(), self._tick(progress))
        work = asyncio.gather(*(self._lane(http, lane) for lane in self.lanes))
        try:
            await asyncio.wait([work, watching], return_when=asyncio.FIRST_COMPLETED)
            for part in (watching, work):
                if part.done():
                    part.result()
        finally:
            work.cancel()
            watching.cancel()
            await asyncio.gather(work, watching, return_exceptions=True)
            for signum in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(signum)
        for watcher in watchers:
            await watcher.look()
        self.reason = self.reason or self._why_lanes_ended()
        return self.reason

    def _why_lanes_ended(self) -> str:
        reasons = {lane.server.name: lane.stopped or "complete" for lane in self.lanes}
        if set(reasons.values()) == {"complete"}:
            return "complete"
        return "; ".join(f"{name}: {reason}" for name, reason in reasons.items())

    async def _lane(self, http: aiohttp.ClientSession, lane: Lane) -> None:
        slots = self._slots[lane.server.name]
        url, head = lane.server.url + protocol.path(lane.server), client.headers(lane.server)

        async def slot(once: bool) -> None:
            free = now()
            while (n := lane.next()) is not None:
                free = await self._one(http, lane, n, url, head, free)
                if once:
                    break

        while True:
            slots[:] = [asyncio.create_task(slot(bool(self.plan.batches))) for _ in range(self.plan.concurrency)]
            for result in await asyncio.gather(*slots, return_exceptions=True):
                if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                    raise result
            if lane.stopped or not self.plan.batches or (lane.upcoming >= lane.limit and not lane.holes):
                return

    async def _one(
        self, http: aiohttp.ClientSession, lane: Lane, n: int, url: str, head: dict[str, str], free: float
    ) -> float:
        """Sends request `n`, writes down what came, and returns when the slot was free again.

        One that is cancelled leaves no record: the event of a lost card names it, and a resumed run sends it again.
        """
        body = protocol.request(self.plan, lane.server, lane.model, self.prompts[n], n)
        start = now()
        lane.in_flight[n] = start
        try:
            reply = await client.generate(http, url, head, body)
        finally:
            del lane.in_flight[n]
        if reply.error.startswith(client.UNREACHED):
            return await self._unreached(lane, n, reply)
        if lane.away_since:
            lane.away_since = 0.0
            self._event("reachable", lane, "answers again")
        self._record(lane, n, free, start, reply)
        self.health.delay(start - free)
        free = reply.end
        if reply.error:
            free = await self._after_error(lane, reply)
        else:
            lane.failures = 0
        return free

    def _record(self, lane: Lane, n: int, planned: float, start: float, reply: Reply) -> None:
        text = reply.text
        # A server that fails to say NaN in JSON did compute it: that is a scored collapse, not a lost request.
        scored = not reply.error or reply.nan
        result = score(text, self.plan.limits, (float("nan"),) if reply.nan else None)
        kinds = () if not scored else ("nan",) if reply.error else result.kinds
        failed = bool(kinds) or bool(reply.error)
        record = Generation(
            n=n,
            server=lane.server.name,
            card=lane.server.card,
            position=lane.position if n >= 0 else 0,
            planned=round(planned, 4),
            start=round(start, 4),
            end=round(reply.end, 4),
            first=round(reply.first, 4),
            prompt_tokens=reply.prompt_tokens,
            tokens=reply.tokens or (reply.pieces if lane.server.stream and not reply.error else 0),
            finish=reply.finish,
            status=reply.status,
            error="" if scored else reply.error,
            run=result.run,
            char=result.char if result.run >= self.plan.limits.run else "",
            period=result.period,
            cycle=result.cycle,
            entropy=result.entropy,
            kinds=kinds,
            chars=len(text),
            text=text[-KEPT_TEXT:] if failed else "",
        )
        self.store.add(record)
        if n < 0:
            return
        lane.position += 1
        lane.scored += scored
        lane.errors += not scored
        if self._counting.intersection(kinds):
            lane.collapses += 1
            if 0 < self.plan.stop.collapses <= self.collapses:
                self.stop(f"{self.collapses} collapses")

    async def _unreached(self, lane: Lane, n: int, reply: Reply) -> float:
        """What was never sent is no generation: its number is used again, and a server that stays away is given up."""
        if n >= 0:
            lane.holes.append(n)
        if not lane.away_since:
            lane.away_since = reply.end
            self._event("unreachable", lane, reply.error)
        elif reply.end - lane.away_since > self.plan.watch.down and not lane.stopped:
            lane.stopped = f"down for {self.plan.watch.down:g} s: {reply.error}"
            self._event("down", lane, lane.stopped)
        await asyncio.sleep(min(1.0, self.plan.watch.down / 10))
        return now()

    async def _after_error(self, lane: Lane, reply: Reply) -> float:
        """A device that says it is lost is left alone; a server that only fails is not hammered."""
        if "DEVICE_LOST" in reply.error:
            await self.lost(lane.server, reply.error)
        lane.failures += 1
        if not lane.stopped and lane.failures > self.plan.concurrency:
            await asyncio.sleep(min(10.0, 0.05 * 2 ** min(8, lane.failures // self.plan.concurrency)))
        return now()

    def _event(self, kind: str, lane: Lane, text: str) -> None:
        self.store.add(Event(now(), kind, lane.server.name, lane.server.card, text))

    async def _tick(self, progress: Progress | None) -> None:
        """Once a second: the time limit, the screen; now and then the client's health and the disk."""
        synced = now()
        while True:
            spent = self.used + now() - self.began
            if 0 < self.plan.stop.seconds <= spent and not self.reason:
                self.stop(f"{self.plan.stop.seconds:g} s")
            if progress:
                progress(self)
            if now() - synced > 10:
                synced = now()
                self.store.add(Event(now(), "health", values=self.health.values()))
                await asyncio.to_thread(self.store.sync)
            left = self.plan.stop.seconds - spent if self.plan.stop.seconds > spent else 1.0
            await asyncio.sleep(max(0.01, min(1.0, left)))


class _Sessions:
    """How long earlier sessions loaded the servers: from each one's beginning to the last sign of it."""

    def __init__(self, folder: Path) -> None:
        known = list(store.read(folder, "events", Event))
        self._began = sorted(event.t for event in known if event.kind == "began")
        self._last = list(self._began)
        for event in known:
            self.saw(event.t)

    def saw(self, t: float) -> None:
        session = bisect.bisect_right(self._began, t) - 1
        if session >= 0:
            self._last[session] = max(self._last[session], t)

    @property
    def seconds(self) -> float:
        return sum(self._last) - sum(self._began)
