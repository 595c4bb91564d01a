"""Table -> Analysis: what the runs say, as values. Pure; prints and draws nothing.

A clean run is one of which enough was judged: what failed, was withheld or was too short says nothing either way, and
beyond a stated share of it there is no verdict. A collapse that was seen stays one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from esimd_soak.load import identity, watch
from esimd_soak.load.health import trouble
from esimd_soak.load.sessions import Sessions
from esimd_soak.model import Finding, ToolError
from esimd_soak.score import KINDS
from esimd_soak.store.records import Event
from esimd_soak.store.table import RunTable, ServerGroup

from . import acceptance, drafts, registration
from .acceptance import Acceptance
from .drafts import Counts
from .part import ServerPart, part, sequence

QUIET = ("health", "began", "served")
"""Events that no reader asks for."""


@dataclass(frozen=True, slots=True)
class Counters:
    """What a server's own counters said during the run."""

    run: str
    server: str
    most_running: int
    most_waiting: int
    speculation: Acceptance | None
    """None: no speculative decoding, or nothing drafted that the server tells of."""


@dataclass(frozen=True, slots=True)
class Analysis:
    runs: list[dict[str, Any]]
    servers: list[ServerPart]
    cards: list[ServerPart]
    counted: tuple[str, ...]
    events: list[tuple[str, Event]]
    troubles: list[str]
    """Why the numbers are not to be trusted."""
    missing: list[str]
    """Why a clean result would say too little: what was not seen."""
    departed: list[str]
    """Where the runs depart from what was registered of them."""
    served: dict[str, dict[str, str]]
    """`run / server` -> what it said that it serves."""
    warm: int
    counters: list[Counters] = field(default_factory=list)

    @property
    def scored(self) -> int:
        return sum(part.collapses.generations for part in self.servers if part.collapses)

    @property
    def collapses(self) -> int:
        return sum(part.collapses.events for part in self.servers if part.collapses)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the servers; what is wrong with the measurement is in `troubles` and `missing`."""
        found = [
            Finding("collapse", part.run, part.collapses.words(), part.name)
            for part in self.servers
            if part.collapses and part.collapses.events
        ]
        codes = {"lost": "device-lost", "corrupted": "nan-logits", "down": "server-down"}
        found += [
            Finding(codes[event.kind], run, event.text, event.server)
            for run, event in self.events
            if event.kind in codes
        ]
        found += [
            Finding("acceptance-collapse", one.run, f"{one.speculation.kind}: {one.speculation.meaning}", one.server)
            for one in self.counters
            if one.speculation and one.speculation.collapsed
        ]
        return tuple(found)

    @property
    def exit_code(self) -> int:
        """0 clean, 1 findings, 2 nothing measured, not to be trusted, or clean as far as too little was seen."""
        if not self.scored or self.troubles:
            return 2
        if self.findings:
            return 1
        return 2 if self.missing else 0


def analyse(table: RunTable, kinds: tuple[str, ...] = ()) -> Analysis:
    """`kinds`: what counts as a collapse; by default what the plans say, which must then agree."""
    plans = [tuple(meta.plan.get("count", KINDS)) for meta in table.metas]
    counted = kinds or (plans[0] if len(set(plans)) == 1 else KINDS)
    different = not kinds and len(set(plans)) > 1
    troubles = ["the plans count different kinds as collapses; all are counted"] if different else []
    cards: dict[tuple[str, str], list[ServerGroup]] = {}
    for group in table.groups:
        cards.setdefault((group.run, group.card), []).append(group)
    servers = [_part(table, [group], group.server, counted) for group in table.groups]
    return Analysis(
        runs=[{**meta.plan, "id": meta.id, "name": meta.name} for meta in table.metas],
        servers=servers,
        cards=[_part(table, groups, card, counted) for (_, card), groups in cards.items()],
        counted=counted,
        events=[(run, event) for run, event in table.events if event.kind not in QUIET],
        troubles=troubles + _troubles(table),
        missing=_missing(table, servers),
        departed=_departed(table, servers, counted),
        served={f"{run} / {e.server}": e.facts for run, e in table.events if e.kind == "served"},
        warm=table.warm,
        counters=_counters(table),
    )


def sequences(table: RunTable, counted: tuple[str, ...]) -> dict[str, Any]:
    """Card -> one truth value a judged generation, in order, server after server: did it collapse?"""
    import numpy as np

    found: dict[str, list[Any]] = {}
    for group in table.groups:
        found.setdefault(group.card, []).append(sequence(group, counted))
    return {card: np.concatenate(parts) for card, parts in found.items()}


def _part(table: RunTable, groups: list[ServerGroup], name: str, counted: tuple[str, ...]) -> ServerPart:
    run = groups[0].run
    sessions = Sessions.of(event for of, event in table.events if of == run)
    errors: dict[str, int] = {}
    for group in groups:
        for kind, count in table.errors.get((group.run, group.server), {}).items():
            errors[kind] = errors.get(kind, 0) + count
    limits = table.plan(run).get("goodput", {})
    return part(groups, name, counted, errors, sessions.began, sessions.still, limits)


def _troubles(table: RunTable) -> list[str]:
    health: dict[str, list[Event]] = {}
    found = []
    for run, event in table.events:
        if event.kind in ("health", "began"):
            health.setdefault(run, []).append(event)
        if event.kind == "changed":
            found.append(f"{run} / {event.server}: what is served changed: {event.text}")
        if event.kind == "unwatched":
            found.append(f"{run}: {event.text}")
    for run, events in health.items():
        # Each session has its own histograms, so its last word is about the whole of it.
        last = [a for a, b in zip(events, [*events[1:], None], strict=True) if b is None or b.kind == "began"]
        found += [f"{run}: the client was the bottleneck: {why}" for event in last if (why := trouble(event.values))]
    return found


def _missing(table: RunTable, servers: list[ServerPart]) -> list[str]:
    found = []
    for one in servers:
        least = table.plan(one.run).get("judged", 0.0)
        if one.judged < least:
            told = ", ".join(f"{kind} {count:,}" for kind, count in sorted(one.errors.items()))
            found.append(
                f"{one.run} / {one.name}: {one.judged:.1%} of {one.sent:,} requests could be judged, "
                f"{least:.0%} are wanted ({told})"
            )
    seen = {(one.run, one.name) for one in servers}
    for run, meta in zip(table.names, table.metas, strict=True):
        absent = [s["name"] for s in meta.plan.get("server", []) if (run, s["name"]) not in seen]
        found += [f"{run} / {name}: no request was answered" for name in absent]
    return found


def _departed(table: RunTable, servers: list[ServerPart], counted: tuple[str, ...]) -> list[str]:
    found = []
    for run, meta in zip(table.names, table.metas, strict=True):
        if registered := registration.of(meta.registration):
            sent = sum(one.sent for one in servers if one.run == run)
            found += registration.departures(registered, meta.name, sent, meta.plan, counted)
    return found


def untold(facts: dict[str, str], written: dict[str, str]) -> list[str]:
    """What a reader would want to know of a server, and neither a page of it told nor the plan's `facts`."""
    known = (*facts, *written)
    return [wanted for wanted in identity.WANTED if not any(wanted in key for key in known)]


def _drafted(values: Sequence[dict[str, float | None]]) -> list[Counts]:
    """Between looks at the counters, but for those between which nothing was drafted, or a server began again."""
    found = list[Counts]()
    for when, (before, after) in enumerate(itertools.pairwise(values)):
        with suppress(ToolError):
            found += [replace(one, when=when) for one in drafts.of_counters(watch.deltas(before, after))]
    return found


def _counters(table: RunTable) -> list[Counters]:
    pages: dict[tuple[str, str], list[dict[str, float | None]]] = {}
    for run, watched in table.watched:
        if watched.values:
            pages.setdefault((run, watched.server), []).append(watched.values)
    told = {(g.run, g.server): [drafts.of_replies(g.accepted, g.drafted)] for g in table.groups if g.drafted}
    found = []
    for key in dict.fromkeys((*pages, *told)):
        values = pages.get(key, [])
        running, waiting = (
            max((int(v.get(name) or 0) for v in values), default=0) for name in (watch.RUNNING, watch.WAITING)
        )
        counts = _drafted(values) or told.get(key)
        found.append(Counters(*key, running, waiting, acceptance.diagnose(counts) if counts else None))
    return found
