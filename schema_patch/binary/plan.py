"""One library -> the bytes that make its schemas true, or that take the annotations out. Reads and writes nothing.

A text is changed in place, within its length, and only where each byte that changes is known to be the registration's
alone. What the new bytes say is read again before they are believed (proof.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from schema_patch.elf.evidence.traced import NOWHERE
from schema_patch.elf.placed import PlacedText
from schema_patch.elf.reader import ElfFacts, FoundSchema
from schema_patch.model import Edit, Effect, Location, Span, ToolError, Verdict
from schema_patch.schemas import fit, grammar, rules
from schema_patch.schemas.fit import NoRoom
from schema_patch.schemas.grammar import Schema
from schema_patch.schemas.selection import Selection
from schema_patch.schemas.table import Table
from schema_patch.source.plans import Change
from schema_patch.text.files import SourceFile

# Gives the new text, the same from a place on, or None where all is well. Raises NoRoom, and Refused.
Make = Callable[[Schema, Effect, int], "str | None"]


class Refused(ValueError):
    """Why an operator is left as it is."""


@dataclass(slots=True)
class LibraryPlan:
    """New bytes for a library. `expected`: what it registers then; `errors`: what is left, and why."""

    file: SourceFile
    expected: ElfFacts
    edits: tuple[Edit, ...] = ()
    changes: tuple[Change, ...] = ()
    errors: list[ToolError] = field(default_factory=list)


def annotated(schema: Schema, effect: Effect, end: int) -> str | None:
    """The text that declares what the operator does."""
    if rules.judge(schema, effect).verdict is not Verdict.WRONG:
        return None
    text = fit.annotated(schema, effect, end)
    judgement = rules.judge(grammar.parse(text), effect)
    if judgement.verdict is Verdict.WRONG:
        raise Refused(f"no annotation makes it right: it {judgement.reason}")
    return text


def stripped(schema: Schema, _: Effect, end: int) -> str | None:
    """The text without write annotations."""
    text = fit.stripped(schema)
    if text[end:] != schema.text[end:]:
        raise NoRoom(0)
    return None if text == schema.text else text


def wanted(facts: ElfFacts, table: Table, ops: Selection, make: Make) -> bool:
    """Whether anything is to be changed in a library, as far as its schemas say."""
    return any(
        effect and ops.takes(found.schema.op, space) and _differs(found.schema, effect, make)
        for found in facts.schemas
        for space in [found.space or None]
        for effect in [table.effect(found.schema, space)]
    )


def _differs(schema: Schema, effect: Effect, make: Make) -> bool:
    try:
        return make(schema, effect, len(schema.text)) is not None
    except (NoRoom, Refused):
        return True


def library(
    file: SourceFile, facts: ElfFacts, rows: Sequence[PlacedText], table: Table, ops: Selection, make: Make
) -> LibraryPlan:
    """Plans the change of every operator that a table knows (or of those in `ops`).

    `rows`: the texts with their places. Raises ToolError where the file does not hold these there.
    """
    for row in rows:
        letters = zip(row.offsets, row.text, strict=True)
        if any(at >= 0 and file.data[at : at + 1] != bytes((ord(letter),)) for at, letter in letters):
            raise ToolError("the file changed while it was read: nothing written, run again", file.path)
    plan = LibraryPlan(file, facts)
    news: dict[int, str] = {}
    for index, row in enumerate(rows):
        try:
            new = _text(row, table, ops, make)
        except Refused as error:
            plan.errors.append(ToolError(f"{row.text.partition('(')[0].strip()}: left as it is: {error}", file.path))
            continue
        if new is not None:
            news[index] = new
    conflicts = _conflicts(rows, news)
    for index in conflicts:
        del news[index]
        why = "another registration is given bytes of the same text, and is to stay"
        plan.errors.append(ToolError(f"{rows[index].text.partition('(')[0].strip()}: left as it is: {why}", file.path))
    plan.edits = tuple(_edits(rows, news))
    plan.changes = tuple(_change(rows[index], new, table, file) for index, new in sorted(news.items()))
    plan.expected = _expected(facts, rows, news)
    return plan


def _text(row: PlacedText, table: Table, ops: Selection, make: Make) -> str | None:
    """The new text of one registration, if it is to have one."""
    try:
        schema = grammar.parse(row.text)
    except grammar.SchemaError:
        return None
    space = schema.namespace or row.space or None
    effect = table.effect(schema, space)
    if effect is None or not ops.takes(schema.op, space) or not _differs(schema, effect, make):
        return None
    users = [row.user(index) for index in range(len(row.text))]
    end = next((index for index, user in enumerate(users) if user), len(row.text))
    try:
        new = make(schema, effect, end)
    except NoRoom as error:
        if end == len(row.text):
            raise Refused(str(error)) from error
        what = "its text is" if not end else f"its text from {row.text[end : end + 20]!r} on is"
        raise Refused(f"{what} also used by {users[end]}") from error
    for index, (old, now) in enumerate(zip(row.text, new or "", strict=bool(new))):
        if old != now and row.offsets[index] < 0:
            raise Refused(
                f"the code puts its text together: where {row.text[index : index + 12]!r} comes from is not known"
            )
    return new


def _conflicts(rows: Sequence[PlacedText], news: dict[int, str]) -> list[int]:
    """The registrations of which a byte is to change that is to be another in another text, or in the same."""
    left = dict(news)
    while True:
        bytes_: dict[int, set[str]] = {}
        for index, row in enumerate(rows):
            for at, letter in zip(row.offsets, left.get(index, row.text), strict=True):
                bytes_.setdefault(at, set()).add(letter)
        torn = {at for at, letters in bytes_.items() if len(letters) > 1} - {NOWHERE}
        found = [index for index in left if not torn.isdisjoint(_changing(rows[index], left[index]))]
        if not found:
            return [index for index in news if index not in left]
        for index in found:
            del left[index]


def _changing(row: PlacedText, new: str) -> Iterator[int]:
    return (at for at, old, now in zip(row.offsets, row.text, new, strict=True) if old != now)


def _edits(rows: Sequence[PlacedText], news: dict[int, str]) -> Iterator[Edit]:
    """The bytes that change, in runs."""
    changed = {
        at: ord(now)
        for index, new in news.items()
        for at, old, now in zip(rows[index].offsets, rows[index].text, new, strict=True)
        if old != now
    }
    run: list[int] = []
    for at in [*sorted(changed), None]:
        if run and (at is None or at != run[-1] + 1):
            yield Edit(Span(run[0], run[-1] + 1), bytes(changed[one] for one in run))
            run = []
        if at is not None:
            run.append(at)


def _change(row: PlacedText, new: str, table: Table, file: SourceFile) -> Change:
    schema = grammar.parse(new)
    effect = table.effect(schema, schema.namespace or row.space or None)
    return Change(schema.op, Location(file.path), row.text, new, rules.judge(schema, effect))


def _expected(facts: ElfFacts, rows: Sequence[PlacedText], news: dict[int, str]) -> ElfFacts:
    """What is to be read of the library afterwards: other texts of these registrations, and all else as it was."""
    texts = Counter((row.text, row.space) for row in rows)
    told = {(rows[index].text, rows[index].space): new for index, new in news.items()}
    done = Counter((rows[index].text, rows[index].space) for index in news)
    if any(texts[key] != done[key] for key in told):
        raise ToolError("one text is registered several times, and not each can be changed: nothing is", facts.path)
    return replace(facts, schemas=tuple(_renewed(facts.schemas, told)))


def _renewed(schemas: Iterable[FoundSchema], told: dict[tuple[str, str], str]) -> Iterator[FoundSchema]:
    for found in schemas:
        new = told.get((found.text, found.namespace))
        yield FoundSchema(new, grammar.parse(new), found.namespace) if new else found
