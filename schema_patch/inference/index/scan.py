"""What a C++ file defines: functions, classes, type names, macros. A scan of braces and parentheses, not a parse.

Fast enough to run over whole trees; looks into no function body. Knows nothing of other files.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from zlib import crc32

from .brackets import TEMPLATE, after_template, angles, arity, split
from .mask import Macro, mask

STRUCTURE = re.compile(r"[{}();]")
BRACES = re.compile(r"[{}]")
NAMESPACE = re.compile(r"\bnamespace\b\s*([\w:]*)\s*(?:\[\[.*?\]\]\s*)?$")
CLASS = re.compile(
    r"\b(?:class|struct|union)\b(?:\s*(?:\[\[.*?\]\]|alignas\s*\([^)]*\)|__align__\s*\([^)]*\)|"
    r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|[A-Z][A-Z0-9_]{3,}\b(?=\s+(?!final\b)\w)))*\s*([\w:]+)?"
)
# A pattern that begins with a plain word is searched for as bytes are; `\b` in front would be tried at every place.
ALIASES = (
    re.compile(r"using(?<!\wusing)\s+(\w+)\s*=\s*(?:typename\s+)?([\w:]+)"),
    re.compile(r"namespace(?<!\wnamespace)\s+(\w+)\s*=\s*(?:typename\s+)?([\w:]+)"),
)
DECORATED = re.compile(r"\b(?:alignas|__align__|__attribute__)\b")
NO_FIELD = re.compile(r"\s*(?:(?:public|private|protected)\s*:\s*)*(?:using|typedef|friend|static|template|enum)\b")
TYPEDEF = re.compile(r"typedef(?<!\wtypedef)\s+(?:typename\s+)?([\w:]{1,200})\s*(?:<[^;{}]{0,400}>)?\s+(\w{1,100})\s*;")
NAME_BEFORE = re.compile(
    r"((?:\w+\s*(?:<[^;{}()]*>)?\s*::\s*)*)"
    r"((?:~|(?<!\w)(?!template\b))\w+|(?<!\w)operator(?:\s*\(\s*\)|\s*[^\s\w(]{1,3}|\s+\w+))\s*(?:<[^;{}]*>)?\s*$"
)
WORDS = re.compile(r"\w+")
USED = re.compile(
    r"\s*((?:(?:static|inline|constexpr|extern|template\s*<[^;{}()]*>|__\w+__|[A-Z][A-Z0-9_]{2,}(?=\s+\w))\s*)*(\w+))\s*"
)
OPERATOR = re.compile(r"(?<!\w)operator$")
WORD = "".join(char for char in map(chr, range(256)) if char.isalnum() or char == "_")
STUB = re.compile(r"\b\w*REGISTER\w*_DISPATCH\w*\s*\(\s*(\w+)\s*,\s*&?\s*([\w:]+)")
BINDING = re.compile(
    r'\bdef\s*\(\s*"(\s*)"\s*,\s*&?\s*([\w:]+)|\bTVM_FFI_DLL_EXPORT_TYPED_FUNC\s*\(\s*(\w+)\s*,\s*([\w:]+)'
)
LONGEST = 20_000  # characters before the brace of a definition
GROUPS = 8  # parentheses of a declaration that are looked at, from each end
NO_NAME = frozenset(
    "__launch_bounds__ __attribute__ alignas decltype noexcept requires sizeof __align__ if for while switch catch "
    "return "
    "throw __declspec static_assert".split()
)
AFTER = re.compile(
    r"(?:\s|const\b|volatile\b|noexcept\b(?:\([^()]*\))?|override\b|final\b|mutable\b|constexpr\b|&&?|try\b|__\w+__|"
    r"\[\[.*?\]\]|[A-Z_]{3,}\b)*(?:->[\w:<>,&*\s()]+)?",
    re.DOTALL,
)
INITIALISERS = re.compile(r"\s*(?:noexcept\s*)?:(?!:)")


@dataclass(frozen=True, slots=True)
class Function:
    """A definition. Spans are offsets in the file: of the parameter list's inside, initialisers, body with braces."""

    name: str
    scope: tuple[str, ...]  # namespaces and classes around it, and those it is qualified with
    path: str
    parameters: tuple[int, int]
    initialisers: tuple[int, int] | None
    body: tuple[int, int]
    head: int
    arity: tuple[int, int]  # fewest and most arguments that it takes; -1: any number
    in_class: bool = False
    declared: int = 0  # a number of its text up to the body: all that is seen of it where it is not read
    whole: tuple[int, int, int] = (0, 0, 0)  # its line, how many macros stand before it, a number of its text

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def key(self) -> tuple[str, int]:
        return self.path, self.body[0]

    @property
    def read_as(self) -> str:
        """What was looked up where its body was read."""
        return f"{self.path}\n{self.name}"


