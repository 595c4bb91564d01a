"""Analysis -> text for people, as lists of lines. Prints nothing, reads nothing."""

from __future__ import annotations

from collections.abc import Sequence

from esimd_soak.judge import acceptance
from esimd_soak.judge.analysis import Analysis, Counters, Part, percent
from esimd_soak.judge.stats import Clustering


def report(found: Analysis) -> list[str]:
    """The whole report. Troubles come first: a number below them is not to be believed."""
    lines = [f"NOT TO BE TRUSTED: {trouble}" for trouble in found.troubles]
    for run in found.runs:
        facts = "".join(f", {key} {value}" for key, value in run.get("facts", {}).items())
        lines.append(
            f"{run['name']}: {run.get('concurrency')} in flight a server, max_tokens {run.get('max_tokens')}{facts}"
        )
    lines.append(f"a collapse is any of: {', '.join(found.counted)}; {found.warm:,} warm-up generations left out")
    if not found.scored:
        return [*lines, *_errors(found.servers), "nothing measured: no generation was scored"]
    lines += ["", "by server", *_parts(found.servers)]
    if any(part.servers > 1 for part in found.cards):
        lines += ["", "by card", *_parts(found.cards)]
    lines += ["", "by kind"]
    for part in found.servers:
        told = [f"{kind} {rate.events:,}" for kind, rate in part.kinds.items() if rate.events]
        lines.append(f"  {_name(part)}: {', '.join(told) or 'none of any kind'}")
    lines += ["", "clusters (a constant rate has dispersion 1 and gaps 1)"]
    lines += [f"  {_name(part)}: {clusters(part)}" for part in found.servers]
    lines += _errors(found.servers)
    if found.counters:
        lines += ["", "the servers' own counters", *(f"  {counters(one)}" for one in found.counters)]
    if found.events:
        lines += ["", "events", *(f"  {run}: {e.server or '-'}: {e.kind}: {e.text}" for run, e in found.events)]
        lines += [f"    in flight: {', '.join(map(str, e.requests))}" for _, e in found.events if e.requests]
    return [*lines, "", summary(found)]


def summary(found: Analysis) -> str:
    """One line; several servers are added up only next to what they are."""
    parts = [
        f"{_name(part)} {part.collapses.events:,}/{part.collapses.generations:,}"
        for part in found.servers
        if part.collapses
    ]
    if not parts:
        return "nothing measured: no generation was scored"
    verdict = "collapses" if found.collapses else "no collapse seen"
    return f"{verdict}: {'; '.join(parts)}"


def clusters(part: Part) -> str:
    found: Clustering | None = part.clusters
    if found is None:
        events = part.collapses.events if part.collapses else 0
        return f"{events} events: too few for any test (5 needed)"
    bunched = found.dispersion_p < 0.05 or found.greenwood_p < 0.05
    verdict = "in bursts" if bunched else "no sign of bursts"
    return (
        f"{verdict}: dispersion {found.dispersion:.2f} in {found.bins} bins (p = {found.dispersion_p:.3g}), "
        f"gaps {found.greenwood:.2f} (p = {found.greenwood_p:.3g}); "
        f"median gap {found.median_gap:,.0f} generations, shortest {found.shortest_gap:,}"
    )


def counters(one: Counters) -> str:
    words = f"{one.run} / {one.server}: up to {one.most_running} running, {one.most_waiting} waiting"
    if one.speculation:
        kind = acceptance.diagnose(one.speculation)[0]
        words += (
            f"; drafts accepted {acceptance.percent(one.speculation.rate)}, length {one.speculation.length:.2f}: {kind}"
        )
    return words


def _parts(parts: Sequence[Part]) -> list[str]:
    lines = []
    for part in parts:
        if part.collapses is None:
            lines.append(f"  {_name(part)}: nothing was scored")
            continue
        wilson = f"Wilson {percent(part.collapses.wilson.low)} to {percent(part.collapses.wilson.high)}"
        speed = f"{part.tokens_per_second:,.0f} tok/s, {part.latency[0]:.3g} s median, {part.latency[1]:.3g} s p99"
        lines += [f"  {_name(part)}: {part.collapses.words()}; {wilson}", f"    {speed}, {part.seconds:,.0f} s"]
    return lines


def _errors(parts: Sequence[Part]) -> list[str]:
    told = [
        f"  {_name(part)}: {', '.join(f'{kind} {count:,}' for kind, count in sorted(part.errors.items()))}"
        for part in parts
        if part.errors
    ]
    return ["", "not scored, in no rate", *told] if told else []


def _name(part: Part) -> str:
    card = "" if part.card in ("", part.name) else f" on {part.card}"
    return f"{part.run} / {part.name}{card}"
