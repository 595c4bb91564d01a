"""The operator-schema grammar: text -> Schema with spans, and back. Knows no C++.

Written from the behaviour of `torch._C.parse_schema`, which the tests hold it against:

    schema    = name '(' [argument {',' argument}] ')' '->' returns
    name      = [ident '::'] ident ['.' ident]
    argument  = '*' | '...' | type ident ['=' default]
    returns   = '...' | '(' [return {',' return}] ')' | return
    return    = type [ident]
    type      = (tuple | ident ['(' type {',' type} ')'] | ident {'.' ident}) [alias] {suffix}
    suffix    = '[' [number] ']' [alias] | '?'
    alias     = '(' [sets] ['!'] ['->' [sets]] ')' | '!'
    sets      = ('*' | ident) {'|' ('*' | ident)}

White space is free between tokens, line breaks only inside parentheses, as in torch. Some spellings are read though
torch only prints them: the numbered set of `Tensor($0! -> )`, the type PyObject, a list of tuples as the return.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from schema_patch.model import Span

from .types import Alias, Arg, Schema, Suffix, Type

__all__ = ["Alias", "Arg", "Schema", "SchemaError", "Suffix", "Type", "parse"]

# Words that torch's lexer takes for itself, so that no argument can be called so.
RESERVED = frozenset(
    "True False None NoneType and as assert break class continue def del elif else for global if import "
    "in is not or pass raise return while with".split()
)

# Type constructors that take types in parentheses; after any other name a parenthesis opens an alias annotation.
GENERIC = frozenset({"Dict", "Future", "Await", "RRef", "Union"})

# The names torch knows. One in lower case is a type variable, one in `__torch__.` a class; any other is a mistake.
TYPES = GENERIC | frozenset(
    "Tensor int float bool str complex Scalar number SymInt SymBool ScalarType Layout MemoryFormat Device DeviceIndex "
    "Stream Generator Dimname Storage QScheme Quantizer Capsule Any AnyClassType AnyEnumType NoneType "
    "None ConstQuantizerPtr PyObject".split()
)

# The names a default may be.
CONSTANTS = frozenset(
    "None True False Mean strided contiguous_format float double half long int short char byte bool "
    "complex uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 bfloat16 cfloat "
    "cdouble".split()
)

DEEPEST = 50  # nested types or lists; real ones nest two or three

TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)j?)
      | (?P<ident>[A-Za-z_$][A-Za-z0-9_$]*)
      | (?P<punct>\.\.\.|::|->|[()\[\]{},*?!=|.+-])""",
    re.VERBOSE | re.DOTALL,
)
BLANK = re.compile(r"(?:\s|\\\r?\n|#[^\n]*)*", re.ASCII)  # torch asks the C locale what is a space
SPLICED = re.compile(r"(?:[^\S\n]|\\\r?\n)*", re.ASCII)


class SchemaError(ValueError):
    """The text is no operator schema. The message ends with the text and a caret under the place."""

    def __init__(self, message: str, text: str, offset: int) -> None:
        self.message, self.text, self.offset = message, text, offset
        line_start = text.rfind("\n", 0, offset) + 1
        line = text[line_start:].split("\n", 1)[0]
        super().__init__(f"{message}\n    {line}\n    {' ' * (offset - line_start)}^")


def parse(text: str) -> Schema:
    """Reads a whole schema. Raises SchemaError, with a caret, where the text is not one."""
    return _Parser(text).schema()


