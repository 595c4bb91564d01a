"""plan.toml -> Plan: what to send where, for how long, and what counts. Reads that one file; knows no network.

A misspelt key is an error, never ignored: a soak that runs for hours with the wrong limit is worth nothing.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from esimd_soak.model import ToolError

from .score import KINDS, Limits

Positive = Annotated[int, msgspec.Meta(ge=1)]
Natural = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


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
    """How long a server may refuse connections before it is given up."""


class Client(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When the client's own slowness voids a run: 99th percentiles, in milliseconds."""

    late_ms: Annotated[float, msgspec.Meta(gt=0)] = 100
    lag_ms: Annotated[float, msgspec.Meta(gt=0)] = 100


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    server: list[Server]
    name: str = "run"
    seed: int = 0
    concurrency: Positive = 48
    """Requests in flight at each server."""
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
    stop: Stop = Stop()
    limits: Limits = Limits()
    watch: Watch = Watch()
    client: Client = Client()
    body: dict[str, Any] = {}
    """More fields for every request, as they stand."""
    facts: dict[str, str] = {}
    """What the numbers are of: image, driver, mode, arm, …"""

    @property
    def generations(self) -> int:
        """How many generations each server gets; 0: no such limit."""
        return self.batches * self.concurrency or self.stop.generations


def load(path: str, **changes: Any) -> Plan:
    """Reads a plan; `changes` replace keys of it. ToolError names the key that is wrong."""
    return make({**document(path), **changes}, path)


def document(path: str) -> dict[str, Any]:
    """A TOML file as plain values."""
    try:
        return msgspec.toml.decode(Path(path).read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise ToolError(f"cannot read the plan: {error.strerror}", path) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ToolError(f"expected TOML: {error}", path) from None


def make(document: dict[str, Any], where: str) -> Plan:
    """A checked plan from plain values."""
    limits = document.get("limits", {})
    try:
        if unknown := set(limits) - set(Limits.__dataclass_fields__):
            raise ToolError(f"limits: unknown key {sorted(unknown)[0]}", where)
        plan = msgspec.convert({**document, "limits": Limits(**limits)}, Plan)
    except (msgspec.ValidationError, ValueError, TypeError) as error:
        raise ToolError(f"the plan is wrong: {error}", where) from None
    servers = []
    for server in plan.server:
        name = server.name or server.url.split("//")[-1].rstrip("/")
        servers.append(msgspec.structs.replace(server, name=name, card=server.card or name, url=server.url.rstrip("/")))
    plan = msgspec.structs.replace(plan, server=servers)
    for trouble in _troubles(plan):
        raise ToolError(trouble, where)
    return plan


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
    return found


def plain(plan: Plan) -> dict[str, Any]:
    """The plan as plain values, for meta.json and for its hash."""
    return dict(msgspec.to_builtins(plan))


def digest(plan: Plan) -> str:
    """What tells two plans apart: everything but where a run stops, so that a run can be made longer."""
    told = {key: value for key, value in plain(plan).items() if key not in ("stop", "batches", "client", "watch")}
    return hashlib.sha256(msgspec.json.encode(told, order="sorted")).hexdigest()[:16]
