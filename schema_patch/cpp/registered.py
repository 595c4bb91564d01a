"""What one C++ file registers, as read: schemas, implementations, names without a schema, and what is unreadable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from schema_patch.model import Location, Span
from schema_patch.text.mapped import MappedText


@dataclass(frozen=True, slots=True)
class Implementation:
    """A function that `m.impl` or `m.def` binds to an operator; `span` is the expression that names it."""

    op: str
    namespace: str | None
    location: Location
    span: Span
    kind: str  # "function", "lambda" or "other"
    text: str
    key: str = ""  # the dispatch key as far as it is written there: "CUDA", "Meta"


@dataclass(frozen=True, slots=True)
class Registration:
    """One `m.def` with a whole schema as its text."""

    location: Location
    macro: str
    namespace: str | None
    schema: MappedText
    named_only: bool = False  # only the name stands in the file; the rest of `schema` is what torch infers


@dataclass(frozen=True, slots=True)
class Unwritten:
    """One `m.def` with a name and a function: torch infers the schema from the function's types, without any write."""

    location: Location
    namespace: str | None
    name: MappedText
    implementation: Implementation | None

    @property
    def op(self) -> str:
        return self.name.text.strip().rpartition("::")[2]

    @property
    def function(self) -> str:
        """The expression that names it."""
        return self.implementation.text if self.implementation else ""

    def registration(self, schema: str) -> Registration:
        """As if the inferred schema stood behind the name."""
        text = MappedText(self.name.text + schema[schema.index("(") :], self.name.spans)
        return Registration(self.location, "", self.namespace, text, named_only=True)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that looks like a registration and cannot be mapped to bytes; `text` is what can be seen of it.

    A fatal one means that the file itself cannot be believed (cut, or not C++). A hint is worth a word only where it
    names an operator that is known.
    """

    location: Location
    message: str
    text: str = ""
    fatal: bool = False
    hint: bool = False


@dataclass(frozen=True, slots=True)
class Constant:
    """A name that stands for the text of a registration, and that the file does not define."""

    name: str
    namespace: str | None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What other files of a tree have to do with one: the text of constants that they define for it, and the constants
    with which they register, by namespace."""

    constants: Mapping[str, str] = field(default_factory=dict)
    registered: Mapping[str, str | None] = field(default_factory=dict)


NOWHERE = Elsewhere()


@dataclass(frozen=True, slots=True)
class Source:
    """What one file registers."""

    registrations: tuple[Registration, ...] = ()
    implementations: tuple[Implementation, ...] = ()
    unwritten: tuple[Unwritten, ...] = ()
    problems: tuple[Problem, ...] = ()
    inert: tuple[Span, ...] = ()  # comments and pybind11 modules: nothing there registers an operator
    prologue_end: int = 0  # behind the last #include at file scope before anything is registered
    unclear: tuple[Constant, ...] = ()
