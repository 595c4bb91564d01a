"""An operator schema, once read: arguments, types and annotations with their spans. Parses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from schema_patch.model import Span

NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True)
class Alias:
    """An alias annotation. `Tensor!` has no set names and no `after`; `(a)` and `(a!)` have `after` None."""

    before: tuple[str, ...]
    write: bool
    after: tuple[str, ...] | None = None
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def bare(self) -> bool:
        """Spelled `!`, without parentheses."""
        return not self.before and self.write and self.after is None

    def __str__(self) -> str:
        if self.bare:
            return "!"
        arrow = "" if self.after is None else f" -> {'|'.join(self.after)}"
        return f"({'|'.join(self.before)}{'!' if self.write else ''}{arrow})"


@dataclass(frozen=True, slots=True)
class Suffix:
    """`[]`, `[N]` or `?`, with the annotation of the container where there is one."""

    text: str
    alias: Alias | None = None

    def __str__(self) -> str:
        return self.text + (str(self.alias) if self.alias else "")


@dataclass(frozen=True, slots=True)
class Type:
    """A type: its base name (empty for a tuple), the types inside, its annotation and its suffixes."""

    base: str
    inner: tuple[Type, ...] = ()
    alias: Alias | None = None
    suffixes: tuple[Suffix, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)
    base_span: Span = field(default=NOWHERE, compare=False)

    def aliases(self) -> Iterator[Alias]:
        """Every annotation of this type, from the element outwards."""
        for inner in self.inner:
            yield from inner.aliases()
        if self.alias:
            yield self.alias
        yield from (suffix.alias for suffix in self.suffixes if suffix.alias)

    @property
    def is_write(self) -> bool:
        return any(alias.write for alias in self.aliases())

    @property
    def sets(self) -> frozenset[str]:
        """The alias sets named anywhere in this type."""
        return frozenset(name for alias in self.aliases() for name in (*alias.before, *(alias.after or ())))

    @property
    def is_tensor(self) -> bool:
        """A Tensor, an optional one or a list of them."""
        return self.base == "Tensor"

    def __str__(self) -> str:
        inner = f"({', '.join(map(str, self.inner))})" if self.inner or not self.base else ""
        alias = str(self.alias) if self.alias else ""
        return self.base + inner + alias + "".join(map(str, self.suffixes))


@dataclass(frozen=True, slots=True)
class Arg:
    """An argument or a return value; a return value may have no name."""

    type: Type
    name: str
    default: str | None = None
    kwarg_only: bool = False
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        default = "" if self.default is None else f"={self.default}"
        return f"{self.type}{' ' if self.name else ''}{self.name}{default}"


@dataclass(frozen=True, slots=True)
class Schema:
    """A whole schema. Equality ignores spans and spelling of white space; `text` is what was parsed."""

    name: str
    overload: str
    args: tuple[Arg, ...]
    returns: tuple[Arg, ...]
    vararg: bool = False
    varret: bool = False
    text: str = field(default="", compare=False)
    returns_span: Span = field(default=NOWHERE, compare=False)

    @property
    def op(self) -> str:
        """The operator's name without its namespace and with its overload."""
        return self.name.rsplit("::", 1)[-1] + (f".{self.overload}" if self.overload else "")

    @property
    def namespace(self) -> str | None:
        return self.name.rpartition("::")[0] or None

    @property
    def writes(self) -> tuple[str, ...]:
        """Names of the arguments declared as written, in order."""
        return tuple(arg.name for arg in self.args if arg.type.is_write)

    @property
    def sets(self) -> frozenset[str]:
        return frozenset(name for arg in (*self.args, *self.returns) for name in arg.type.sets)

    @property
    def returns_alias(self) -> bool:
        """Some return value is declared to share memory with an argument."""
        return any(any(True for _ in ret.type.aliases()) for ret in self.returns)

    def __str__(self) -> str:
        parts: list[str] = []
        for index, arg in enumerate(self.args):
            if arg.kwarg_only and not (index and self.args[index - 1].kwarg_only):
                parts.append("*")
            parts.append(str(arg))
        if self.vararg:
            parts.append("...")
        # A lone tuple needs the parentheses of a list of returns, unless its suffix tells it from one.
        single = (
            len(self.returns) == 1
            and not self.varret
            and bool(self.returns[0].type.base or self.returns[0].type.suffixes)
        )
        inside = ", ".join([*map(str, self.returns), *(["..."] if self.varret else [])])
        returns = inside if single or (self.varret and not self.returns) else f"({inside})"
        overload = f".{self.overload}" if self.overload else ""
        return f"{self.name}{overload}({', '.join(parts)}) -> {returns}"
