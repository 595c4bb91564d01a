"""Analysis -> SVG, drawn by hand: no library, a few kilobytes, colours from the page's style. Knows no HTML page.

Letters do not shrink: every chart is drawn twice, for a wide page and for a narrow one, and the page shows the one that
fits (`WIDTHS`, classes `wide` and `narrow`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from html import escape
from typing import TypeVar

from esimd_soak.judge.part import ServerPart, percent

T = TypeVar("T")
WIDTHS = {"wide": 860, "narrow": 340}


def ticks(high: float, wanted: int = 5) -> list[float]:
    """Round numbers from 0 to at least `high`."""
    if high <= 0:
        return [0.0, 1.0]
    step = 10 ** math.floor(math.log10(high / wanted))
    step *= next(factor for factor in (1, 2, 5, 10) if step * factor * wanted >= high)
    return [round(i * step, 12) for i in range(math.ceil(high / step - 1e-9) + 1)]


def _twice(draw: Callable[[T, int, str], str]) -> Callable[[T], str]:
    @wraps(draw)
    def chart(what: T) -> str:
        return "".join(draw(what, width, kind) for kind, width in WIDTHS.items())

    return chart


@_twice
def rates(parts: Sequence[tuple[str, ServerPart]], width: int, kind: str) -> str:
    """A line a part: the rate, its exact interval (thick) and its Wilson interval (thin)."""
    shown = [(label, part.collapses) for label, part in parts if part.collapses]
    narrow = kind == "narrow"
    left, row, top, right = (22, 54, 10, 24) if narrow else (230, 34, 10, 90)
    scale = ticks(max(max(rate.interval.high, rate.wilson.high) for _, rate in shown), 2 if narrow else 5)
    high, bottom = scale[-1], top + row * len(shown)

    def x(value: float) -> float:
        return left + (width - left - right) * value / high

    body = []
    for tick in scale:
        body.append(_line(x(tick), top, x(tick), bottom, "grid"))
        body.append(_text(x(tick), bottom + 18, percent(tick), "middle"))
    for i, (label, rate) in enumerate(shown):
        y = top + row * (i + (0.7 if narrow else 0.5))
        words = f"{label}: {rate.words()}"
        body.append(f"<g><title>{escape(words)}</title>")
        if narrow:
            body.append(_text(left, y - 14, _short(label, 30), "start"))
        else:
            body.append(_text(left - 12, y + 4, _short(label, 32), "end"))
        body.append(_line(x(rate.interval.low), y, x(rate.interval.high), y, "thick"))
        body.append(_line(x(rate.wilson.low), y, x(rate.wilson.high), y, "thin"))
        body.append(f'<circle class="{"bad" if rate.events else "good"}" cx="{x(rate.rate):.1f}" cy="{y:.1f}" r="5"/>')
        body.append(_text(width - 4, y + (-14 if narrow else 4), f"{rate.events:,}/{rate.generations:,}", "end"))
        body.append("</g>")
    return _svg(width, kind, bottom + 28, body, "Collapse rate with 95 % intervals: by blocks (thick), Wilson (thin)")


@_twice
def time_line(part: ServerPart, width: int, kind: str) -> str:
    """Tokens a second, and under it each collapse where it ended: degenerate text may look like speed."""
    line = part.line
    assert line is not None
    left, top, height = 60, 12, 130
    scale = ticks(max(line.tokens), 3)
    total = line.width * len(line.tokens)
    bottom = top + height

    def x(seconds: float) -> float:
        return left + (width - left - 20) * seconds / total

    def y(value: float) -> float:
        return bottom - height * value / scale[-1]

    body = [_line(left, y(tick), width - 20, y(tick), "grid") for tick in scale]
    body += [_text(left - 8, y(tick) + 4, f"{tick:,.12g}", "end") for tick in scale]
    for i, value in enumerate(line.tokens):
        words = f"{value:,.0f} tok/s, {line.collapses[i]} collapses in {line.generations[i]:,} generations"
        colour = "bar worse" if line.collapses[i] else "bar"
        box = f'x="{x(i * line.width) + 0.5:.1f}" y="{y(value):.1f}" width="{x(line.width) - left - 1:.1f}"'
        body.append(f'<rect class="{colour}" {box} height="{bottom - y(value):.1f}"><title>{words}</title></rect>')
    body += [_line(x(moment), bottom + 4, x(moment), bottom + 18, "event") for moment in line.moments]
    unit, name = (1, "s") if total < 120 else (60, "min") if total < 7200 else (3600, "h")
    marks = [mark for mark in ticks(total / unit, width // 110) if mark * unit <= total * 1.001]
    body += [_text(x(mark * unit), bottom + 36, f"{mark:g} {name}", "middle") for mark in marks]
    return _svg(width, kind, bottom + 44, body, f"Tokens a second and collapses over time: {part.name}")


@_twice
def cumulative(part: ServerPart, width: int, kind: str) -> str:
    """Collapses counted up over generations; the straight line is a constant rate. Bursts are steep steps."""
    line, rate = part.line, part.collapses
    assert line is not None
    assert rate is not None
    left, top, height = 60, 12, 150
    bottom, scale = top + height, ticks(rate.events, 3)

    def x(number: float) -> float:
        return left + (width - left - 20) * number / rate.generations

    def y(value: float) -> float:
        return bottom - height * value / scale[-1]

    body = [_line(left, y(tick), width - 20, y(tick), "grid") for tick in scale]
    body += [_text(left - 8, y(tick) + 4, f"{tick:,.12g}", "end") for tick in scale]
    body += [
        _text(x(n), bottom + 18, f"{n:,.0f}", "middle")
        for n in ticks(rate.generations, width // 110)
        if n <= rate.generations
    ]
    body.append(_line(x(0), y(0), x(rate.generations), y(rate.events), "thin"))
    steps = [f"M{x(0):.1f},{y(0):.1f}"]
    steps += [f"H{x(n):.1f}V{y(count):.1f}" for n, count in line.steps]
    body.append(f'<path class="steps" d="{"".join(steps)}H{x(rate.generations):.1f}V{y(rate.events):.1f}"/>')
    return _svg(width, kind, bottom + 28, body, f"Collapses over generations: {part.name}")


def _svg(width: int, kind: str, height: float, body: Sequence[str], title: str) -> str:
    box = f'class="{kind}" viewBox="0 0 {width} {height:.0f}" role="img"'
    return f"<svg {box}><title>{escape(title)}</title>{''.join(body)}</svg>"


def _line(x1: float, y1: float, x2: float, y2: float, name: str) -> str:
    return f'<line class="{name}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _short(words: str, length: int) -> str:
    return words if len(words) <= length else words[: length - 1] + "…"
