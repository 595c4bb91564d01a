"""Verdict -> text, and a plain document for JSON. Prints nothing."""

from __future__ import annotations

from typing import Any

import msgspec

from esimd_soak.judge import clusters, stats
from esimd_soak.judge.compare import Arm, ComparisonVerdict
from esimd_soak.judge.part import percent
from esimd_soak.judge.stats import Interval


def lines(verdict: ComparisonVerdict) -> list[str]:
    """The comparison in words, the effect before the p-value."""
    found, blocks = verdict.found, verdict.blocks
    told = [f"NOT AS REGISTERED: {departure}" for departure in verdict.departed]
    for x in (verdict.a, verdict.b):
        interval, how = _interval(x)
        told.append(
            f"{x.name}: {x.events:,}/{x.generations:,} = {percent(x.events / x.generations, 3)} "
            f"(95 % {percent(interval.low)} to {percent(interval.high)}, {how})"
        )
        if len(x.parts) > 1:
            told += [f"  {part.card}: {part.collapses.words()}" for part in x.parts if part.collapses]
    difference = blocks.difference_interval if blocks else found.difference_interval
    ratio = blocks.ratio_interval if blocks else found.ratio_interval
    low, high = (100 * value for value in (difference.low, difference.high))
    how = "by blocks" if blocks else "Newcombe"
    told.append(f"difference B - A: {100 * found.difference:+.3f} points (95 % {low:+.3f} to {high:+.3f}, {how})")
    if found.ratio is not None and ratio is not None:
        told.append(f"ratio B / A: {found.ratio:.2f} (95 % {ratio.low:.2f} to {ratio.high:.2f})")
    if blocks:
        told.append(
            f"permutation of {blocks.blocks} blocks p = {blocks.p:.2g}, design effect {blocks.effect:.1f}: "
            "bursts count once"
        )
    alone = "were each collapse alone: " if blocks else ""
    told.append(f"{alone}two-proportion z = {found.z:.2f}, p = {found.p:.2g}; Fisher exact p = {found.fisher:.2g}")
    told += [f"note: {note}" for note in verdict.notes]
    return [*told, verdict.summary]


def document(verdict: ComparisonVerdict) -> dict[str, Any]:
    sides = [{"name": x.name, "events": x.events, "generations": x.generations} for x in (verdict.a, verdict.b)]
    return {
        "version": 2,
        "arms": sides,
        "different": None if verdict.departed else verdict.different,
        "p": verdict.p,
        "level": verdict.level,
        "as_registered": None if verdict.registration is None else not verdict.departed,
        "departed": verdict.departed,
        "notes": verdict.notes,
        "blocks": msgspec.to_builtins(verdict.blocks),
        **msgspec.to_builtins(verdict.found),
    }


def _interval(x: Arm) -> tuple[Interval, str]:
    if not x.sequences:
        return stats.clopper_pearson(x.events, x.generations), "exact"
    found = clusters.spread(clusters.join([clusters.cut(values) for values in x.sequences.values()]))
    return found.interval, f"by {found.blocks} blocks"
