"""Analysis -> text for people, as lists of lines. Prints nothing, reads nothing."""

from __future__ import annotations

from collections.abc import Sequence

from esimd_soak.judge import acceptance
from esimd_soak.judge.analysis import Analysis, Counters, untold
from esimd_soak.judge.part import ServerPart
from esimd_soak.judge.speed import Latencies, Speed

FACTS = 8
"""Of what a server tells, so many in the text; all are in the JSON."""


def report(found: Analysis) -> list[str]:
    """The whole report. Troubles come first: a number below them is not to be believed."""
    lines = [*warnings(found), *about(found)]
    if not found.scored:
        return [*lines, *_errors(found.servers), "nothing measured: no generation was scored"]
    lines += ["", "by server", *_parts(found.servers)]
    if any(part.servers > 1 for part in found.cards):
        lines += ["", "by card", *_parts(found.cards)]
    lines += ["", "by kind"]
    for part in found.servers:
        told = [f"{kind} {rate.events:,}" for kind, rate in part.kinds.items() if rate.events]
        lines.append(f"  {name(part)}: {', '.join(told) or 'none of any kind'}")
    lines += ["", "speed (mean; 50 / 90 / 95 / 99 % of requests within)"]
    for part in found.servers:
        lines += [f"  {name(part)}", *(f"    {line}" for line in speed(part.speed))]
    lines += ["", "clusters (a constant rate has dispersion 1 and gaps 1)"]
    lines += [f"  {name(part)}: {clusters(part)}" for part in found.servers]
    lines += _errors(found.servers)
    if found.counters:
        lines += ["", "the servers' own counters", *(f"  {counters(one)}" for one in found.counters)]
    if found.events:
        lines += ["", "events", *(f"  {run}: {e.server or '-'}: {e.kind}: {e.text}" for run, e in found.events)]
        lines += [f"    in flight: {', '.join(map(str, e.requests))}" for _, e in found.events if e.requests]
    return [*lines, "", summary(found)]


def warnings(found: Analysis) -> list[str]:
    """What stands above every number of this analysis."""
    lines = [f"NOT TO BE TRUSTED: {trouble}" for trouble in found.troubles]
    lines += [f"NOT AS REGISTERED: {departure}" for departure in found.departed]
    return lines + [f"NOT ENOUGH SEEN: {one}" for one in found.missing]


def about(found: Analysis) -> list[str]:
    """What was measured, with what load, and what counts."""
    lines = []
    for run in found.runs:
        facts = "".join(f", {key} {value}" for key, value in run.get("facts", {}).items())
        lines.append(f"{run['name']}: {load(run)}, max_tokens {run.get('max_tokens')}{facts}")
    for server, served in found.served.items():
        told = [f"{key} {value}" for key, value in served.items() if key in ("model", "version")]
        told += [f"{key} {value}" for key, value in served.items() if key not in ("model", "models", "version")]
        lines.append(f"{server} says: {', '.join(told[:FACTS])}")
    written = {key: value for run in found.runs for key, value in run.get("facts", {}).items()}
    missing = {", ".join(untold(served, written)) for served in found.served.values()} - {""}
    lines += [f"not told by a server: {what}; the plan's [facts] can hold it" for what in sorted(missing)]
    lines.append(f"a collapse is any of: {', '.join(found.counted)}; {found.warm:,} warm-up generations left out")
    return lines


def load(run: dict[str, object]) -> str:
    if rate := run.get("rate"):
        return f"{rate} requests a second ({run.get('arrivals')}), at most {run.get('concurrency')} in flight a server"
    return f"{run.get('concurrency')} in flight a server"


def summary(found: Analysis) -> str:
    """One line; several servers are added up only next to what they are."""
    parts = [
        f"{name(part)} {part.collapses.events:,}/{part.collapses.generations:,}"
        for part in found.servers
        if part.collapses
    ]
    if not parts:
        return "nothing measured: no generation was scored"
    others = sorted({finding.code for finding in found.findings} - {"collapse"})
    what = "collapse of text" if others else "collapse"
    seen = f"not enough seen, no {what} among it" if found.missing else f"no {what} seen"
    also = f"; but {', '.join(others)}" if others else ""
    return f"{'collapses' if found.collapses else seen}: {'; '.join(parts)}{also}"


def speed(found: Speed) -> list[str]:
    """Throughput, and each time with its percentiles in milliseconds."""
    lines = [
        f"{found.requests_per_second:.3g} requests/s, {found.tokens_per_second:,.0f} tok/s, "
        f"{found.seconds:,.0f} s of load"
    ]
    for words, one in (
        ("latency", found.latency),
        ("time to first token (TTFT)", found.ttft),
        ("time per output token (TPOT)", found.tpot),
        ("inter-token latency (ITL)", found.itl),
    ):
        if one:
            lines.append(f"{words}: {times(one)}")
    if good := found.goodput:
        share = good.good / good.requests if good.requests else 0.0
        lines.append(
            f"goodput ({good.limits}): {good.good:,} of {good.requests:,} = {share:.1%}, {good.per_second:.3g}/s"
        )
    return lines


def times(one: Latencies) -> str:
    values = list(map(ms, one.seconds))
    return f"{values[0]} ms; {' / '.join(values[1:])} ms"


def ms(seconds: float) -> str:
    """Milliseconds with three digits that count."""
    return f"{1000 * seconds:,.0f}" if seconds >= 0.1 else f"{1000 * seconds:.3g}"


def clusters(part: ServerPart) -> str:
    found = part.clusters
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
    if found := one.speculation:
        rate, length = acceptance.percent(found.whole.rate), acceptance.length(found.whole)
        words += f"; drafts accepted {rate}, length {length}: {found.kind}"
        words += f": {found.meaning}" if found.collapsed else ""
    return words


def _parts(parts: Sequence[ServerPart]) -> list[str]:
    lines = []
    for part in parts:
        if part.collapses is None:
            lines.append(f"  {name(part)}: nothing was scored of {part.sent:,}")
            continue
        lines.append(f"  {name(part)}: {part.collapses.words()}; {part.judged:.1%} of {part.sent:,} judged")
        lines.append(f"    {part.collapses.alone()}")
    return lines


def _errors(parts: Sequence[ServerPart]) -> list[str]:
    told = [
        f"  {name(part)}: {', '.join(f'{kind} {count:,}' for kind, count in sorted(part.errors.items()))}"
        + (f"; {part.partial:,} of these judged by what had come" if part.partial else "")
        for part in parts
        if part.errors
    ]
    return ["", "not whole, or not to be judged", *told] if told else []


def name(part: ServerPart) -> str:
    card = "" if part.card in ("", part.name) else f" on {part.card}"
    return f"{part.run} / {part.name}{card}"
