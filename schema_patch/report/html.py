"""Report -> one HTML page that needs nothing else: a summary, and a table to filter. Returns a string.

Knows HTML; every word of the report is escaped, and the page may load nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from html import escape
from typing import Any

from schema_patch import __version__
from schema_patch.model import Location, Report, Severity, Verdict

from .people import headline
from .text import counted, devices, libraries, one_line, summary

CLASSES = {
    Verdict.RIGHT: "good",
    Verdict.NEEDS_GUARD: "warn",
    Verdict.OVER_DECLARED: "warn",
    Verdict.WRONG: "bad",
    Verdict.UNKNOWN: "dim",
}
SEVERITIES = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.NOTE: "dim"}
COLUMNS = ("", "operator", "what", "where")

STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --warn: #9a6700; --bad: #cf222e; --dim: #6e7781; }
@media (prefers-color-scheme: dark) { :root { --good: #4ac26b; --warn: #d4a72c; --bad: #ff7b72; --dim: #8b949e; } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0; } .sum { color: var(--dim); margin: .2rem 0 1.2rem; }
.cards { display: flex; flex-wrap: wrap; gap: .6rem; margin-bottom: 1.2rem; }
.card { border: 1px solid var(--line); border-radius: .5rem; padding: .4rem .9rem; } .card b { font-size: 1.3rem; }
.bar { display: flex; gap: .6rem; position: sticky; top: 0; padding: .6rem 0; background: Canvas; }
input { flex: 1; font: inherit; padding: .4rem .6rem; } select { font: inherit; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; }
th, td { text-align: left; vertical-align: top; padding: .45rem .6rem; border-top: 1px solid var(--line); }
th:nth-child(1) { width: 9rem; } th:nth-child(2) { width: 15rem; } th:nth-child(4) { width: 17rem; }
td { overflow-wrap: anywhere; } code { font: 13px/1.45 ui-monospace, monospace; } small { color: var(--dim); }
.good { color: var(--good); } .warn { color: var(--warn); } .bad { color: var(--bad); } .dim { color: var(--dim); }
details { margin: 1rem 0; } tr[hidden] { display: none !important; } summary, li, h1, .sum { overflow-wrap: anywhere; }
@media (max-width: 48rem) {
  body { margin: 1rem auto; padding: 0 .7rem; } .card { padding: .2rem .6rem; } .bar { flex-wrap: wrap; }
  input { min-width: 0; } select { max-width: 100%; } ul { padding-left: 1.2rem; }
  thead { display: none; } table, tbody, tr, td { display: block; }
  tr { border-top: 1px solid var(--line); padding: .4rem 0; }
  td { border: 0; padding: .1rem 0; } td:empty { display: none; }
}
"""

SCRIPT = """
const rows = [...document.querySelectorAll('tbody tr')], words = document.querySelector('input'),
  kind = document.querySelector('select'), count = document.querySelector('#count');
function filter() {
  const wanted = words.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !wanted.every(word => text.includes(word)) || (kind.value && row.dataset.kind !== kind.value);
    shown += !row.hidden;
  }
  count.textContent = `${shown} of ${rows.length}`;
  const state = new URLSearchParams({ q: words.value, kind: kind.value });
  history.replaceState(null, '', '#' + state);
}
const state = new URLSearchParams(location.hash.slice(1));
words.value = state.get('q') || ''; kind.value = state.get('kind') || '';
words.addEventListener('input', filter); kind.addEventListener('change', filter); filter();
"""


def html(report: Report, title: str = "schema-kit") -> str:
    """The page. Its address keeps the filter behind `#`, so that a filtered view can be passed on."""
    rows = list(_rows(report))
    counts = Counter(row.verdict for row in report.checked)
    cards = [_card(CLASSES[verdict], counts[verdict], verdict.value) for verdict in Verdict if counts[verdict]]
    cards += [_card("bad", len(report.failed), "findings that count")] if report.failed else []
    cards += [_card("bad", len(report.errors), "not verified")] if report.errors else []
    kinds = "".join(f"<option>{escape(kind)}</option>" for kind in dict.fromkeys(kind for kind, _ in rows))
    head = "".join(f"<th>{column}</th>" for column in COLUMNS)
    told = f"{summary(report)}; exit code {report.exit_code}; version {__version__}"
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    body = "\n".join(row for _, row in rows)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<style>{STYLE}</style></head><body>
<h1>{escape(headline(report))}</h1><p class="sum">{escape(one_line(title))}<br>{escape(told)}</p>
<div class="cards">{"".join(cards)}</div>
{_libraries(report)}
<div class="bar"><input type="search" placeholder="filter by words" aria-label="filter" autofocus>
<select aria-label="kind"><option value="">all kinds</option>{kinds}</select><span id="count"></span></div>
<table><thead><tr>{head}</tr></thead><tbody>
{body}
</tbody></table>
<script>{SCRIPT}</script></body></html>
"""


def _card(kind: str, number: int, words: str) -> str:
    return f'<div class="card"><b class="{kind}">{number}</b> {escape(words)}</div>'


def _rows(report: Report) -> Iterator[tuple[str, str]]:
    """Errors first, then findings, then the operators, worst first; each with its kind."""
    for error in report.errors:
        yield _row("not verified", "bad", "error", "", escape(error.message), error.where)
    for finding in report.findings:
        kind = finding.severity.value
        yield _row(
            kind, SEVERITIES[finding.severity], finding.code, finding.op, escape(finding.message), finding.location
        )
    order = [Verdict.WRONG, Verdict.OVER_DECLARED, Verdict.NEEDS_GUARD, Verdict.RIGHT, Verdict.UNKNOWN]
    for row in sorted(report.checked, key=lambda row: order.index(row.verdict)):
        what = f"<code>{escape(row.schema)}</code><br><small>{escape(row.reason)}</small>"
        yield _row(row.verdict.value, CLASSES[row.verdict], row.verdict.value, row.op, what, row.location)


def _row(kind: str, style: str, label: str, op: str, what: str, where: Location | None) -> tuple[str, str]:
    cells = (f'<td class="{style}">{escape(label)}</td><td><code>{escape(op)}</code></td><td>{what}</td>'
             f"<td><small>{escape(one_line(str(where or '')))}</small></td>")  # fmt: skip
    return kind, f'<tr data-kind="{escape(kind)}">{cells}</tr>'


def _libraries(report: Report) -> str:
    found = libraries(report)
    items = "".join(f"<li>{escape(library_line(library))}</li>" for library in found)
    return f"<details><summary>{counted(found)}</summary><ul>{items}</ul></details>" if found else ""


def library_line(library: dict[str, Any]) -> str:
    """Where a library is, whose, what it needs, and what it runs on."""
    owner = f" ({library['owner']})" if library["owner"] else ""
    sycl = f"; libsycl.so.{library['sycl']}" if library["sycl"] else ""
    words, kernels, spirv = ", ".join(devices([library])), library["kernels"], library["without_spirv"]
    lacking = f", {spirv} of {kernels} kernels without SPIR-V" if spirv else ""
    device = f"; {kernels} kernels for {words}{lacking}" if words else ""
    return f"{one_line(library['path'])}{owner}: {library['schemas']} schemas{sycl}{device}"
