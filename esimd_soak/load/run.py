"""The load itself: Plan -> generations in a Store. Owns the event loop, the clock and the stop rules; judges no rate.

What lies between the moment at which a request could go out and the one at which it did is the client's own doing and
is recorded; with the delay of the event loop it decides whether the client measured itself.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from esimd_soak.plan import Plan, Server
from esimd_soak.store import folder as store
from esimd_soak.store.records import EndedRequest, Event

from . import client, identity, kernel, watch
from .client import now
from .health import Health
from .lane import Lane
from .outcome import Outcome
from .prompts import Prompts
from .sending import Sender
from .sessions import Sessions

if TYPE_CHECKING:
    import aiohttp

STOOD_STILL = 5.0  # seconds without a tick: the client was stopped or asleep
Progress = Callable[["Run"], None]


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
        self.still = 0.0
        self.reason = ""
        self.interrupted = False
        self._counting = frozenset(plan.count)
        self._known: dict[str, dict[str, str]] = {}
        self._senders = [
            Sender(plan, lane, self.prompts, self.health, self.store.add, self._judged, self.lost)
            for lane in self.lanes
        ]
        self._resume()

    @property
    def collapses(self) -> int:
        return sum(lane.collapses for lane in self.lanes)

    @property
    def scored(self) -> int:
        return sum(lane.scored for lane in self.lanes)

    @property
    def seconds(self) -> float:
        """Of load, in this and earlier sessions."""
        return self.used + now() - self.began - self.still

    async def go(self, progress: Progress | None = None) -> str:
        """Runs until a stop rule, a signal, or no server is left. ToolError when nothing can be sent."""
        async with client.session(self.plan.timeout) as http:
            try:
                await self._prepare(http)
                return await self._load(http, progress)
            finally:
                self.store.add(Event(now(), "health", values=dict(self.health.values())))
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
            for sender in self._senders:
                sender.cancel()
        self.interrupted = True
        self.stop("interrupted")

    def lost(self, server: Server, why: str) -> None:
        """Stops every server on the card, says what was in flight, and gives that a while to end."""
        hit = [
            sender
            for sender in self._senders
            if sender.lane.server.card == server.card and not sender.lane.stopped.startswith("lost")
        ]
        for sender in hit:
            lane = sender.lane
            lane.stopped = f"lost: {why}"
            flying = tuple(sorted(lane.in_flight))
            self.store.add(Event(now(), "lost", lane.server.name, lane.server.card, why, flying))
        for sender in hit:
            asyncio.get_running_loop().call_later(self.plan.watch.grace, sender.cancel)

    def _unwatched(self, why: str) -> None:
        self.store.add(Event(now(), "unwatched", text=why))

    def _judged(self, lane: Lane, found: Outcome) -> None:
        if self._counting.intersection(found.kinds):
            lane.collapses += 1
            if 0 < self.plan.stop.collapses <= self.collapses:
                self.stop(f"{self.collapses} collapses")

    def _resume(self) -> None:
        lanes = {lane.server.name: lane for lane in self.lanes}
        numbers: dict[str, list[int]] = {name: [] for name in lanes}
        events = list(store.read(self.store.folder, "events", Event))
        spent = Sessions.of(events)
        for event in events:
            if event.kind == "served":
                self._known[event.server] = event.facts
        for done in store.read(self.store.folder, "generations", EndedRequest):
            spent.saw(done.end)
            if done.warm or done.server not in lanes:
                continue
            lane = lanes[done.server]
            numbers[done.server].append(done.n)
            lane.scored += done.judged
            lane.errors += not done.judged
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
        await self._identify(http)

    async def _identify(self, http: aiohttp.ClientSession) -> None:
        """Writes down what each server says that it is; a change since the last time is told."""
        for lane in self.lanes:
            facts = await identity.identify(http, lane.server, lane.model)
            before = self._known.get(lane.server.name)
            gone = before is not None and len(facts) == 1 < len(before) and facts["model"] == before["model"]
            if before == facts or gone:
                continue
            server = lane.server
            self.store.add(Event(now(), "served", server.name, server.card, facts=facts))
            if before is not None:
                changed = "; ".join(identity.differences(before, facts))
                self.store.add(Event(now(), "changed", server.name, server.card, changed))
            self._known[server.name] = facts

    async def _load(self, http: aiohttp.ClientSession, progress: Progress | None) -> str:
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signum, self.interrupt)
        watchers = [watch.ServerWatcher(http, lane.server, self.store.add) for lane in self.lanes]
        for watcher in watchers:
            await watcher.look()  # before the first request: what the counters show at the end is this run's
        beside = [watcher.forever(self.plan.watch.seconds) for watcher in watchers]
        if self.plan.watch.command:
            beside.append(kernel.log(self.plan.watch, self.plan.server, self.lost, self._unwatched))
        watching = asyncio.gather(*beside, self.health.lag(), self._tick(progress))
        work = asyncio.gather(*(sender.go(http) for sender in self._senders))
        try:
            await asyncio.wait([work, watching], return_when=asyncio.FIRST_COMPLETED)
            for part in (watching, work):
                if part.done():
                    part.result()
        finally:
            for sender in self._senders:
                sender.cancel()
            work.cancel()
            watching.cancel()
            await asyncio.gather(work, watching, return_exceptions=True)
            for signum in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(signum)
        for watcher in watchers:
            await watcher.look()
        await self._identify(http)
        for sender in self._senders:
            if sender.lane.held:
                sender.event("held back", f"{sender.lane.held} arrivals waited: {self.plan.concurrency} were in flight")
        self.reason = self.reason or self._why_lanes_ended()
        return self.reason

    def _why_lanes_ended(self) -> str:
        reasons = {lane.server.name: lane.stopped or "complete" for lane in self.lanes}
        if set(reasons.values()) == {"complete"}:
            return "complete"
        return "; ".join(f"{name}: {reason}" for name, reason in reasons.items())

    async def _tick(self, progress: Progress | None) -> None:
        """Once a second: the time limit, the screen; now and then the client's health and the disk."""
        synced = before = now()
        while True:
            if (slept := now() - before) > STOOD_STILL:
                self.still += slept
                self.store.add(Event(now(), "paused", text="the client stood still", values={"seconds": slept}))
            before = now()
            spent = self.seconds
            if 0 < self.plan.stop.seconds <= spent and not self.reason:
                self.stop(f"{self.plan.stop.seconds:g} s")
            if progress:
                progress(self)
            if now() - synced > 10:
                synced = now()
                self.store.add(Event(now(), "health", values=dict(self.health.values())))
                await asyncio.to_thread(self.store.sync)
            left = self.plan.stop.seconds - spent if self.plan.stop.seconds > spent else 1.0
            await asyncio.sleep(max(0.01, min(1.0, left)))
