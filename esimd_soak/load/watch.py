"""Watches servers besides the load: their counters, their health, and the kernel log for a lost device.

Knows HTTP and a child process; tells what it saw through one callback and decides nothing.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from esimd_soak.plan import Server, Watch
from esimd_soak.store.records import Event, Watched
from esimd_soak.model import ToolError

from .client import headers, now

if TYPE_CHECKING:
    import aiohttp

Seen = Callable[[Event | Watched], None]
# Read are the counters of vLLM; the names are the same with and without `_total`.
WANTED = (
    "vllm:corrupted_requests",
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:num_preemptions",
    "vllm:generation_tokens",
    "vllm:spec_decode_num_drafts",
    "vllm:spec_decode_num_draft_tokens",
    "vllm:spec_decode_num_accepted_tokens",
    "vllm:spec_decode_num_accepted_tokens_per_pos",
)
# Only new lines: an old DEVICE_LOST is none of this run's.
KERNEL_LOG = "exec dmesg --follow-new 2>/dev/null || exec journalctl --dmesg --follow --lines=0"
_LINE = re.compile(r"^(?:# TYPE )?(" + "|".join(WANTED) + r")(?:_total)?[ {]")


def counters(text: str) -> dict[str, float]:
    """The wanted values of a Prometheus page, summed over engines: `name` or `name[position]`, without `_total`.

    Only those lines reach the parser: a page of vLLM has hundreds, and parsing them all would delay the load.
    """
    from prometheus_client.parser import text_string_to_metric_families

    lines = [line for line in text.splitlines() if _LINE.match(line)]
    found: dict[str, float] = {}
    try:
        for family in text_string_to_metric_families("\n".join(lines) + "\n"):
            for sample in family.samples:
                name = sample.name.removesuffix("_total")
                if name in WANTED:
                    key = f"{name}[{sample.labels['position']}]" if "position" in sample.labels else name
                    found[key] = found.get(key, 0.0) + sample.value
    except ValueError as error:
        raise ToolError(f"expected Prometheus text: {error}") from None
    return found


def deltas(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """What was counted in between. A counter that fell was reset by a restart: ToolError, there is no difference."""
    for key, value in before.items():
        if "num_requests_" not in key and after.get(key, 0.0) < value:
            raise ToolError(
                f"{key} fell from {value:g} to {after.get(key, 0.0):g}: the server was restarted in between"
            )
    return {key: value - before.get(key, 0.0) for key, value in after.items()}


async def fetch(http: aiohttp.ClientSession, server: Server, what: str) -> str | None:
    """The text of a page, or None when there is no such page or no server."""
    import aiohttp

    try:
        timeout = aiohttp.ClientTimeout(total=10)
        async with http.get(f"{server.url}{what}", headers=headers(server), timeout=timeout) as response:
            return await response.text() if response.status == 200 else None
    except (aiohttp.ClientError, asyncio.TimeoutError, UnicodeDecodeError):
        return None


class Watcher:
    """Looks at one server again and again; tells changes as events, once each."""

    def __init__(self, http: aiohttp.ClientSession, target: Server, seen: Seen) -> None:
        self._http, self._target, self._tell = http, target, seen
        self._healthy, self._counting = True, True
        self._last: dict[str, float] = {}

    async def forever(self, seconds: float) -> None:
        while True:
            await self.look()
            await asyncio.sleep(seconds)

    async def look(self) -> None:
        up = await fetch(self._http, self._target, "/health") is not None
        values: dict[str, float] = {}
        why = "its counters are not watched: no /metrics page"
        if up:
            try:
                values = counters(await fetch(self._http, self._target, "/metrics") or "")
            except ToolError as error:
                why = error.message
            if not values and self._counting:
                self._event("no metrics", why)
            self._counting = bool(values)
        self._tell(Watched(now(), self._target.name, up, values))
        if up != self._healthy:
            self._healthy = up
            self._event("healthy" if up else "unhealthy", "answers /health again" if up else "does not answer /health")
        if values:
            self._compare(values)

    def _compare(self, values: dict[str, float]) -> None:
        tokens, corrupted = "vllm:generation_tokens", "vllm:corrupted_requests"
        if values.get(tokens, 0) < self._last.get(tokens, 0):
            self._event("restarted", "its counters began again")
        elif (more := values.get(corrupted, 0) - self._last.get(corrupted, values.get(corrupted, 0))) > 0:
            self._event("corrupted", f"{corrupted} rose by {more:g}: it saw NaN in its logits", {corrupted: more})
        self._last = values

    def _event(self, kind: str, text: str, values: dict[str, float] | None = None) -> None:
        self._tell(Event(now(), kind, self._target.name, self._target.card, text, values=values or {}))


async def log(watch: Watch, servers: Sequence[Server], lost: Callable[[Server, str], Awaitable[None]]) -> None:
    """Runs the plan's command and reads its lines; a line that matches loses the card whose `pci` it names.

    A line that names no known card loses all of them: which one is gone cannot be told. Ends with the command.
    """
    pattern = re.compile(watch.pattern)
    process = await asyncio.create_subprocess_shell(
        KERNEL_LOG if watch.command == "kernel" else watch.command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        async for line in process.stdout:
            text = line.decode("utf-8", "replace").strip()
            if pattern.search(text):
                named = [target for target in servers if target.pci and target.pci in text]
                for target in named or servers:
                    await lost(target, text[:300])
        if code := await process.wait():
            raise ToolError(f"the command that watches the kernel log ended with {code}: {watch.command}")
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGTERM)
            await process.wait()
