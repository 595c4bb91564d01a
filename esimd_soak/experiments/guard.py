"""Beside a production server: canaries and real text are scored, metrics exposed, and a confirmed collapse acted upon.

Decides with `Judge`, which is pure: events and the clock in, actions out. A single bad text is not acted on: the same
server is asked again at once, and only a collapse that stays (a poisoned server answers `!!!!` until its restart) or
a rate above the limit counts as confirmed.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from esimd_soak.load import client, outcome, protocol, watch
from esimd_soak.load.client import now
from esimd_soak.load.metrics import Metrics
from esimd_soak.load.prompts import Prompts
from esimd_soak.model import ToolError
from esimd_soak.plan import Natural, Plan, Positive, Server
from esimd_soak.score import score
from esimd_soak.store.records import Event, Watched

if TYPE_CHECKING:
    import aiohttp


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The `[guard]` table of a guard plan. Times in seconds."""

    interval: float = 60
    """Between two canaries of a server."""
    confirm: Positive = 3
    """Canaries sent at once after a collapse."""
    needed: Positive = 2
    """How many of those must collapse."""
    window: float = 600
    limit: Natural = 5
    """Collapses within the window that confirm by themselves; 0: never."""
    command: str = ""
    """Run on confirmation, with ESIMD_SOAK_SERVER, _CARD, _URL and _REASON in its environment."""
    command_timeout: float = 600
    backoff: float = 300
    """After an action, none for this long; doubled by each that follows, to `backoff_max`."""
    backoff_max: float = 7200
    calm: float = 3600
    """After so long without a collapse the back-off is as at first."""
    listen: str = "127.0.0.1:9464"
    follow: dict[str, str] = {}
    """Server name -> a file that grows by a line a real generation (JSON with `text` or `choices`); sampled."""
    sample: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0


@dataclass(slots=True)
class Judge:
    """One server's state: what was seen, when to act. Pure but for its own memory."""

    rules: Rules
    collapses: deque[float] = field(default_factory=deque)
    quiet_until: float = 0.0
    backoff: float = 0.0
    last: float = 0.0

    def saw(self, t: float, collapsed: bool) -> bool:
        """Notes one generation; True when the window's limit confirms a collapse."""
        if not collapsed:
            return False
        self.last = t
        self.collapses.append(t)
        while self.collapses and self.collapses[0] < t - self.rules.window:
            self.collapses.popleft()
        return 0 < self.rules.limit <= len(self.collapses)

    def act(self, t: float) -> bool:
        """Whether to act on a confirmed collapse now; if so, the back-off begins."""
        if t < self.quiet_until:
            return False
        calm = t - self.quiet_until > self.rules.calm
        self.backoff = self.rules.backoff if calm or not self.backoff else min(self.backoff * 2, self.rules.backoff_max)
        self.quiet_until = t + self.backoff
        self.collapses.clear()
        return True


