"""A binary's schemas against those of a source tree: which fix is in the binary. Pure: reads nothing.

A released tag once lacked a fix that had been merged before it: only the binary tells. Knows operators by name and
namespace; does not know what is right. Codes:
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from schema_patch.elf.reader import ElfFacts
from schema_patch.model import Checked, Finding, Location, Report, Severity, Verdict
from schema_patch.schemas.grammar import Schema

from .compare import word_diff

if TYPE_CHECKING:
    from schema_patch.source.patch import JudgedOperator, Unit


def check(libraries: Iterable[ElfFacts], units: Iterable[Unit]) -> Report:
    """What of the binary is as the source has it, and what is not. A namespace that one side does not tell fits any."""
    told = list(_told(libraries, [operator for unit in units for operator in unit.operators]))
    checked = tuple(row for row in told if isinstance(row, Checked))
    return Report(checked, tuple(row for row in told if isinstance(row, Finding)))


def _told(libraries: Iterable[ElfFacts], source: list[JudgedOperator]) -> Iterator[Finding | Checked]:
    by_op: dict[str, list[JudgedOperator]] = defaultdict(list)
    for registered in source:
        by_op[registered.schema.op].append(registered)
    seen: set[int] = set()
    for library in libraries:
        for found in library.schemas:
            space = found.space
            likely = [other for other in by_op[found.schema.op] if not space or other.key[0] in (None, "", space)]
            seen |= {id(other) for other in likely}
            text = found.line
            where = Location(library.path)
            if not likely:
                message = f"registered nowhere in the source: {text}"
                yield Finding("SP212", where, found.schema.op, message, Severity.WARNING)
            elif not any(_same(found.schema, other.schema) for other in likely):
                other = likely[0]
                diff = word_diff(text, " ".join(str(other.schema).split()))
                yield Finding("SP210", where, found.schema.op, f"to be as in {other.registration.location}: {diff}")
            else:
                same = next(other for other in likely if _same(found.schema, other.schema))
                yield Checked(found.schema.op, where, "", Verdict.RIGHT, f"as in {same.registration.location}")
    for registered in source:
        if id(registered) not in seen:
            message = f"in the source and in no binary: {registered.schema}"
            yield Finding("SP211", registered.registration.location, registered.schema.op, message)


def _same(left: Schema, right: Schema) -> bool:
    return (left.op, left.args, left.returns) == (right.op, right.args, right.returns)
