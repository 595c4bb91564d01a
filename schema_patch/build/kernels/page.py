"""A document and its findings -> one HTML page that needs nothing else; on a narrow screen each kernel is a card."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from schema_patch import __version__
from schema_patch.model import Report, Severity
from schema_patch.report.html import STYLE

from .model import Document, ExaminedKernel
from .table import lines, numbers, summary

LEFT_OUT = ("barr", "math", "moves")  # of a table's columns, for width
MORE = """
body { max-width: 96rem; overflow-wrap: anywhere; }
td.n, th.n { text-align: right; overflow-wrap: normal; font-variant-numeric: tabular-nums; }
table { table-layout: auto; } th, th:nth-child(1), th:nth-child(2), th:nth-child(4) { width: auto; }
thead th { cursor: pointer; } pre { margin: .4rem 0 0; overflow-x: auto; font: 12px/1.45 ui-monospace, monospace; }
ol { padding-left: 1.4rem; } ol li { overflow-wrap: anywhere; } td details { margin: 0; }
@media (max-width: 60rem) {
  thead { display: none; } tbody tr { display: grid; grid-template-columns: repeat(5, 1fr); padding: .5rem 0;
    border-top: 1px solid var(--line); } tr[hidden] { display: none; } td { border: 0; padding: .15rem .2rem; }
  td.k { grid-column: 1 / -1; } td.n { text-align: left; }
  td.n::before { content: attr(data-name); display: block; color: var(--dim); font-size: 11px; }
}
"""
SCRIPT = """
const body = document.querySelector('tbody'), rows = [...body.rows], words = document.querySelector('input'),
  count = document.querySelector('#count');
function filter() {
  const wanted = words.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    row.hidden = !wanted.every(word => row.textContent.toLowerCase().includes(word));
    shown += !row.hidden;
  }
  count.textContent = `${shown} of ${rows.length}`;
}
document.querySelectorAll('th').forEach((head, at) => head.addEventListener('click', () => {
  const value = row => Number(row.cells[at].dataset.value ?? NaN), name = row => row.cells[at].textContent;
  rows.sort((a, b) => value(b) - value(a) || name(a).localeCompare(name(b))).forEach(row => body.append(row));
}));
words.addEventListener('input', filter); filter();
"""


def html(document: Document, report: Report, title: str) -> str:
    """The page. Findings are ranked; a heading that is clicked sorts by its column."""
    told = f"{summary(document)}; {document.compiler}; version {__version__}"
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    names = [name for kernel in document.kernels[:1] for name in numbers(kernel) if name not in LEFT_OUT]
    heads = "".join(f'<th class="n">{name}</th>' for name in names)
    rows = "\n".join(_row(kernel) for kernel in document.kernels)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}: kernels</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<style>{STYLE}{MORE}</style></head><body>
<h1>Kernels of {escape(title)}</h1><p class="sum">{escape(told)}</p>
{"".join(_findings(report))}
<div class="bar"><input type="search" placeholder="filter by words" aria-label="filter"><span id="count"></span></div>
<table><thead><tr><th>kernel</th>{heads}</tr></thead><tbody>
{rows}
</tbody></table>
<script>{SCRIPT}</script></body></html>
"""


def _findings(report: Report) -> Iterator[str]:
    if report.errors:
        items = "".join(f"<li>{escape(str(error))}</li>" for error in report.errors)
        yield f'<p class="bad">could not be looked at:</p><ul>{items}</ul>'
    if report.findings:
        yield f"<details open><summary>{len(report.findings)} findings, the worst first</summary><ol>"
        for finding in report.findings:
            style = "bad" if finding.severity is Severity.ERROR else "warn"
            place = escape(str(finding.location))
            yield f'<li><b class="{style}">{finding.code}</b> {escape(finding.message)} <small>{place}</small></li>'
        yield "</ol></details>"


def _row(kernel: ExaminedKernel) -> str:
    values = {name: value for name, value in numbers(kernel).items() if name not in LEFT_OUT}
    cells = "".join(
        f'<td class="n{" bad" if name == "spills" and value else ""}" data-name="{name}" data-value="{value or 0}">'
        f"{'?' if value is None else format(value, ',')}</td>"
        for name, value in values.items()
    )
    more = escape("\n".join(lines(kernel)))
    name = f"<details><summary><code>{escape(kernel.title)}</code></summary><pre>{more}</pre></details>"
    place = escape(f"{kernel.target}, {kernel.line or kernel.where}")
    return f'<tr><td class="k">{name}<small>{place}</small></td>{cells}</tr>'
