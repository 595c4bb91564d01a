"""How right the inference of `schema-patch audit` is on real sources, whose own annotations are taken for the truth.

    python benchmarks/audit_corpus.py DIR [--list] [--judged benchmarks/audit_judged.toml]

DIR is a checkout, or a folder of checkouts, each a repository of its own. For each: operators, Tensor arguments by what
is declared and what is inferred, and

    precision   of what is called written: the declared share, and the share with those that a person judged real
    recall      of the declared arguments whose implementation is in the tree: the share that is called written, and
                the share of those that a person did not judge never written; handed to a function that is not in
                the tree (a vendor library, generated code) is out of the tree
    unknown     operators of which no verdict could be given
    read only   declared arguments that are called read only (SP106), and how many a person judged never written

`--list` prints every disagreement with its evidence, for a person to judge; a judgement is a line of the TOML file.
Times are of a run without a cache, with their processor seconds, because other work may share the machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from schema_patch.audit import judge
from schema_patch.model import Location, Verdict
from schema_patch.schemas.inferred import Answer, Kind
from schema_patch.text import files

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OUTSIDE = ("not in this tree", "is not in this tree", "not defined in this tree", "no implementation is registered")


def outside(answer: Answer) -> bool:
    """Whether the argument goes where the tree has no code."""
    return any(words in answer.reason for words in OUTSIDE)


@dataclass(frozen=True)
class Operator:
    """One operator: what its authors declare, what was inferred, and whether any verdict could be given."""

    op: str
    location: Location
    declared: frozenset[str]
    answers: tuple[Answer, ...]
    known: bool


def operators_of(folder: Path) -> tuple[list[Operator], float, float]:
    """The operators of one repository in C++ and Python, with the audit's wall and processor seconds."""
    started, before = time.perf_counter(), _processor()
    result = judge.audit([str(folder)], files.Steps(), cached=False)
    rows = [(row.operator, row.operator.schema.writes, row.inferred.answers, row.judgement) for row in result.rows]
    found = [Operator(o.op, o.location, frozenset(w), a, j.verdict is not Verdict.UNKNOWN) for o, w, a, j in rows]
    for row in result.python:
        declared = frozenset(row.operator.declares or ())
        known = row.checked.verdict is not Verdict.UNKNOWN
        found.append(Operator(row.checked.op, row.operator.location, declared, row.answers, known))
    return found, time.perf_counter() - started, _processor() - before


def _processor() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def share(part: int, whole: int) -> str:
    return f"{part / whole:.3f} ({part}/{whole})" if whole else "- (0)"


def measure(folder: Path, judged: dict[str, str], listed: bool) -> None:
    rows, wall, processor = operators_of(folder)
    count = sum(1 for _ in files.find(str(folder)))
    counts: Counter[str] = Counter()
    stale = set(judged)
    for row in rows:
        declared = row.declared
        for answer in row.answers:
            kind = "outside" if answer.kind is Kind.UNKNOWN and outside(answer) else answer.kind.value
            counts[f"{'declared' if answer.name in declared else 'plain'} {kind}"] += 1
            key = f"{row.op} {answer.name}"
            stale.discard(key)
            if answer.kind is Kind.WRITTEN and answer.name not in declared:
                counts[f"judged {judged.get(key, 'not yet')}"] += 1
            elif answer.name in declared and judged.get(key) == "never written":
                counts[f"never {kind}"] += 1
            if listed and (answer.name in declared) != (answer.kind is Kind.WRITTEN):
                _disagreement(row, answer, answer.name in declared, judged.get(key, ""), folder)
    written, undeclared = counts["declared written"], counts["plain written"]
    declared_in = sum(n for key, n in counts.items() if key.startswith("declared") and key != "declared outside")
    print(f"{folder.name}: {len(rows)} operators, {count} C++ files, {wall:.1f} s ({processor:.1f} s processor)")
    print(f"    precision {share(written, written + undeclared)} by annotations", end="")
    print(f", {share(written + counts['judged real'], written + undeclared)} with judgements", end="")
    print(f" ({counts['judged real']} real, {counts['judged false']} false, {counts['judged not yet']} not judged)")
    never = sum(n for key, n in counts.items() if key.startswith("never") and key != "never outside")
    print(f"    recall    {share(written, declared_in)} by annotations", end="")
    print(f", {share(written - counts['never written'], declared_in - never)} with judgements", end="")
    print(f" ({never} never written, {counts['declared outside']} outside the tree)")
    print(f"    unknown   {share(sum(not row.known for row in rows), len(rows))} of the operators")
    print(f"    read only {counts['declared read only']} declared, {counts['never read only']} judged never written")
    if stale:
        print(f"    judged, but not an argument of any operator: {', '.join(sorted(stale))}")
    print("    " + ", ".join(f"{key} {n}" for key, n in sorted(counts.items()) if key[:6] not in ("judged", "never ")))


def _disagreement(row: Operator, answer: Answer, declared: bool, verdict: str, folder: Path) -> None:
    if not declared and answer.kind is not Kind.WRITTEN:
        return
    chain = " > ".join(f"{os.path.relpath(path, folder)}:{line}" for path, line in answer.chain)
    where = os.path.relpath(row.location.path, folder)
    says = "declared" if declared else "plain"
    why = " ".join(part for part in (answer.reason.replace(f"{folder}{os.sep}", ""), chain) if part)
    print(
        f"  {where}:{row.location.line}: {row.op}: '{answer.name}' {says}, {answer.kind.value}",
        end="",
    )
    print(f" [{verdict}]" if verdict else "", why)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", action="store_true", help="Print every disagreement.")
    parser.add_argument("--judged", type=Path, default=Path(__file__).with_name("audit_judged.toml"))
    options = parser.parse_args()
    if not options.folder.is_dir():
        parser.error(f"expected a folder, found nothing at {options.folder}")
    judged = tomllib.loads(options.judged.read_text()) if options.judged.is_file() else {}
    single = options.folder.name in judged or any(
        (options.folder / name).exists() for name in (".git", "setup.py", "CMakeLists.txt", "pyproject.toml")
    )
    for folder in [options.folder] if single else sorted(p for p in options.folder.iterdir() if p.is_dir()):
        measure(folder, judged.get(folder.name, {}), options.list)
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"largest resident memory: {own / 1000:.0f} MB, of a worker {children / 1000:.0f} MB")


if __name__ == "__main__":
    main()
