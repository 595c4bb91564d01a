"""plan.toml -> Plan: what to send where, for how long, and what counts. Reads that one file; knows no network.

A misspelt key is an error, never ignored: a soak that runs for hours with the wrong limit is worth nothing. So is a
limit that no answer of the plan's length can reach.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any, Literal

import msgspec

from esimd_soak.model import ToolError, contents

from .score import KINDS, SHORT, Limits

Positive = Annotated[int, msgspec.Meta(ge=1)]
Natural = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
FEWEST_TOKENS = 4
"""An answer of fewer says nothing: `!!!` is an answer."""


class Server(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One endpoint. `card` names the device behind it, alike for two servers only if they share it; `pci` is how the
    kernel log names that device."""

    url: str
    name: str = ""
    card: str = ""
    api: Literal["completions", "chat"] = "completions"
    stream: bool = True
    model: str = ""
    pci: str = ""
    compile_cache: str = ""
    key_env: str = ""
    """The environment variable that holds the API key; the key itself is never written down."""


class Stop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whatever comes first. Generations are counted for each server; 0 means no such limit."""

    seconds: Seconds = 0
    generations: Natural = 0
    collapses: Natural = 0


class Watch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the servers are watched besides the load. `command` prints log lines from now on, and goes on printing;
    `kernel` stands for the kernel log of this host."""

    seconds: Seconds = 5
    command: str = ""
    pattern: str = r"DEVICE_LOST|[Dd]evice lost|wedged|GPU HANG|[Ee]ngine reset|GT reset"
    grace: Seconds = 10
    """How long requests in flight on a lost card may still finish."""
    down: Seconds = 120
    """How long a server may refuse connections, or say that it is busy, before it is given up."""