@dataclass(frozen=True, slots=True)
class Class:
    """A class with its bases and the declarations of its fields, in order."""

    name: str
    scope: tuple[str, ...]
    path: str
    bases: tuple[str, ...]
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MacroUse:
    """A macro, perhaps, where declarations stand: `DEFINE(name)`, `DEFINE(name) { body }`."""

    name: str
    start: int
    end: int
    braces: bool  # stand in what it is given, or behind it
    words: tuple[str, ...]  # of its arguments
    scope: tuple[tuple[str, str], ...]  # kind and name of each scope around it


@dataclass(frozen=True, slots=True)
class FileIndex:
    """Everything one file defines."""

    path: str
    functions: tuple[Function, ...] = ()
    classes: tuple[Class, ...] = ()
    prototypes: tuple[tuple[str, str], ...] = ()  # name and parameter list of functions declared here
    aliases: tuple[tuple[str, str], ...] = ()
    macros: tuple[Macro, ...] = ()
    registers: bool = False  # it may hold a registration block
    stubs: tuple[tuple[str, str], ...] = ()  # what REGISTER_DISPATCH says: a stub and a kernel of it
    bindings: tuple[tuple[str, str], ...] = ()  # the name by which Python calls a function, and the function
    uses: tuple[MacroUse, ...] = ()


@dataclass
class DeclaredScope:
    """What stands around declarations."""

    kind: str  # "namespace", "class" or "other"
    name: str
    bases: tuple[str, ...] = ()
    fields: list[str] = field(default_factory=list)


def scan(source: bytes, path: str) -> FileIndex:
    """The definitions of a file."""
    text, macros = mask(source)
    scanner = Scanner(text, path, partial(bisect_right, line_starts(source)), source, macros)
    scanner.run()
    return FileIndex(
        path, tuple(scanner.functions), tuple(scanner.classes), tuple(scanner.prototypes),
        tuple(_aliases(text)), macros, b"LIBRARY" in source,
        tuple(STUB.findall(text)) if "_DISPATCH" in text else (), _bindings(text, source),
        tuple(scanner.uses),
    )  # fmt: skip


def line_starts(source: bytes) -> tuple[int, ...]:
    """Where each line of a file begins."""
    return 0, *(match.end() for match in re.finditer(b"\n", source))


def may_bind(source: bytes) -> bool:
    """A cheap look: could this file hand functions to Python?"""
    return b"PYBIND11_MODULE" in source or b"TVM_FFI_DLL_EXPORT" in source


def _bindings(text: str, source: bytes) -> tuple[tuple[str, str], ...]:
    """The functions that a file hands to Python."""
    found = BINDING.finditer(text) if may_bind(source) else ()
    return tuple((m[3] or source[slice(*m.span(1))].decode("latin-1"), m[2] or m[4]) for m in found)


def _aliases(text: str) -> Iterator[tuple[str, str]]:
    """The names that a file gives to types and namespaces, and theirs."""
    found = sorted((m.start(), m[1], m[2]) for pattern in ALIASES for m in pattern.finditer(text))
    yield from ((new, old) for _, new, old in found)
    if "typedef" in text:
        yield from ((new, old) for old, new in TYPEDEF.findall(text))


