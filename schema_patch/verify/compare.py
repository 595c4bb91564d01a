"""Two builds of one thing -> what differs: "only these 37 schemas". Pure: reads nothing.

Knows which library of one side is which of the other: the one at the same path inside the package, or the only one.
Does not know what is right: each difference is a finding, and says what was there and what is. Codes:
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from schema_patch.elf.reader import ElfFacts, FoundSchema
from schema_patch.model import Checked, Finding, Location, Report, Severity, ToolError, Verdict

WORD = re.compile(r"\w+|\s+|[^\w\s]+")
SHOWN = 5  # names in one message


class Aspect(str, Enum):
    """What may differ, as `--expect` calls it."""

    LIBRARIES = "libraries"
    OPERATORS = "operators"
    SCHEMAS = "schemas"
    TARGETS = "targets"
    RUNTIME = "runtime"
    SYMBOLS = "symbols"
    KERNELS = "kernels"


CODES = dict(zip(Aspect, ("SP220", "SP221", "SP222", "SP223", "SP224", "SP225", "SP226"), strict=True))


@dataclass(frozen=True, slots=True)
class _Difference:
    kind: Aspect
    path: str
    message: str
    op: str = ""


def compare(
    ours: Mapping[str, ElfFacts],
    others: Mapping[str, ElfFacts],
    *,
    expect: Iterable[str] = (),
    errors: Sequence[ToolError] = (),
) -> Report:
    """What differs between two sets of libraries, each by its path inside the package; `others` is the older.

    Differences of a kind in `expect` are notes; any other counts. What is equal is in the report's facts.
    """
    meant = {Aspect(word) for word in expect}
    pairs, lone = _pairs(ours, others)
    differences = list(lone)
    rows: list[Checked] = []
    equal = 0
    for key, mine, other in pairs:
        found = list(_between(mine, other))
        differences += found
        equal += not found
        verdict = Verdict.RIGHT if all(d.kind in meant for d in found) else Verdict.WRONG
        rows.append(Checked(key, Location(mine.path), "", verdict, "differs" if found else "equal"))
    findings = tuple(
        Finding(CODES[d.kind], Location(d.path), d.op, d.message, Severity.NOTE if d.kind in meant else Severity.ERROR)
        for d in differences
    )
    counts = {kind.value: sum(d.kind is kind for d in differences) for kind in Aspect}
    errors = [*errors, *(error for _, mine, other in pairs for error in _untold(mine, other))]
    facts: dict[str, object] = {"compared": len(pairs), "equal": equal, "differences": counts}
    if not pairs and not errors:
        errors = [ToolError("expected libraries on both sides, found none that correspond")]
    return Report(tuple(rows), findings, tuple(errors), facts)


def summary(report: Report) -> str:
    """In a line: how many libraries were compared, and what alone differs."""
    counts = report.facts.get("differences")
    told = {kind: count for kind, count in counts.items() if count} if isinstance(counts, dict) else {}
    words = [f"{count} {kind if count > 1 or kind == 'runtime' else ONE[kind]}" for kind, count in told.items()]
    number, equal = (report.facts.get(key, 0) for key in ("compared", "equal"))
    compared = f"{number} libraries compared (not the host's code), {equal} equal"
    if not words:
        return f"{compared}: nothing differs"
    return f"{compared}: only {' and '.join(filter(None, [', '.join(words[:-1]), words[-1]]))} differ"


ONE = {
    "libraries": "library", "operators": "operator", "schemas": "schema", "targets": "set of targets",
    "symbols": "set of symbols", "kernels": "set of kernels",
}  # fmt: skip


def word_diff(before: str, after: str) -> str:
    """One text from two: what was taken away in [-brackets-], what was put in in {+braces+}."""
    old, new = WORD.findall(before), WORD.findall(after)
    parts: list[str] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            parts += old[a:b]
        else:
            parts += [f"[-{''.join(old[a:b])}-]"] if a < b else []
            parts += [f"{{+{''.join(new[c:d])}+}}"] if c < d else []
    return "".join(parts)


def _pairs(
    ours: Mapping[str, ElfFacts], others: Mapping[str, ElfFacts]
) -> tuple[list[tuple[str, ElfFacts, ElfFacts]], list[_Difference]]:
    if len(ours) == len(others) == 1:  # named one by one, perhaps differently
        return list(zip(ours, ours.values(), others.values(), strict=True)), []
    lone = [
        _Difference(Aspect.LIBRARIES, facts.path, f"{'added' if facts is ours.get(key) else 'removed'}: {key}")
        for key, facts in [*ours.items(), *others.items()]
        if (key in ours) != (key in others)
    ]
    return [(key, ours[key], others[key]) for key in ours if key in others], lone


def _between(mine: ElfFacts, other: ElfFacts) -> Iterator[_Difference]:
    yield from _schemas(mine, other)
    before, after = other.device.targets(), mine.device.targets()
    if set(before) != set(after):
        yield _Difference(Aspect.TARGETS, mine.path, f"targets: {_changes(before, after)}")
    if set(other.needed) != set(mine.needed) or other.runpath != mine.runpath:
        run = f"; run path {word_diff(other.runpath, mine.runpath)}" if other.runpath != mine.runpath else ""
        yield _Difference(Aspect.RUNTIME, mine.path, f"needs: {_changes(other.needed, mine.needed)}{run}")
    old, new = ({symbol.name for symbol in facts.symbols} for facts in (other, mine))
    if old != new:
        yield _Difference(Aspect.SYMBOLS, mine.path, f"exported symbols: {_changes(old, new)}")
    was, now = _kernels(other), _kernels(mine)
    if was != now:
        changed = sorted(name for name in was.keys() & now.keys() if was[name] != now[name])
        names = f"; {len(changed)} with other code: {_some(changed)}" if changed else ""
        yield _Difference(Aspect.KERNELS, mine.path, f"kernels: {_changes(was, now)}{names}")


def _untold(mine: ElfFacts, other: ElfFacts) -> Iterator[ToolError]:
    """What cannot be held against anything: registrations whose text is not known, in files that are not the same."""
    for facts in (mine, other):
        if facts.unread and (mine.size, mine.unread, mine.schemas) != (other.size, other.unread, other.schemas):
            places = _some({found.function for found in facts.unread})
            message = (
                f"could not compare all operators: {len(facts.unread)} are registered with a text that is not known"
            )
            yield ToolError(f"{message}, in {places}", facts.path)


def _schemas(mine: ElfFacts, other: ElfFacts) -> Iterator[_Difference]:
    before, after = map(_by_name, (other, mine))
    for one in sorted({*mine.named} ^ {*other.named}, key=lambda one: (one.namespace, one.name)):
        side = "added" if one in mine.named else "removed"
        words = f"{side} {one.namespace}::{one.name}, without a schema"
        yield _Difference(Aspect.OPERATORS, mine.path, words, one.name)
    for key in sorted({*before, *after}):
        space, op = key
        name = f"{space}::{op}" if space else op
        old, new = before.get(key, []), after.get(key, [])
        if old and new:
            if [s.schema for s in old] != [s.schema for s in new]:
                yield _Difference(Aspect.SCHEMAS, mine.path, word_diff(_texts(old), _texts(new)), op)
        else:
            text = _texts(new or old)
            yield _Difference(Aspect.OPERATORS, mine.path, f"{'added' if new else 'removed'} {name}: {text}", op)


def _by_name(facts: ElfFacts) -> dict[tuple[str, str], list[FoundSchema]]:
    """The registrations of each operator; one may have several, in parts of a program that exclude each other."""
    found: dict[tuple[str, str], list[FoundSchema]] = {}
    for schema in sorted({*facts.schemas}, key=lambda one: one.text):
        found.setdefault((schema.space, schema.schema.op), []).append(schema)
    return found


def _texts(found: Iterable[FoundSchema]) -> str:
    return " and ".join(one.line for one in found)


def _kernels(facts: ElfFacts) -> dict[str, frozenset[tuple[str, str]]]:
    """Of each kernel, the targets with a hash of the code for each."""
    found: dict[str, set[tuple[str, str]]] = {}
    for code in facts.device.codes:
        for kernel, digest in zip(code.kernels, code.hashes or ("",) * len(code.kernels), strict=True):
            found.setdefault(kernel, set()).add((code.target, digest))
    return {kernel: frozenset(codes) for kernel, codes in found.items()}


def _changes(before: Iterable[str], after: Iterable[str]) -> str:
    old, new = set(before), set(after)
    parts = [f"added {_some(new - old)}"] if new - old else []
    parts += [f"removed {_some(old - new)}"] if old - new else []
    return "; ".join(parts) or "the same names"


def _some(names: Iterable[str]) -> str:
    names = sorted(names)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(name[:120] for name in names[:SHOWN]) + more
