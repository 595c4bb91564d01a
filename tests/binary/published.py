"""Published wheels: every operator that declares a write is stripped in place and put back; the bytes must be the same.

    python tests/binary/published.py WHEEL...

The truth is what the wheels say themselves: each schema is taken for a table's word on its operator.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from schema_patch.binary import plan
from schema_patch.elf import placed
from schema_patch.elf.placed import PlacedText
from schema_patch.elf.reader import ElfFacts
from schema_patch.installed import packages
from schema_patch.model import Effect
from schema_patch.schemas.grammar import Schema, parse
from schema_patch.schemas.selection import ALL
from schema_patch.schemas.table import Entry, Table
from schema_patch.text import edits
from schema_patch.text.files import SourceFile


def effect(schema: Schema) -> Effect:
    """What a schema says of its operator. One result of several arguments is said to be the first."""
    words = []
    for result in schema.returns:
        same = (arg.name for arg in schema.args if result.type.sets & arg.type.sets)
        words.append(next(same, schema.writes[0] if result.type.is_write and schema.writes else "fresh"))
    return Effect(schema.op, schema.writes, ", ".join(words) or "nothing", "as published")


class Said(Table):
    """The table that a library's own schemas make."""

    def __init__(self, facts: ElfFacts) -> None:
        told = {found.schema.op: effect(found.schema) for found in facts.schemas if found.schema.writes}
        entries = {op: Entry((), one.returns, writes=one.writes) for op, one in told.items()}
        super().__init__((), entries, frozenset())
        self.told = told

    def effect(self, schema: Schema, namespace: str | None = None) -> Effect | None:
        return self.told.get(schema.op)


def there_and_back(file: SourceFile, facts: ElfFacts, rows: Sequence[PlacedText], told: Counter[str]) -> list[str]:
    """What went wrong."""
    table = Said(facts)
    bare = plan.library(file, facts, rows, table, ALL, plan.stripped)
    new = edits.apply(file.data, bare.edits)
    with tempfile.NamedTemporaryFile(suffix=".so") as copy:
        copy.write(new)
        copy.flush()
        found = placed.read(copy.name)[1]
    again = plan.library(SourceFile(file.path, file.real, new), bare.expected, found, table, ALL, plan.annotated)
    back = edits.apply(new, again.edits)
    told.update(
        operators=len(table.told),
        stripped=len(bare.changes),
        put_back=len(again.changes),
        other_spelling=back != file.data,
    )
    faults = [f"{error}" for error in (*bare.errors, *again.errors)]
    meant = {found.schema.op: found.schema for found in facts.schemas}
    for change in again.changes:
        found, old = parse(change.after), meant[change.op]
        if effect(found) != effect(old):
            faults.append(f"{change.op}: {old.text!r} came back as {change.after!r}")
    if edits.apply(new, edits.inverse(file.data, bare.edits)) != file.data:
        faults.append("what the journal keeps does not give the bytes back")
    return faults


def main(wheels: list[str]) -> int:
    total: Counter[str] = Counter()
    failed = 0
    for wheel in wheels:
        for one in packages.find(wheel).libraries:
            with packages.local(one) as copy:
                start = time.monotonic()
                facts, rows = placed.read(copy, one.path)
                if not any(found.schema.writes for found in facts.schemas):
                    continue
                told: Counter[str] = Counter()
                faults = there_and_back(SourceFile(one.path, Path(copy), Path(copy).read_bytes()), facts, rows, told)
                total += told
                failed += len(faults)
                print(
                    f"{Path(one.path).name}: {dict(told)}, {time.monotonic() - start:.0f} s",
                    *faults,
                    sep="\n    ",
                    flush=True,
                )
    print(f"{dict(total)}, {failed} faults")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