class CardGuard:
    """Watches the servers of a plan until cancelled."""

    def __init__(self, plan: Plan, rules: Rules) -> None:
        self.plan, self.rules = plan, rules
        self.prompts = Prompts(plan)
        self.metrics = Metrics()
        self.judges = {server.name: Judge(rules) for server in plan.server}
        self._acting: set[str] = set()
        self._sent = 0
        self._tasks: set[asyncio.Task[None]] = set()
        unknown = set(rules.follow) - set(self.judges)
        if unknown:
            raise ToolError(f"[guard.follow] names {sorted(unknown)[0]}, which is no server of the plan")

    async def go(self) -> None:
        from aiohttp import web

        app = web.Application()
        app.router.add_get("/metrics", self._page)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        host, _, port = self.rules.listen.rpartition(":")
        try:
            await web.TCPSite(runner, host or "127.0.0.1", int(port)).start()
        except (OSError, ValueError, OverflowError) as error:
            raise ToolError(f"cannot listen on {self.rules.listen}: {error}", "guard.listen") from None
        try:
            async with client.session(self.plan.timeout) as http:
                await asyncio.gather(*(self._server(http, server) for server in self.plan.server))
        finally:
            await runner.cleanup()

    async def _page(self, _: aiohttp.web.Request) -> aiohttp.web.Response:
        from aiohttp import web

        return web.Response(body=self.metrics.page(), headers={"Content-Type": self.metrics.content_type})

    async def _server(self, http: aiohttp.ClientSession, server: Server) -> None:
        self.metrics.begin(server)
        beside = [
            watch.ServerWatcher(http, server, lambda seen: self._saw(server, seen)).forever(self.plan.watch.seconds)
        ]
        if server.name in self.rules.follow:
            beside.append(self._real(http, server, Path(self.rules.follow[server.name])))
        await asyncio.gather(self._canaries(http, server), *beside)

    async def _canaries(self, http: aiohttp.ClientSession, server: Server) -> None:
        while True:
            if server.name not in self._acting and await self.canary(http, server):
                await self._confirm(http, server)
            await asyncio.sleep(self.rules.interval)

    async def canary(self, http: aiohttp.ClientSession, server: Server) -> bool:
        """One canary; True when it collapsed. An error is counted, and is no collapse."""
        self._sent += 1
        number = self._sent
        try:
            name = await client.model(http, server)
            body = protocol.request(self.plan, server, name, self.prompts[number], number)
        except ToolError:
            self.metrics.count("errors", server, "unreachable")
            return False
        began = now()
        reply = await client.generate(http, server.url + protocol.path(server), client.headers(server), body)
        found = outcome.judge(reply, self.plan, self.prompts[number])
        if (reply.error and not reply.nan) or not found.judged:
            self.metrics.count("errors", server, (reply.error or found.unjudged).split(":")[0])
        if not found.judged or (reply.error and not found.kinds):
            return False
        self.metrics.seconds(server, reply.end - began)
        return self._judge(server, found.kinds)

    def _judge(self, server: Server, kinds: tuple[str, ...]) -> bool:
        counted = tuple(kind for kind in kinds if kind in self.plan.count)
        self.metrics.generation(server, counted, now())
        if self.judges[server.name].saw(now(), bool(counted)):
            self._act(server, f"{len(self.judges[server.name].collapses)} collapses in {self.rules.window:g} s")
        return bool(counted)

    async def _confirm(self, http: aiohttp.ClientSession, server: Server) -> None:
        again = await asyncio.gather(*(self.canary(http, server) for _ in range(self.rules.confirm)))
        if sum(again) >= self.rules.needed:
            self._act(server, f"{sum(again)} of {len(again)} canaries collapsed again at once")

    def _act(self, server: Server, reason: str) -> None:
        self.metrics.count("confirmed", server)
        judge = self.judges[server.name]
        if server.name in self._acting or not judge.act(now()):
            self.metrics.count("actions", server, "held back")
        elif not self.rules.command:
            self.metrics.count("actions", server, "none set")
        else:
            self._acting.add(server.name)
            task = asyncio.create_task(self._command(server, reason))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _command(self, server: Server, reason: str) -> None:
        about = {"SERVER": server.name, "CARD": server.card, "URL": server.url, "REASON": reason}
        environment = {**os.environ, **{f"ESIMD_SOAK_{key}": value for key, value in about.items()}}
        try:
            process = await asyncio.create_subprocess_shell(self.rules.command, env=environment)
            code = await asyncio.wait_for(process.wait(), self.rules.command_timeout)
            self.metrics.count("actions", server, "done" if code == 0 else "failed")
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()
            self.metrics.count("actions", server, "timed out")
        finally:
            self._acting.discard(server.name)

    async def _real(self, http: aiohttp.ClientSession, server: Server, path: Path) -> None:
        from esimd_soak.judge import rescore

        async for number, line in follow(path):
            if number % max(1, round(1 / self.rules.sample)):
                continue
            try:
                for text in rescore.texts(line, str(path)):
                    if self._judge(server, score(text, self.plan.limits).kinds):
                        await self._confirm(http, server)
            except ToolError:
                self.metrics.count("errors", server, "unreadable")

    def _saw(self, server: Server, seen: Event | Watched) -> None:
        if isinstance(seen, Watched):
            self.metrics.up(server, seen.healthy)
        elif seen.kind == "corrupted":
            self.metrics.count("corrupted", server, more=sum(value or 0.0 for value in seen.values.values()))


async def follow(path: Path, every: float = 0.2) -> AsyncIterator[tuple[int, bytes]]:
    """The lines that a file gains from now on, numbered; starts over when the file is replaced or cut."""
    place, number, rest = (path.stat().st_size if path.exists() else 0), 0, b""
    while True:
        size = path.stat().st_size if path.exists() else 0
        if size < place:
            place, rest = 0, b""
        if size > place:
            with path.open("rb") as file:
                file.seek(place)
                data = file.read(2**20)
            place += len(data)
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                number += 1
                if line.strip():
                    yield number, line
        else:
            await asyncio.sleep(every)


def load(path: str) -> tuple[Plan, Rules]:
    """A plan with a `[guard]` table; it needs no stop rule."""
    from esimd_soak import plan as planning

    document: dict[str, Any] = planning.document(path)
    guard = document.pop("guard", {})
    try:
        rules = msgspec.convert(guard, Rules)
    except msgspec.ValidationError as error:
        raise ToolError(f"[guard] is wrong: {error}", path) from None
    # A guard has no end, a plan must have one; no soak reads this number.
    return planning.make({"stop": {"generations": 1}, "max_tokens": 64, "timeout": 120, **document}, path), rules
