"""How far a run is: a line that is drawn again on a terminal, one every half minute elsewhere. Writes to stderr."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from esimd_soak.load.run import Run

EVERY = 30.0  # seconds between two lines where there is no terminal


def terminal() -> Callable[[Run], None]:
    def show(soak: Run) -> None:
        click.echo(f"\r\033[K{words(soak)}", nl=False, err=True)

    return show


def lines() -> Callable[[Run], None]:
    last = 0.0

    def show(soak: Run) -> None:
        nonlocal last
        if soak.seconds - soak.used >= last + EVERY:
            last = soak.seconds - soak.used
            click.echo(words(soak), err=True)

    return show


def words(soak: Run) -> str:
    """`card0 3/1,204  errors 0  12.3/s  41 %, 0:12:30 left`"""
    parts = [f"{lane.server.name} {lane.collapses}/{lane.scored:,}" for lane in soak.lanes]
    errors = sum(lane.errors for lane in soak.lanes)
    done, seconds = sum(lane.position for lane in soak.lanes), soak.seconds
    parts += [f"errors {errors:,}", f"{done / seconds:.1f}/s" if seconds > 0 else "-"]
    share = fraction(soak)
    if 0 < share < 1:
        parts.append(f"{share:.0%}, {clock(seconds / share - seconds)} left")
    return "  ".join(parts)


def fraction(soak: Run) -> float:
    """The share of the run that is over, by whichever stop rule comes first; 0 when nothing tells."""
    shares = [soak.seconds / soak.plan.stop.seconds] if soak.plan.stop.seconds else []
    if wanted := soak.plan.generations * len(soak.lanes):
        shares.append(sum(lane.position for lane in soak.lanes) / wanted)
    return max(shares, default=0.0)


def clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