class Scanner:
    def __init__(
        self, text: str, path: str, line: Callable[[int], int], source: bytes = b"", macros: Iterable[Macro] = ()
    ) -> None:
        self.text = text
        self.path = path
        self.source = source
        self.line = line
        self.macros = [macro.at for macro in macros]
        self.functions: list[Function] = []
        self.classes: list[Class] = []
        self.prototypes: list[tuple[str, str]] = []
        self.scopes: list[DeclaredScope] = []
        self.uses: list[MacroUse] = []
        self.closing: dict[int, int] = {}
        stack: list[int] = []
        for match in BRACES.finditer(text):
            if match.group() == "{":
                stack.append(match.start())
            elif stack:
                self.closing[stack.pop()] = match.start()

    def run(self, start: int = 0, end: int = sys.maxsize) -> None:
        """Reads what stands there."""
        text, at, head, depth = self.text, start, start, 0
        groups: list[tuple[int, int]] = []  # parentheses at the top level of the declaration at hand
        opened = 0
        while match := STRUCTURE.search(text, at, end):
            char, here = match.group(), match.start()
            at = match.end()
            if char == "(":
                if not depth:
                    opened = here
                depth += 1
            elif char == ")":
                depth = max(0, depth - 1)
                if not depth:
                    groups.append((opened, here))
            elif char == "{":
                if depth:
                    at = self.closing.get(here, here) + 1
                    continue
                at, entered = self.brace(head, here, groups)
                if entered:
                    head, groups = at, []
            elif char == ";":
                if not depth:
                    self.declaration(head, here, groups)
                    head, groups = at, []
            else:
                self.used(head, groups)
                self.leave()
                head, depth, groups = at, 0, []
        self.used(head, groups)

    def used(self, start: int, groups: Sequence[tuple[int, int]], body: int = 0) -> None:
        """Names in front of parentheses, and nothing before them, may be macros: `DEFINE(a) DEFINE(b) void f()`.
        `body`: where that of the last ends, if it has one."""
        for opening, closing in groups:
            found = USED.fullmatch(self.text, start, opening)
            if not found or found[2] in NO_NAME:
                return
            scope = tuple((s.kind, s.name) for s in self.scopes)
            end = body if body and closing == groups[-1][1] else closing + 1
            words = tuple(WORDS.findall(self.text, opening, closing))
            braces = "{" in self.text[opening:end]
            self.uses.append(MacroUse(found[2], found.start(1), end, braces, words, scope))
            start = closing + 1

    def leave(self) -> None:
        if self.scopes:
            scope = self.scopes.pop()
            if scope.kind == "class" and scope.name:
                around = tuple(s.name for s in self.scopes if s.name)
                self.classes.append(Class(scope.name, around, self.path, scope.bases, tuple(scope.fields)))

    def brace(self, start: int, here: int, groups: list[tuple[int, int]]) -> tuple[int, bool]:
        """What opens at this brace: where to go on, and whether a new declaration begins there."""
        text = self.text
        end = self.closing.get(here, len(text)) + 1
        head = text[start:here]
        if len(head) > LONGEST:  # no declaration of C++ is that long
            return end, True
        found = self.function(start, here, groups)
        if found == "initialiser":
            return end, False
        if found:
            self.used(start, groups, end)
            return end, True
        namespace = NAMESPACE.search(head) if "namespace" in head else None
        if namespace:
            self.scopes.append(DeclaredScope("namespace", namespace[1]))
            return here + 1, True
        if "enum" in head and re.search(r"\benum\b", head):
            return end, False
        plain = after_template(head)
        callable_ = any(opening >= start + plain for opening, _ in groups) and not DECORATED.search(head)
        kind = None if callable_ else _class(head)
        if kind and "=" not in head[kind.end() :].split("<")[0].replace("==", ""):
            name = (kind[1] or "").rpartition("::")[2]
            self.scopes.append(DeclaredScope("class", name, _bases(head[kind.end() :])))
            return here + 1, True
        if re.fullmatch(r'\s*extern\s*"\s*"\s*', head):
            self.scopes.append(DeclaredScope("other", ""))
            return here + 1, True
        return end, False

    def function(self, start: int, here: int, groups: list[tuple[int, int]]) -> str:
        text = self.text
        for opening, closing in groups if len(groups) <= 2 * GROUPS else groups[:GROUPS] + groups[-GROUPS:]:
            before = text[start:opening]
            name = name_before(before[-300:])
            if not name or name[1] in NO_NAME:
                continue
            rest = text[closing + 1 : here]
            initialisers = INITIALISERS.match(rest)
            if initialisers:
                last = rest.rstrip()[-1:]
                if last not in (")", "}"):
                    return "initialiser"
            elif not AFTER.fullmatch(rest):
                continue
            if "=" in before.replace("operator=", "").replace("==", "") and not TEMPLATE.match(before):
                continue
            span = (closing + 1 + initialisers.end(), here) if initialisers else None
            self.define(name, start, (opening + 1, closing), span, here)
            return "function"
        return ""

    def define(
        self, name: tuple[str, str], head: int, parameters: tuple[int, int], span: tuple[int, int] | None, body: int
    ) -> None:
        qualifiers = tuple(re.sub(r"<.*", "", part).strip() for part in name[0].split("::") if part.strip())
        around = tuple(part for s in self.scopes if s.name for part in s.name.split("::"))
        scope = around + tuple(q for q in qualifiers if q)
        end = self.closing.get(body, len(self.text) - 1) + 1
        in_class = any(s.kind == "class" for s in self.scopes[-1:]) or bool(qualifiers)
        head += len(self.text[head:body]) - len(self.text[head:body].lstrip())
        takes = arity(self.text[slice(*parameters)])
        plain = re.sub(r"\s+", "", name[1])
        declared = crc32(self.text[head:body].encode("latin-1"))
        number = crc32(self.source[head:end], crc32(self.text[head:end].encode("latin-1")))
        whole = self.line(head), bisect_right(self.macros, head), number
        self.functions.append(
            Function(plain, scope, self.path, parameters, span, (body, end), head, takes, in_class, declared, whole)
        )

    def declaration(self, start: int, here: int, groups: list[tuple[int, int]]) -> None:
        text = self.text[start:here]
        self.used(start, groups)
        if groups:
            opening, closing = groups[0] if len(groups) == 1 else groups[-1]
            name = name_before(self.text[start:opening][-300:])
            if name and "=" not in self.text[start:opening]:
                self.prototypes.append((name[1], self.text[opening + 1 : closing]))
        elif self.scopes and self.scopes[-1].kind == "class" and not NO_FIELD.match(text):
            self.scopes[-1].fields.append(text)