class Client(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When the client's own slowness voids a run: 99th percentiles, in milliseconds."""

    late_ms: Annotated[float, msgspec.Meta(gt=0)] = 100
    lag_ms: Annotated[float, msgspec.Meta(gt=0)] = 100


class GoodputLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a request must keep to for it to count as served well, in milliseconds; 0: no such limit."""

    ttft_ms: Seconds = 0
    """To the first text."""
    tpot_ms: Seconds = 0
    """A token after the first."""
    latency_ms: Seconds = 0
    """To the end."""


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    server: list[Server]
    name: str = "run"
    seed: int | Literal["none"] = 0
    """Of prompts, arrivals and each request. `none`: requests carry no seed, as production's do."""
    concurrency: Positive = 48
    """Requests in flight at each server; with `rate`, the most of them."""
    rate: Seconds = 0
    """Above 0: so many requests a second arrive at each server, however many are still in flight."""
    arrivals: Literal["poisson", "constant"] = "poisson"
    ramp: Seconds = 0
    """Seconds over which the load grows to its full height."""
    batches: Natural = 0
    """Above 0: this many batches of `concurrency`, each started when the one before is complete."""
    max_tokens: Positive = 512
    temperature: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    prompts: str = "words"
    """`words`, `ids` (random token ids, exact lengths, completions only), or a file of prompts, JSON Lines."""
    prompt_lengths: str = "1-16,32,64,128,256"
    vocabulary: Positive = 500
    logprobs: bool = False
    warmup: Natural = 0
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 600
    count: tuple[str, ...] = KINDS
    """The kinds that make a generation a collapse; every kind is reported by itself as well."""
    judged: Share = 0.8
    """The least share of a server's requests that must have been judged; below it, not enough was seen."""
    stop: Stop = Stop()
    limits: Limits = Limits()
    watch: Watch = Watch()
    client: Client = Client()
    goodput: GoodputLimits = GoodputLimits()
    body: dict[str, Any] = {}
    """More fields for every request, as they stand."""
    facts: dict[str, str] = {}
    """What the numbers are of: image, driver, mode, arm, …"""
    prompts_sha256: str = ""
    """Of a file of prompts; written down, not given."""

    @property
    def generations(self) -> int:
        """How many generations each server gets; 0: no such limit."""
        return self.batches * self.concurrency or self.stop.generations

    @property
    def tokens(self) -> int:
        """The most tokens of an answer: the body may say otherwise than `max_tokens`."""
        given = [self.body.get(key) for key in ("max_tokens", "max_completion_tokens", "max_new_tokens", "n_predict")]
        return next((int(value) for value in given if isinstance(value, int) and value > 0), self.max_tokens)

    @property
    def prompt_seed(self) -> int:
        return 0 if self.seed == "none" else self.seed


def load(path: str, **changes: Any) -> Plan:
    """Reads a plan; `changes` replace keys of it. ToolError names the key that is wrong."""
    return make({**document(path), **changes}, path)


def document(path: str) -> dict[str, Any]:
    """A TOML file as plain values."""
    try:
        return msgspec.toml.decode(contents(path, "plan"), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ToolError(f"expected TOML: {error}", path) from None


def make(document: dict[str, Any], where: str) -> Plan:
    """A checked plan from plain values, its limits scaled to what an answer of its length can reach."""
    limits = document.get("limits", {})
    try:
        if not isinstance(limits, dict):
            raise ToolError(f"limits: expected a table, found {limits!r}", where)
        if unknown := set(limits) - set(Limits.__dataclass_fields__):
            raise ToolError(f"limits: unknown key {sorted(unknown)[0]}", where)
        plan = msgspec.convert(document, Plan)
    except (msgspec.ValidationError, ValueError, TypeError, RecursionError) as error:
        raise ToolError(f"the plan is wrong: {error}", where) from None
    servers = [_server(server) for server in plan.server]
    plan = msgspec.structs.replace(plan, server=servers, prompts_sha256=_content(plan))
    for trouble in [*_troubles(plan), *_unreachable(plan, limits)]:
        raise ToolError(trouble, where)
    scaled = plan.limits.scaled(plan.tokens)
    kept = {key: value for key, value in asdict(scaled).items() if key not in limits}
    return msgspec.structs.replace(plan, limits=Limits(**{**asdict(plan.limits), **kept}))


def base(url: str) -> tuple[str, str]:
    """(the base of the API, the path after /v1): what people copy from a client ends in /v1 or in the whole path."""
    found = re.fullmatch(r"(.*?)/*(?:/v1)?(?:/(chat/completions|completions|models))?/*", url.strip())
    return (found[1], found[2] or "") if found else (url, "")


def _server(server: Server) -> Server:
    url, path = base(server.url)
    name = server.name or url.split("//")[-1]
    api = "chat" if path.startswith("chat") else server.api
    return msgspec.structs.replace(server, name=name, card=server.card or name, url=url, api=api)


def _content(plan: Plan) -> str:
    return "" if plan.prompts in ("words", "ids") else hashlib.sha256(contents(plan.prompts, "prompts")).hexdigest()


def _troubles(plan: Plan) -> list[str]:
    found = []
    names = [server.name for server in plan.server]
    if not names:
        found.append("expected at least one [[server]]")
    if len(set(names)) != len(names):
        found.append(f"two servers have the same name: {', '.join(names)}; give each a `name`")
    if unknown := set(plan.count) - set(KINDS):
        found.append(f"count: unknown kind {sorted(unknown)[0]}, expected {', '.join(KINDS)}")
    for server in plan.server:
        if not server.url.startswith(("http://", "https://")):
            found.append(f"server {server.name}: expected a URL with http:// or https://, found {server.url}")
        if plan.prompts == "ids" and server.api == "chat":
            found.append(f"server {server.name}: prompts as token ids need the completions API")
    if not (plan.generations or plan.stop.seconds or plan.stop.collapses):
        found.append("nothing ends this run: set batches, or stop.seconds, stop.generations or stop.collapses")
    if plan.batches and (plan.rate or plan.ramp):
        found.append("batches wait for one another: they have neither a rate nor a ramp")
    found += [f"{key}: expected a finite number, found {value}" for key, value in _infinite(plain(plan))]
    try:
        re.compile(plan.watch.pattern)
    except re.error as error:
        found.append(f"watch.pattern: expected a regular expression, found {plan.watch.pattern!r}: {error}")
    return found


def _infinite(value: Any, key: str = "plan") -> Iterator[tuple[str, float]]:
    if isinstance(value, float) and not math.isfinite(value):
        yield key, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    for inner, one in items:
        yield from _infinite(one, f"{key}.{inner}")


def _unreachable(plan: Plan, given: dict[str, Any]) -> list[str]:
    """Limits that were asked for and that no answer can reach, when each of its tokens is one character, as `!` is."""
    if plan.tokens < FEWEST_TOKENS:
        return [f"answers of {plan.tokens} tokens cannot be judged; let them have at least {FEWEST_TOKENS}"]
    return [
        f"limits.{key} {given[key]} cannot be reached by answers of {plan.tokens} tokens, of which each may be one "
        f"character: such a server would be clean for ever. Lower it, leave it out (it is scaled), or allow more tokens"
        for key in ("run", "cycle")
        if given.get(key, 0) > plan.tokens
    ]


def warnings(plan: Plan) -> list[str]:
    """What the plan makes of its limits, for whoever starts it."""
    if plan.limits.run >= Limits().run or plan.limits.run >= plan.tokens > SHORT:
        return []
    return [
        f"the limits are scaled to answers of {plan.tokens} tokens: a run counts from {plan.limits.run} characters on, "
        f"a cycle from {plan.limits.cycle}"
    ]


def plain(plan: Plan) -> dict[str, Any]:
    """The plan as plain values, for meta.json and for its hash."""
    return dict(msgspec.to_builtins(plan))


def digest(plan: Plan) -> str:
    """What tells two plans apart: everything but where a run stops, so that a run can be made longer."""
    without = ("stop", "batches", "client", "watch", "goodput", "judged")
    told = {key: value for key, value in plain(plan).items() if key not in without}
    if plan.prompts_sha256:
        told["prompts"] = ""  # a file is what it holds, wherever it lies
    return hashlib.sha256(msgspec.json.encode(told, order="sorted")).hexdigest()[:16]
