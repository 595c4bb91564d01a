"""Report -> what a person wants to know first: is it affected, and what to do next. Returns strings; reads nothing."""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from schema_patch.model import Checked, Report, Verdict
from schema_patch.schemas import rules

from .text import libraries, many, one_line, page

UNDECLARED = frozenset({"SP101", "SP102"})


def headline(report: Report) -> str:
    """The verdict in one sentence."""
    known = [row for row in report.checked if row.schema and row.verdict is not Verdict.UNKNOWN]
    wrong = [row for row in known if row.verdict is Verdict.WRONG]
    left = f"; {many(len(report.errors), 'thing')} could not be read or done" if report.errors else ""
    if wrong:
        undeclared = {(f.location, f.op) for f in report.findings if f.code in UNDECLARED}
        lies = (
            "writes arguments that it does not declare"
            if len(wrong) == 1
            else "write arguments that they do not declare"
        )
        other = "does not say what it returns" if len(wrong) == 1 else "do not say what they write or return"
        what = lies if all((row.location, row.op) in undeclared for row in wrong) else other
        return f"affected: {len(wrong)} of {many(len(known), 'operator')} {what}{left}"
    if report.errors:
        return f"not verified: {many(len(report.errors), 'thing')} could not be read or done" + _rest(known)
    if report.failed:
        return f"not as it must be: {many(len(report.failed), 'finding')}" + _rest(known)
    if not known:
        checks = [row for row in report.checked if row.verdict is not Verdict.UNKNOWN]
        if checks:
            return f"right: {many(len(checks), 'check')}"
        here = many(len({row.op for row in report.checked if row.schema}), "operator")
        return f"nothing verified: {here} here, none in the operator table"
    guarded = sum(row.verdict is Verdict.NEEDS_GUARD for row in known)
    if guarded:
        return f"right, {guarded} of {many(len(known), 'operator')} under torch.compile with the guard alone"
    return f"right: {many(len(known), 'operator')}, each declares what it writes"


def _rest(known: Sequence[Checked]) -> str:
    return f"; of {many(len(known), 'operator')} that could be judged none is wrong" if known else ""


def steps(report: Report, paths: Iterable[str]) -> Iterator[str]:
    """What to do next, with the command. `paths`: what was asked for."""
    verdicts = {row.verdict for row in report.checked if row.schema}
    named = [shlex.quote(path) for path in paths if path != "-"] or ["PATH"]
    wheels = [path for path in named if path.strip("'").endswith(".whl")]
    if Verdict.WRONG in verdicts:
        how = f"--wheel-out DIR {' '.join(wheels)}" if wheels == named else " ".join(named)
        yield f"next: schema-patch apply {how}    (in place, without a compiler{_at('installed')})"
        yield f"  or: SCHEMA_KIT_GUARD=1 in each process    (the guard{_at('guard')})"
        yield "  or: schema-patch rebuild TREE    (from the source)"
    elif report.errors:
        if not wheels and any(unread(report)):
            yield f"next: verify-schemas --load {' '.join(named)}    (asks torch itself)"
    elif Verdict.NEEDS_GUARD in verdicts:
        yield "next: SCHEMA_KIT_GUARD=1 where torch.compile runs, or a rebuild with --returns void"
    elif verdicts == {Verdict.UNKNOWN}:
        yield "next: schema-patch audit TREE    (what its source writes)"
        yield f"  or: python -m esimd_ops observe -o T.toml -- PROGRAM    (without source{_at('observe')})"
        yield f"then: verify-schemas --table T.toml {' '.join(named)}    (your own table{_at('formats')})"


def _at(name: str) -> str:
    return f": {page(name)}" if page(name) else ""


def in_source(report: Report, paths: Iterable[str], option: str = "") -> Iterator[str]:
    """What to do next with a tree: `audit` judges what no table knows (`option`: it has), `apply` puts right."""
    named = " ".join(map(shlex.quote, paths))
    others = sorted({row.op for row in report.checked if row.reason == rules.NOT_IN_TABLE})
    if others and not option:
        told = f"{many(len(others), 'operator')} in no table: {', '.join(others)}"
        yield textwrap.fill(told, 80, break_long_words=False, break_on_hyphens=False)
    if not option and (others or not (report.checked or report.errors or report.may_be_empty)):
        yield f"next: schema-patch audit {named}    (judges by what the code does)"
    if any(finding.code in UNDECLARED | {"SP103"} for finding in report.failed):
        yield f"next: schema-patch apply {option}--diff {named}    (shows the change)"


def unread(report: Report) -> Iterator[str]:
    """The registrations of which it is not known what they register, a line for each library and namespace."""
    for library in libraries(report):
        spaces = Counter(row["namespace"] for row in library["unread_registrations"])
        for space, count in sorted(spaces.items()):
            where = space or "a namespace that is not known"
            yield f"{one_line(library['path'])}: {many(count, 'registration')} not read, in {where}"