@dataclass(frozen=True, slots=True)
class Token:
    """`kind`: string, number, ident, punct, or end."""

    kind: str
    text: str
    span: Span


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(tokens(text))
        self.at = 0
        self.depth = 0

    def schema(self) -> Schema:
        name, overload = self.name()
        args, vararg = self.arguments()
        self.expect("->", "'->' and the return type")
        start = self.peek.span.start
        returns, varret = self.returns()
        returns_span = Span(start, self.tokens[self.at - 1].span.end)
        if self.peek.kind != "end":
            raise self.error("the end of the schema")
        return Schema(name, overload, args, returns, vararg, varret, self.text, returns_span)

    def name(self) -> tuple[str, str]:
        parts = [self.ident("the operator's name")]
        if self.take("::"):
            parts.append(self.ident("a name after '::'"))
        overload = self.ident("an overload name after '.'") if self.take(".") else ""
        if overload == "default":
            self.at -= 1
            raise self.error("an overload name other than 'default', which torch keeps for itself")
        return "::".join(parts), overload

    def arguments(self) -> tuple[tuple[Arg, ...], bool]:
        """Arguments in parentheses; the flag says that `...` follows them."""
        args: list[Arg] = []
        vararg = kwarg_only = False

        def argument() -> None:
            nonlocal vararg, kwarg_only
            if vararg:
                raise self.error("')' after '...'")
            if self.take("..."):
                vararg = True
            elif self.take("*"):
                kwarg_only = True
            else:
                args.append(self.argument(kwarg_only, args))

        self.listed("(", ")", argument)
        return tuple(args), vararg

    def argument(self, kwarg_only: bool, before: list[Arg]) -> Arg:
        kind = self.type()
        here = self.at
        name = self.ident("the argument's name after its type")
        default = self.default() if self.take("=") else None
        # torch lets a list follow an argument with a default, and nothing else.
        is_list = bool(kind.suffixes) and kind.suffixes[-1].text != "?"
        if default is None and not kwarg_only and not is_list and any(arg.default is not None for arg in before):
            self.at = here
            raise self.error(f"a default for '{name}', because the argument before it has one")
        return Arg(kind, name, default, kwarg_only, Span(kind.span.start, self.tokens[self.at - 1].span.end))

    def returns(self) -> tuple[tuple[Arg, ...], bool]:
        """What follows the arrow; a parenthesis opens a list of returns, unless a suffix makes it a tuple type."""
        if self.take("..."):
            return (), True
        if self.peek.text != "(" or self.after_parenthesis() in ("[", "?"):
            return (self.returned(),), False
        found: list[Arg] = []
        varret = False

        def one() -> None:
            nonlocal varret
            if varret:
                raise self.error("')' after '...'")
            if self.take("..."):
                varret = True
            else:
                found.append(self.returned())

        self.listed("(", ")", one)
        return tuple(found), varret

    def after_parenthesis(self) -> str:
        """The token behind the parenthesis that opens here."""
        depth = 0
        for index in range(self.at, len(self.tokens) - 1):
            depth += {"(": 1, ")": -1}.get(self.tokens[index].text, 0)
            if not depth:
                return self.tokens[index + 1].text
        return ""

    def returned(self) -> Arg:
        kind = self.type()
        name = self.next().text if self.peek.kind == "ident" and self.peek.text not in RESERVED else ""
        return Arg(kind, name, span=Span(kind.span.start, self.tokens[self.at - 1].span.end))

    def type(self) -> Type:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(f"types nested at most {DEEPEST} deep")
        kind = self.nested_type()
        self.depth -= 1
        return kind

    def nested_type(self) -> Type:
        start = self.peek.span
        inner: list[Type] = []
        if self.peek.text == "(":
            base = ""
            self.listed("(", ")", lambda: inner.append(self.type()))
        else:
            base = self.base_type()
            if base in GENERIC:
                self.listed("(", ")", lambda: inner.append(self.type()))
        base_span = Span(start.start, self.tokens[self.at - 1].span.end)
        alias = self.alias() if base else None
        suffixes: list[Suffix] = []
        while True:
            if self.take("["):
                size = self.next().text if self.peek.kind == "number" else ""
                self.expect("]", "']' to close the list type")
                suffixes.append(Suffix(f"[{size}]", self.alias()))
                if size:  # torch takes a size at the end only
                    suffixes += [Suffix("?")] if self.take("?") else []
                    break
            elif self.take("?"):
                suffixes.append(Suffix("?"))
            else:
                break
        span = Span(start.start, self.tokens[self.at - 1].span.end)
        return Type(base, tuple(inner), alias, tuple(suffixes), span, base_span)

    def base_type(self) -> str:
        if self.peek.text == "None":
            return self.next().text
        if self.peek.kind == "ident" and not (
            self.peek.text in TYPES or self.peek.text[0].islower() or self.peek.text.startswith("__torch__")
        ):
            raise self.error("a type that torch knows")
        parts = [self.next().text] if self.peek.text == "NoneType" else [self.ident("a type")]
        while self.peek.text == "." and parts[0].startswith("__torch__"):
            self.next()
            parts.append(self.ident("a name after '.'"))
        return ".".join(parts)

    def alias(self) -> Alias | None:
        start = self.peek.span.start
        if self.take("!"):
            return Alias((), True, None, Span(start, self.tokens[self.at - 1].span.end))
        if not self.take("("):
            return None
        before = self.sets()
        write = self.take("!")
        after = (self.sets() if self.peek.text != ")" else ()) if self.take("->") else None
        if not before and after is None:
            raise self.error("the name of an alias set, as in '(a!)'")
        self.expect(")", "')' to close the alias annotation")
        return Alias(before, write, after, Span(start, self.tokens[self.at - 1].span.end))

    def sets(self) -> tuple[str, ...]:
        if self.peek.kind != "ident" and self.peek.text != "*":
            return ()
        names = [self.next().text]
        while self.take("|"):
            if self.peek.kind != "ident" and self.peek.text != "*":
                raise self.error("the name of an alias set after '|'")
            names.append(self.next().text)
        return tuple(names)

    def default(self) -> str:
        """A constant: number, string, name, or a list of constants. Its text is kept as it stands."""
        start = self.peek.span.start
        self.constant()
        return self.text[start : self.tokens[self.at - 1].span.end]

    def constant(self) -> None:
        if self.peek.text == "[":
            self.depth += 1
            if self.depth > DEEPEST:
                raise self.error(f"lists nested at most {DEEPEST} deep")
            self.listed("[", "]", self.constant)
            self.depth -= 1
        elif self.take("-") or self.peek.kind == "number":
            if self.peek.kind != "number":
                raise self.error("a number")
            self.next()
        elif self.peek.kind == "string" or self.peek.text in CONSTANTS:
            self.next()
        else:
            raise self.error("a default value")

    def listed(self, opening: str, closing: str, item: Callable[[], None]) -> None:
        self.expect(opening, f"'{opening}'")
        if self.take(closing):
            return
        item()
        while self.take(","):
            item()
        self.expect(closing, f"',' or '{closing}'")

    @property
    def peek(self) -> Token:
        return self.tokens[self.at]

    def next(self) -> Token:
        token = self.peek
        self.at += 1
        return token

    def take(self, text: str) -> bool:
        if self.peek.text == text and self.peek.kind == "punct":
            self.at += 1
            return True
        return False

    def expect(self, text: str, wanted: str) -> None:
        if not self.take(text):
            raise self.error(wanted)

    def ident(self, wanted: str) -> str:
        if self.peek.kind != "ident" or self.peek.text in RESERVED or self.peek.text.startswith("$"):
            raise self.error(wanted)
        return self.next().text

    def error(self, wanted: str) -> SchemaError:
        found = "the text ends" if self.peek.kind == "end" else f"found '{self.peek.text}'"
        return SchemaError(f"expected {wanted}, {found}", self.text, self.peek.span.start)


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a schema, the last of kind "end". Raises SchemaError."""
    at = depth = 0
    started = False
    while True:
        end = BLANK.match(text, at).end()  # type: ignore[union-attr]  # matches everywhere
        if end == len(text):
            break
        line_break = text.find("\n", at, end)
        if line_break >= 0 and started and not depth and not SPLICED.fullmatch(text, at, end):
            raise SchemaError("a line break outside parentheses: torch ends the schema here", text, line_break)
        match = TOKEN.match(text, end)
        if not match:
            raise SchemaError(f"unexpected character {text[end]!r}", text, end)
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(match.group(), 0)
        started = True
        yield Token(match.lastgroup or "", match.group(), Span(end, match.end()))
        at = match.end()
    yield Token("end", "", Span(len(text), len(text)))
