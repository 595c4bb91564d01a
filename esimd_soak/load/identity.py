"""What is it that is measured? A server's own words about its model, version, flags, template and guard -> facts.

Knows HTTP pages of vLLM, sglang and llama.cpp; decides nothing. Each page is asked for and may be missing: what no page
tells is not written down, and the report says so.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from esimd_soak.plan import Server

from .pages import fetch
from .reading import clean, decode, words

if TYPE_CHECKING:
    import aiohttp

PAGES = ("/version", "/server_info", "/get_server_info", "/get_model_info", "/props")
WANTED = ("version", "template", "guard")
"""What a report misses when no page tells it."""
_VOLATILE = re.compile(
    r"time|created|uptime|permission|num_gpu_blocks|num_cpu_blocks|pid\b|port\b|_slots?\b|token_usage|throughput|"
    r"internal_states|last_|memory_usage|default_generation_settings|object|address|secret|api_?key|token_ids"
)
_INFO = re.compile(r"^([\w:]+_info)\{(.*)\}\s", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
LONGEST = 200


async def identify(http: aiohttp.ClientSession, server: Server, model: str) -> dict[str, str]:
    """Fact -> value, in the server's words. Volatile values (times, ports, block counts) are left out."""
    facts = {"model": model}
    listed, _ = decode((await fetch(http, server, "/v1/models") or "").encode())
    data = listed.get("data") if isinstance(listed, dict) else None
    entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
    if entries:
        facts["models"] = clean(", ".join(words(entry.get("id")) for entry in entries))[:LONGEST]
    for entry in entries:
        if entry.get("id") == model:
            facts |= dict(_flat(entry, "model"))
    for page in PAGES:
        told, _ = decode((await fetch(http, server, page) or "").encode())
        if isinstance(told, dict):
            facts |= {key.removeprefix("version.version") or "version": value for key, value in _flat(told, page[1:])}
    if "version" not in facts and (build := facts.get("props.build_info")):
        facts["version"] = build
    for name, labels in _INFO.findall(await fetch(http, server, "/metrics") or ""):
        if not name.startswith(("python_", "process_")):
            facts |= {f"{name}.{k}": clean(v) for k, v in _LABEL.findall(labels) if not _VOLATILE.search(k)}
    return dict(sorted(facts.items()))


def _flat(value: Any, name: str, depth: int = 4) -> Iterator[tuple[str, str]]:
    """Leaves by their path; a long text, such as a chat template, by its hash."""
    if _VOLATILE.search(name.rpartition(".")[2]):
        return
    if isinstance(value, dict) and depth:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{clean(str(key))}", depth - 1)
    elif isinstance(value, str) and len(value) > LONGEST:
        yield name, f"sha256 {hashlib.sha256(clean(value).encode()).hexdigest()[:16]}, {len(value)} characters"
    elif value is not None and value != "" and not isinstance(value, (dict, list)):
        yield name, clean(str(value))
    elif isinstance(value, list) and 0 < len(value) <= 16 and all(isinstance(x, (str, int, float)) for x in value):
        yield name, clean(", ".join(map(str, value)))[:LONGEST]


def differences(a: dict[str, str], b: dict[str, str]) -> list[str]:
    """`key: this, that` for every fact that both tell and tell differently, or only one tells."""
    keys = [key for key in sorted(set(a) | set(b)) if a.get(key) != b.get(key)]
    return [f"{key}: {a.get(key, 'not told')}, then {b.get(key, 'not told')}" for key in keys]
