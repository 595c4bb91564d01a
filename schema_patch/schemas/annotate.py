"""Which characters of a schema to change so that it says what the operator does. Pure text; knows no C++ and no file.

`plan` adds what is missing and touches nothing else; `strip` takes write annotations away. Both return TextEdits,
positions in the schema's own text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count
from string import ascii_lowercase

from schema_patch.model import Effect, is_argument

from .grammar import Alias, Arg, Schema
from .rules import results


class Returns(str, Enum):
    """What to make of the return of an operator that hands an argument back."""

    ALIAS = "alias"
    VOID = "void"


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace text[start:end] by `new`."""

    start: int
    end: int
    new: str


def plan(
    schema: Schema, effect: Effect, returns: Returns, *, bare: bool = False, tied: bool = True
) -> tuple[TextEdit, ...]:
    """The edits that make `schema` true.

    Fresh letters are given in argument order, without those already in use. With `bare` a written argument is spelled
    `Tensor!`, the habit of some libraries, except where the return must name its alias set. A return that is not `tied`
    says `Tensor!` too: that it is an alias, not of which argument.
    """
    letters = _fresh_letters(schema)
    handed, loose = _handed_back(schema, effect, tied) if returns is Returns.ALIAS else ({}, [])
    edits = [edit for result in loose for edit in _result(result, "!")]
    for arg in schema.args:
        writes, named = arg.name in effect.writes, arg.name in handed
        alias = _alias(arg)
        if writes and not arg.type.is_write:
            if alias:  # `(a)` or `(a -> b)`: it shares memory, and now says that it writes
                text = schema.text[alias.span.start : alias.span.end]
                at = alias.span.start + len(text.partition("->")[0].rstrip(") \t\r\n"))
                edits.append(TextEdit(at, at, "!"))
            elif bare and not named:
                edits.append(TextEdit(arg.type.base_span.end, arg.type.base_span.end, "!"))
            else:
                alias = Alias((next(letters),), True)
                edits.append(TextEdit(arg.type.base_span.end, arg.type.base_span.end, str(alias)))
        elif named and (alias is None or alias.bare):
            # The return needs a name to refer to; an argument that is only handed back gets one without `!`.
            alias = Alias((next(letters),), writes)
            edits.append(TextEdit(*_place(arg), str(alias)))
        if alias:
            said = str(Alias(alias.before, writes))
            edits += [edit for result in handed.get(arg.name, ()) for edit in _result(result, said)]
    if effect.returned_argument and schema.returns and returns is Returns.VOID:
        edits.append(TextEdit(schema.returns_span.start, schema.returns_span.end, "()"))
    return tuple(sorted(edits, key=lambda edit: edit.start))


def _handed_back(schema: Schema, effect: Effect, tied: bool) -> tuple[dict[str, list[Arg]], list[Arg]]:
    """The results that are arguments, by argument; and those that need not say which."""
    handed: dict[str, list[Arg]] = {}
    loose = []
    bare = {arg.name for arg in schema.args if not arg.type.sets}
    for result, name in results(schema, effect):
        if not tied and name in effect.writes and name in bare:
            loose.append(result)
        elif is_argument(name):
            handed.setdefault(name, []).append(result)
    return handed, loose


def strip(schema: Schema) -> tuple[TextEdit, ...]:
    """The edits that take every write annotation away, of arguments and returns: the control of an experiment."""
    edits = [
        TextEdit(alias.span.start, alias.span.end, "")
        for arg in (*schema.args, *schema.returns)
        for alias in arg.type.aliases()
        if alias.write
    ]
    return tuple(edits)


def apply(text: str, edits: Iterable[TextEdit]) -> str:
    """The text after the edits; positions are those of the text given."""
    for edit in sorted(edits, key=lambda e: e.start, reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


def habit(schemas: Sequence[Schema]) -> bool:
    """Whether these schemas (of one file) spell a write `Tensor!` rather than `Tensor(a!)`."""
    writes = [alias for s in schemas for arg in s.args for alias in arg.type.aliases() if alias.write]
    bare = sum(alias.bare for alias in writes)
    return bare > len(writes) - bare


def _alias(arg: Arg) -> Alias | None:
    return next(arg.type.aliases(), None)


def _place(arg: Arg) -> tuple[int, int]:
    """Where the annotation of this argument stands, or would stand."""
    alias = _alias(arg)
    return (alias.span.start, alias.span.end) if alias else (arg.type.base_span.end, arg.type.base_span.end)


def _result(ret: Arg, annotation: str) -> list[TextEdit]:
    start, end = _place(ret)
    alias = _alias(ret)
    return [] if alias and str(alias) == annotation else [TextEdit(start, end, annotation)]


def _fresh_letters(schema: Schema) -> Iterator[str]:
    """a, b, …, z, a1, b1, …: alias sets that the schema does not use yet."""
    names = (letter + (str(n) if n else "") for n in count() for letter in ascii_lowercase)
    return (name for name in names if name not in schema.sets)