def name_before(before: str) -> tuple[str, str] | None:
    """The qualifiers and the name that stand before a parenthesis; None where no name does.

    Nearly always the name is a word, and so are its qualifiers: stripping words from the end finds those without trying
    a pattern at every place.
    """
    end = len(before.rstrip())
    start = len(before[:end].rstrip(WORD))
    if start < end and before[start:end] != "template":
        start -= before[start - 1 : start] == "~"
        first, outer = start, before[:start].rstrip()
        while outer.endswith("::"):
            inner = outer[:-2].rstrip()
            if inner[-1:] not in WORD or not inner:
                break
            first = len(inner.rstrip(WORD))
            outer = inner[:first].rstrip()
        if not (outer.endswith("::") and outer[:-2].rstrip().endswith(">")) and not OPERATOR.search(outer):
            return before[first:start], before[start:end]
    name = NAME_BEFORE.search(before)
    return (name[1], name[2]) if name else None


def _class(head: str) -> re.Match[str] | None:
    """The class that is declared: the first outside template brackets, as X in `template <class T> struct X`."""
    pairs = angles(head) if "<" in head else {}
    inside = [(opening, closing) for opening, closing in pairs.items() if opening < closing]
    found = CLASS.finditer(head)
    return next((m for m in found if not any(opening < m.start() < closing for opening, closing in inside)), None)


def _bases(text: str) -> tuple[str, ...]:
    """The base classes in what follows the name of a class."""
    colon = re.search(r"(?<!:):(?!:)", text)
    if not colon:
        return ()
    names = [re.sub(r"\b(?:public|private|protected|virtual|typename)\b", "", p) for p in split(text[colon.end() :])]
    return tuple(re.sub(r"<.*", "", name, flags=re.DOTALL).strip().rpartition("::")[2] for name in names)
