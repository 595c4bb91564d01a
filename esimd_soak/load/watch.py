"""Watches servers besides the load: their counters and their health. Tells what it saw through one callback.

Knows the counters of vLLM, sglang and llama.cpp, under vLLM's names; decides nothing.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from esimd_soak.model import ToolError
from esimd_soak.plan import Server
from esimd_soak.store.records import Event, Watched

from .client import now
from .pages import fetch

if TYPE_CHECKING:
    import aiohttp

Tell = Callable[[Event | Watched], None]
RUNNING, WAITING, TOKENS = "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:generation_tokens"
CORRUPTED = "vllm:corrupted_requests"
_VLLM = (
    CORRUPTED,
    RUNNING,
    WAITING,
    TOKENS,
    "vllm:num_preemptions",
    "vllm:spec_decode_num_drafts",
    "vllm:spec_decode_num_draft_tokens",
    "vllm:spec_decode_num_accepted_tokens",
    "vllm:spec_decode_num_accepted_tokens_per_pos",
)
# A server's name -> ours; the names are the same with and without `_total`.
WANTED = {name: name for name in _VLLM} | {
    "sglang:num_running_reqs": RUNNING,
    "sglang:num_queue_reqs": WAITING,
    "sglang:generation_tokens": TOKENS,
    "sglang:spec_verify_calls": "vllm:spec_decode_num_drafts",
    "sglang:spec_accept_length": "sglang:spec_accept_length",
    "sglang:spec_accept_rate": "sglang:spec_accept_rate",
    "llamacpp:requests_processing": RUNNING,
    "llamacpp:requests_deferred": WAITING,
    "llamacpp:tokens_predicted": TOKENS,
}
GAUGES = frozenset({RUNNING, WAITING, "sglang:spec_accept_length", "sglang:spec_accept_rate"})
_AVERAGED = frozenset({"sglang:spec_accept_length", "sglang:spec_accept_rate"})
OF = "@"
_LINE = re.compile(r"^(?:# TYPE )?(" + "|".join(WANTED) + r")(?:_total)?[ {]")


def counters(text: str) -> dict[str, float]:
    """The wanted values of a Prometheus page: `name` or `name[position]`, without `_total`, summed over engines, and
    where there are several, `name@engine` of each.

    Only those lines reach the parser: a page of vLLM has hundreds, and parsing them all would delay the load. A value
    that is not finite is none. ToolError for what is no such page.
    """
    from prometheus_client.parser import text_string_to_metric_families

    lines = [line for line in text.splitlines() if _LINE.match(line)]
    found: dict[str, dict[str, float]] = {}
    try:
        for family in text_string_to_metric_families("\n".join(lines) + "\n"):
            for sample in family.samples:
                name = WANTED.get(sample.name.removesuffix("_total"), "")
                if name and math.isfinite(sample.value):
                    labels = dict(sample.labels)
                    key = f"{name}[{labels.pop('position')}]" if "position" in labels else name
                    engine = ", ".join(f"{label} {value}" for label, value in sorted(labels.items()))
                    found.setdefault(key, {})[engine] = sample.value
    except (ValueError, KeyError, IndexError) as error:
        raise ToolError(f"expected Prometheus text: {error}") from None
    values = {key: sum(of.values()) / (len(of) if key in _AVERAGED else 1) for key, of in found.items()}
    each = {f"{key}{OF}{engine}": value for key, of in found.items() if len(of) > 1 for engine, value in of.items()}
    return values | each


def engines(values: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Of what `counters` gave, the part of each engine, where there are several."""
    found: dict[str, dict[str, float]] = {}
    for key, value in values.items():
        name, of, engine = key.partition(OF)
        if of:
            found.setdefault(engine, {})[name] = value
    return found


def deltas(before: Mapping[str, float | None], after: Mapping[str, float | None]) -> dict[str, float]:
    """What was counted in between; gauges as they stand at the end.

    A counter that fell was reset by a restart: ToolError, there is no difference.
    """
    found = {}
    for key, value in after.items():
        first = before.get(key) or 0.0
        if value is None:
            continue
        gauge = key.partition(OF)[0] in GAUGES
        if not gauge and value < first:
            raise ToolError(f"{key} fell from {first:g} to {value:g}: the server was restarted in between")
        found[key] = value if gauge else value - first
    for key in set(before) - set(after):
        if key.partition(OF)[0] not in GAUGES and before[key]:
            raise ToolError(f"{key} fell from {before[key]:g} to nothing: the server was restarted in between")
    return found


class ServerWatcher:
    """Looks at one server again and again; tells changes as events, once each."""

    def __init__(self, http: aiohttp.ClientSession, target: Server, seen: Tell) -> None:
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
        self._tell(Watched(now(), self._target.name, up, dict(values)))
        if up != self._healthy:
            self._healthy = up
            self._event("healthy" if up else "unhealthy", "answers /health again" if up else "does not answer /health")
        if values:
            self._compare(values)

    def _compare(self, values: dict[str, float]) -> None:
        if values.get(TOKENS, 0) < self._last.get(TOKENS, 0):
            self._event("restarted", "its counters began again")
        elif (more := values.get(CORRUPTED, 0) - self._last.get(CORRUPTED, values.get(CORRUPTED, 0))) > 0:
            self._event("corrupted", f"{CORRUPTED} rose by {more:g}: it saw NaN in its logits", {CORRUPTED: more})
        self._last = values

    def _event(self, kind: str, text: str, values: dict[str, float | None] | None = None) -> None:
        self._tell(Event(now(), kind, self._target.name, self._target.card, text, values=values or {}))
