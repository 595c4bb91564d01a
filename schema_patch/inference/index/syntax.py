"""One function as syntax nodes: its parameters and body, macros expanded, launches made calls. A door to tree-sitter.

Only the function is parsed, behind a plain header of our own, so that nothing around it can confuse the parse.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from schema_patch.cpp import syntax

from . import constants
from .brackets import split
from .index import Index
from .macros import Expanded, Expander
from .scan import Function
from .texts import FileText

TYPE_PARAMETER = re.compile(r"\b(?:typename|class)\s*(?:\.\.\.)?\s*(\w+)")
PLAIN = re.compile(r"(?:const )?(?:bool|int|float|double|size_t|u?int(?:8|16|32|64)_t)(?: const)?$")
LAUNCH = re.compile(r"<<<(?:[^;{}]|\{[^{}]*\})*?>>>")
# `SWITCH(…, CASE(…) CASE(…))`, as dispatch macros expand: a list for the parser.
CASES = re.compile(r"\)(\s+)(?=\w*_CASE\w*\s*\()")


@dataclass(frozen=True, slots=True)
class DeclaredParameter:
    """A parameter of a function as declared."""

    name: str
    type: str
    reference: bool
    const: bool  # what it points or refers to is const


@dataclass(frozen=True, slots=True)
class Body:
    """A function ready to be read."""

    function: Function
    parameters: tuple[DeclaredParameter, ...]
    root: Node
    source: str  # what was parsed, a character for each byte
    expanded: Expanded
    file: FileText
    template_types: tuple[str, ...]  # names that stand for any type
    template_names: frozenset[str]  # those, and those that stand for a value or a function

    def line(self, node: Node) -> int:
        """The line of the file that a node comes from."""
        return self.file.line(self.expanded.offset(node.start_byte))

    def text(self, node: Node | None) -> str:
        """A node as written; nothing of none."""
        return self.source[node.start_byte : node.end_byte] if node else ""


@lru_cache(maxsize=65536)
def plain(text: str) -> frozenset[int]:
    """Which parameters of a list are a pointer or a number: no reference, no object with fields, no pack."""
    types = enumerate(declared.type for declared in read_parameters(text))
    return frozenset(n for n, kind in types if PLAIN.match(kind) or ("*" in kind and "&" not in kind))


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def parse(function: Function, index: Index) -> Body:
    """Reads one function out of its file."""
    file = index.text(function.path)
    masked = file.masked
    expander = Expander(index.macros_among, lambda name, at: index.macro(name, function.path, at))
    expander.add("void f() {", function.head)
    if function.initialisers:
        start, end = function.initialisers
        at = start
        for part in split(masked[start:end]):
            place = masked.index(part, at) if part in masked[at:end] else at
            match = re.match(r"\s*([\w:]+)\s*(?:<[^(){}]*>)?\s*([({])(.*)[)}]\s*$", part, re.DOTALL)
            if match:
                base = index.class_named(match[1].rpartition("::")[2])
                opening, closing = ("{", "}") if "," in match[3] and not base else ("(", ")")
                expander.add(f"this->{base}{opening}" if base else f"this->{match[1]} = {opening}", place)
                expander.add_expanded(match[3] or ("" if base else "0"), place + match.start(3))
                expander.add(f"{closing};", place)
            at = place + len(part)
    start, end = function.body
    expander.add_expanded(masked[start:end], start)
    expander.add("}", end)
    whole = expander.result()
    text = LAUNCH.sub(_blank, whole.text) if "<<<" in whole.text else whole.text
    if "_CASE" in text:
        text = CASES.sub(lambda match: ")," + match[1][1:], text)
    parameters = Expander(index.macros_among, expander.lookup)
    parameters.add_expanded(masked[slice(*function.parameters)], function.parameters[0])
    root = syntax.parse(text.encode("latin-1"))
    head = masked[function.head : function.parameters[0]]
    types = tuple(TYPE_PARAMETER.findall(head)) if head.startswith("template") else ()
    names = frozenset(constants.parameters(head)) - {""}
    return Body(function, read_parameters(parameters.result().text), root, text, whole, file, types, names)


@lru_cache(maxsize=8192)
def read_parameters(text: str) -> tuple[DeclaredParameter, ...]:
    """The parameters of a list, as declared."""
    found = []
    for raw in split(text):
        part = raw.split("=")[0]
        if "<" in part and ">" not in part:
            part = raw
        part = re.sub(r"\[\[.*?\]\]", "", part).strip()
        array = re.search(r"\[[^\]]*\]\s*$", part)
        while array:
            part = part[: array.start()].rstrip() + " "
            array = re.search(r"\[[^\]]*\]\s*$", part)
        match = re.search(r"(\w+)\s*$", part)
        name = match[1] if match else ""
        kind = part[: match.start()].strip() if match else part
        if not kind or kind.endswith("::") or kind in ("const", "unsigned", "struct"):  # a type alone, without a name
            kind, name = part, ""
        outer = kind.rstrip("&* ").strip()
        pointer = "*" in kind[len(outer) :]
        # `T* const p` is a const pointer to what can be written; `const T* p` is not.
        const = bool(re.match(r"const\b", outer) or re.search(r"\bconst$", outer)) and pointer
        found.append(DeclaredParameter(name, kind, kind.endswith("&"), const))
    return tuple(found)
