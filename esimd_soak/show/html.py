"""Analysis -> one HTML page that needs nothing else: no script, no font, no picture from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from esimd_soak.judge.analysis import Analysis
from esimd_soak.judge.part import ServerPart, percent

from . import plots, text

STYLE = """
:root { --ink: #1d2327; --soft: #667; --line: #dcdfe4; --back: #fff; --good: #1a7f5a; --bad: #c2321f; --bar: #8fb0d8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8ea; --soft: #9aa3ad; --line: #3a4048; --back: #16191d; }
  :root { --good: #4cc095; --bad: #ff7a66; --bar: #47698f; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); }
body { max-width: 1020px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; }
h2 { font-size: 1.1rem; margin-top: 2.2rem; }
h3 { font-size: 1rem; }
p.soft { color: var(--soft); }
.verdict { font-size: 1.1rem; padding: .7rem 1rem; border-left: 5px solid; }
.verdict.good { border-color: var(--good); }
.verdict.bad { border-color: var(--bad); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .5rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; }
th:first-child, td:first-child, .words td, .words th { text-align: left; }
.words td { white-space: normal; vertical-align: top; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; overflow: auto; max-height: 9rem; }
pre { padding: .5rem; font-size: 12px; background: color-mix(in srgb, var(--line) 35%, transparent); }
svg { width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft); }
.grid { stroke: var(--line); }
.thin { stroke: var(--soft); stroke-width: 1.2; }
.thick { stroke: var(--bar); stroke-width: 6; stroke-linecap: round; }
.good { fill: var(--good); }
.bad { fill: var(--bad); }
.bar { fill: var(--bar); }
.worse { fill: var(--bad); opacity: .75; }
.event { stroke: var(--bad); stroke-width: 1.5; }
svg.narrow { display: none; max-width: 420px; }
@media (max-width: 600px) { svg.wide { display: none; } svg.narrow { display: block; } }
.steps { fill: none; stroke: var(--bad); stroke-width: 2; }
"""


def page(found: Analysis, examples: Sequence[Any] = (), title: str = "Soak report") -> str:
    """The report; `examples` are failed generations with their text."""
    body = [f"<h1>{escape(title)}</h1>", f'<p class="soft">{escape(". ".join(text.about(found)) + ".")}</p>']
    body += [f'<p class="verdict bad">{escape(words)}</p>' for words in text.warnings(found)]
    mood = "bad" if found.exit_code else "good"
    body.append(f'<p class="verdict {mood}">{escape(text.summary(found))}</p>')
    measured = [part for part in found.servers if part.collapses]
    if measured:
        body += ["<h2>Rates</h2>", plots.rates([(_label(found, part), part) for part in measured])]
        body += ['<p class="soft">Thick: 95 % interval by blocks. Thin: Wilson, were each collapse alone.</p>']
        body.append(_rates(found, found.servers, "server"))
        if any(part.servers > 1 for part in found.cards):
            body += ["<h3>By card</h3>", _rates(found, found.cards, "card")]
        body += ["<h2>Speed</h2>", _speeds(found)]
        body += ["<h2>Time line</h2>", '<p class="soft">Bars: tokens a second; red where a generation collapsed.</p>']
        for part in measured:
            if part.line:
                body += [f"<h3>{escape(_label(found, part))}</h3>", plots.time_line(part)]
        body += ["<h2>Clusters</h2>", '<p class="soft">Straight: a constant rate. Steep steps: bursts.</p>']
        for part in measured:
            body.append(f"<h3>{escape(_label(found, part))}</h3><p>{escape(text.clusters(part))}</p>")
            if part.line and part.collapses and part.collapses.events >= 2:
                body.append(plots.cumulative(part))
        body += ["<h2>Kinds and errors</h2>", _kinds(found)]
    if found.counters:
        body.append("<h2>The servers' own counters</h2>")
        body += [f"<p>{escape(text.counters(one))}</p>" for one in found.counters]
    body += _events(found)
    if examples:
        body.append("<h2>Examples</h2>")
        for one in examples:
            told = f"{one.server}, request {one.n}: {', '.join(one.kinds)}: {one.why}"
            body.append(f'<p class="soft">{escape(told)}</p><pre>{escape(one.text[-600:]) or "(empty)"}</pre>')
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return (
        f'<!doctype html><html lang="en"><head>{head}<style>{STYLE}</style></head><body>{"".join(body)}</body></html>\n'
    )


def _label(found: Analysis, part: ServerPart) -> str:
    return part.name if len(found.runs) == 1 else f"{part.run} / {part.name}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    titles = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{titles}</tr>{lines}</table></div>'


def _rates(found: Analysis, parts: Sequence[ServerPart], what: str) -> str:
    head = [what, "collapses", "judged", "rate", "95 % by blocks", "exact, if alone", "excluded above"]
    rows = []
    for part in parts:
        rate = part.collapses
        if rate is None:
            rows.append([_label(found, part), "nothing was scored"])
            continue
        rows.append(
            [
                _label(found, part) + (f" ({part.card})" if what == "server" and part.card != part.name else ""),
                f"{rate.events:,} / {rate.generations:,}",
                f"{part.judged:.1%} of {part.sent:,}",
                percent(rate.rate, 3),
                f"{percent(rate.interval.low)} – {percent(rate.interval.high)}",
                f"{percent(rate.exact.low)} – {percent(rate.exact.high)}",
                percent(rate.below),
            ]
        )
    return _table(head, rows)


def _speeds(found: Analysis) -> str:
    head = ["server", "", "mean ms", "50 %", "90 %", "95 %", "99 %"]
    rows = []
    for part in found.servers:
        one = part.speed
        rows.append(
            [_label(found, part), f"{one.tokens_per_second:,.0f} tok/s, {one.requests_per_second:.3g} requests/s"]
        )
        for words, values in (("latency", one.latency), ("TTFT", one.ttft), ("TPOT", one.tpot), ("ITL", one.itl)):
            if values:
                rows.append(["", words, *map(text.ms, values.seconds)])
        rows += [["", line] for line in text.speed(one) if line.startswith("goodput")]
    return _table(head, rows)


def _kinds(found: Analysis) -> str:
    kinds = list(next(part.kinds for part in found.servers if part.kinds))
    head = ["server", *kinds, "not whole"]
    rows = []
    for part in found.servers:
        errors = ", ".join(f"{kind} {count:,}" for kind, count in sorted(part.errors.items())) or "0"
        rows.append([_label(found, part), *(f"{part.kinds[k].events:,}" if part.kinds else "-" for k in kinds), errors])
    return _table(head, rows)


def _events(found: Analysis) -> list[str]:
    if not found.events:
        return []
    rows = []
    for run, event in found.events:
        flying = f" (in flight: {', '.join(map(str, event.requests))})" if event.requests else ""
        rows.append([run, event.server or "-", event.kind, event.text + flying])
    return [
        "<h2>Events</h2>",
        _table(["run", "server", "event", "what"], rows).replace("<table>", '<table class="words">'),
    ]
