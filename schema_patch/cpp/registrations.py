"""C++ bytes -> the operator registrations in them, mapped to file bytes.

Knows how PyTorch libraries register operators; knows no schema grammar, no policy, no file. What it cannot map to bytes
it reports as a Problem; it never guesses.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from tree_sitter import Node

from schema_patch.model import Location, Span
from schema_patch.text.mapped import MappedText, Unreadable

from . import functions, literals, objects, regions, syntax
from .constants import LITERALS, NAMES
from .registered import NOWHERE, Constant, Elsewhere, Implementation, Problem, Registration, Source, Unwritten
from .syntax import children, first, is_a, part
from .texts import Texts, Unclear

BLOCK = re.compile(r"(?:\w+_)?LIBRARY(?:_(?:FRAGMENT|IMPL|EXPAND|INIT|THREAD_UNSAFE_LAZY_INIT))*")
BLOCK_IN_TEXT = re.compile(rb"^[ \t]*((?:\w+_)?TORCH_LIBRARY(?:_(?:FRAGMENT|IMPL|EXPAND))*)[ \t]*\(", re.MULTILINE)
LIBRARY_PARAMETER = re.compile(r"\bLibrary\s*&\s*(\w+)")
CONDITIONAL = re.compile(rb"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|else|endif)\b(?:[^\n\\]|\\.|\\\r?\n)*", re.MULTILINE)
SCHEMA_IN_MACRO = re.compile(rb"\.\s*def\s*\([^;]{0,4000}?->", re.DOTALL)
DEF_CALL = re.compile(rb"\.\s*def\s*\(")
DISPATCH_KEY = re.compile(r"(?:\bk|DispatchKey::)([A-Z]\w*)")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
WHOLE = re.compile(rb"(?:\s|/\*.*?\*/|//[^\n]*)*[,)]", re.DOTALL)  # what stands behind the whole text of an argument

HIDDEN = ("comment", "string_literal", "raw_string_literal", "char_literal")
READ = ("function_definition", "preproc_def", "preproc_function_def", *HIDDEN)

# Jinja is no C++ yet; what it makes is what can be read.
TEMPLATE = "not read: the file is a template; check what it makes"


@dataclass
class _Found:
    registrations: list[Registration] = field(default_factory=list)
    implementations: list[Implementation] = field(default_factory=list)
    unwritten: list[Unwritten] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    inert: list[Span] = field(default_factory=list)
    unclear: list[Constant] = field(default_factory=list)


def may_register(source: bytes) -> bool:
    """A cheap look: could this file register operators? The one rule for check, audit and archives.

    A block's macro ends in LIBRARY or begins so; what stands in the block may be a macro of any name.
    """
    return b"LIBRARY" in source or b"RegisterOperators" in source or objects.may_be(source)


def read(source: bytes, path: str, elsewhere: Elsewhere = NOWHERE) -> Source:
    """Every registration in a C++ file, in file order; with what other files of its tree have to do with it."""
    reader = _Reader(source, path, elsewhere)
    reader.read()
    found = reader.found
    return Source(
        tuple(found.registrations), tuple(found.implementations), tuple(found.unwritten), tuple(found.problems),
        tuple(found.inert), reader.prologue_end(), tuple(found.unclear),
    )  # fmt: skip


def constants(source: bytes, names: Iterable[str]) -> dict[str, str]:
    """The texts of the constants of these names that a file defines."""
    reader = _Reader(source, "", NOWHERE)
    found = {name: reader.constant(name) for name in names}
    return {name: text.text for name, text in found.items() if text and "(" in text.text}  # no names alone


def _blank(source: bytes, start: int, end: int) -> bytes:
    """The same length and lines, without what stands between."""
    return source[:start] + re.sub(rb"[^\n]", b" ", source[start:end]) + source[end:]


class _Reader:
    def __init__(self, source: bytes, path: str, elsewhere: Elsewhere) -> None:
        self.source = source
        self.path = path
        self.elsewhere = elsewhere
        self.lines = [0] + [m.end() for m in re.finditer(b"\n", source)]
        # tree-sitter knows no line splice with a carriage return; the copy that it sees is of equal length.
        self.clean = source.replace(b"\\\r\n", b" \\\n")
        self.dead = list(regions.dead(self.clean))
        for span in self.dead:
            self.clean = _blank(self.clean, span.start, span.end)
        if len(source) > regions.LARGE:
            self.clean = regions.registering(self.clean)
        self.root = syntax.parse(self.clean)
        self.found = _Found(inert=self.dead)
        self.macros: list[str] = []  # that register something
        self.texts = Texts(self.clean, self.root)

    def location(self, offset: int) -> Location:
        line = bisect_right(self.lines, offset)
        return Location(self.path, line, offset - self.lines[line - 1] + 1)

    def text(self, node: Node | None) -> str:
        return syntax.text(node, self.source)

    def prologue_end(self) -> int:
        blocks = [n.start_byte for n in self.root.children if n.type == "function_definition" and self.is_block(n)]
        first = min(blocks, default=len(self.source))
        ends = [n.end_byte for n in self.root.children if n.type == "preproc_include" and n.end_byte <= first]
        return max(ends, default=len(codecs.BOM_UTF8) if self.source.startswith(codecs.BOM_UTF8) else 0)

    def read(self) -> None:
        covered: list[Span] = []
        old = b"RegisterOperators" in self.source
        hidden: list[Span] = []  # comments, literals and macro bodies: what looks like a block there is none
        for node in syntax.nodes(self.root, *READ, *(("call_expression",) if old else ())):
            if node.type == "function_definition" and self.is_block(node):
                if self.read_block(node):
                    covered.append(Span(node.start_byte, node.end_byte))
            elif node.type == "function_definition" and (self.declarator(node) or ("",))[0].startswith("PYBIND11_"):
                self.found.inert.append(Span(node.start_byte, node.end_byte))
            elif node.type in HIDDEN:
                hidden.append(Span(node.start_byte, node.end_byte))
                if node.type == "comment":
                    self.found.inert.append(hidden[-1])
            elif node.type == "call_expression":
                self.read_old(node)
            elif node.type in ("preproc_def", "preproc_function_def"):
                hidden.append(Span(node.start_byte, node.end_byte))
                self.read_macro(node)
        for match in BLOCK_IN_TEXT.finditer(self.clean):
            at = match.start(1)
            if not any(span.start <= at < span.end for span in (*covered, *hidden)):
                self.read_alone(at)
        for found in objects.calls(self.clean, self.root, [*covered, *hidden, *self.found.inert]):
            self.read_call(found.method, found.arguments, "Library", found.namespace)
        self.read_uses(hidden)
        for name, namespace in self.elsewhere.registered.items():
            text = self.constant(name)
            if text:
                where = self.location(text.spans[0].start)
                self.found.registrations.append(Registration(where, "constant", namespace, text))
        self.found.registrations.sort(key=lambda r: (r.location.line, r.location.column))

    def constant(self, name: str) -> MappedText | None:
        """The text of a constant that this file defines."""
        try:
            text = literals.read(self.source, self.texts.named(name))
            return text if text.spans else None
        except Unreadable:
            return None

    def read_uses(self, hidden: list[Span]) -> None:
        """Where macros that register something are used."""
        told = {problem.location for problem in self.found.problems}
        names = b"|".join(re.escape(name.encode("latin-1")) for name in self.macros)
        uses = re.finditer(rb"\b(" + names + rb")[ \t]*\([^;{}]{0,2000}?\)", self.clean) if names else ()
        for match in uses:
            where = self.location(match.start())
            if where not in told and not any(span.start <= match.start() < span.end for span in hidden):
                name, text = match[1].decode("latin-1"), match.group().decode("latin-1")
                message = f"perhaps registered by {name}, which is not followed: edit it by hand"
                self.found.problems.append(Problem(where, message, text, hint=True))

    def read_alone(self, at: int) -> None:
        """A block where the parser stumbled: parse it again with all that stands before it blanked."""
        for conditionals in (False, True):
            copy = _blank(self.clean, 0, at)
            if conditionals:
                for match in CONDITIONAL.finditer(copy):
                    copy = _blank(copy, match.start(), match.end())
            blocks = (node for node in syntax.parse(copy).children if node.type == "function_definition")
            block = next((node for node in blocks if self.is_block(node) and node.start_byte >= at), None)
            if block and self.read_block(block):
                return
        if b"{%" in self.source:
            self.problem(at, TEMPLATE)
        else:
            message = "expected a whole registration block, found one that does not end: is the file cut?"
            self.problem(at, message, fatal=True)

    def declarator(self, node: Node) -> tuple[str, str] | None:
        """Name and parameters of a function definition."""
        declarator = part(node, "declarator")
        while declarator and declarator.type != "function_declarator":
            declarator = part(declarator, "declarator")
        name, parameters = part(declarator, "declarator"), part(declarator, "parameters")
        return (self.text(name), self.text(parameters)[1:-1]) if name and parameters else None

    def is_block(self, node: Node) -> bool:
        found = self.declarator(node)
        return bool(found and (BLOCK.fullmatch(found[0]) or LIBRARY_PARAMETER.search(found[1])))

    def read_block(self, node: Node) -> bool:
        """Whether the block ends, and so is one that can be believed."""
        body = part(node, "body")
        last = body.children[-1] if body and body.children else None
        if body is None or not is_a(last, "}") or last.is_missing:
            return False
        name, parameters = self.declarator(node) or ("", "")
        key = ""
        if BLOCK.fullmatch(name):
            parts = [part.strip() for part in COMMENT.sub(" ", parameters).split(",")]
            handle = parts[-1]
            namespace = None if self.is_macro(parts[0]) else parts[0]
            key = parts[1] if "IMPL" in name and len(parts) > 2 else ""
        else:
            match = LIBRARY_PARAMETER.search(parameters)
            name, handle, namespace = "Library&", match[1] if match else "", None
        seen: set[int] = set()
        for call in syntax.nodes(body, "call_expression"):
            function, method = part(call, "function"), part(call, "function", "field")
            if function and method and self.text(method) in ("def", "impl") and self.receiver(function) == handle:
                seen.add(method.start_byte)
                self.read_call(self.text(method), part(call, "arguments"), name, namespace, key)
        self.read_others(body)
        # Count again without the tree: a call that it lost must not go unseen.
        calls = re.compile(rb"\b" + re.escape(handle.encode("latin-1")) + rb"\s*\.\s*(def|impl)\s*\(")
        hidden = syntax.nodes(body, *HIDDEN)
        for found in calls.finditer(self.clean, body.start_byte, body.end_byte):
            inside = any(n.start_byte <= found.start() < n.end_byte for n in hidden)
            if found.start(1) not in seen and not inside:
                text = self.source[found.start() : found.start() + 400].decode("latin-1")
                self.problem(found.start(), "cannot read this call: the C++ around it does not parse", text)
        return True

    def read_call(self, method: str, arguments: Node | None, macro: str, namespace: str | None, key: str = "") -> None:
        """A call of `def` or `impl` on a library."""
        items = children(arguments)
        for _ in self.texts.constants.turns(items[0]) if items else ():
            if method == "def":
                self.define(items, macro, namespace)
            else:
                self.bind(items, namespace, key)

    def read_others(self, body: Node) -> None:
        """Calls in a block that are no `m.def`: a macro or a function that may register what it is given."""
        for statement in body.named_children:
            call = first(statement) if statement.type == "expression_statement" else None
            function = part(call, "function")
            if call and is_a(function, "identifier"):
                message = f"perhaps registered by {self.text(function)}, which is not followed: edit it by hand"
                self.found.problems.append(Problem(self.location(call.start_byte), message, self.text(call), hint=True))

    def is_macro(self, name: str) -> bool:
        """By its spelling, or because this file defines it."""
        defined = re.compile(rb"#\s*define\s+" + re.escape(name.encode("latin-1")) + rb"\b")
        return not any(c.islower() for c in name) or bool(defined.search(self.source))

    def receiver(self, function: Node) -> str:
        return objects.receiver(function, self.source)

    def define(self, items: list[Node], macro: str, namespace: str | None) -> None:
        text = self.mapped(items[0], namespace)
        if text is None:
            return
        looping = bool(self.texts.constants.turn and text.spans)  # what stands in a table is told where it stands
        where = self.location(text.spans[0].start if looping else items[0].start_byte)
        function = self.function([n for n in items[1:] if "Tag::" not in self.text(n)])
        if "(" not in text.text:
            own, _, name = text.text.strip().rpartition("::")
            made = self.implementation(name, own or namespace, function) if function else None
            self.found.unwritten.append(Unwritten(where, own or namespace, text, made))
            return
        if text.spans:  # else its text stands in another file, and so does the registration
            self.found.registrations.append(Registration(where, macro, namespace, text))
        if function:
            self.found.implementations.append(self.implementation(text.text.split("(", 1)[0], namespace, function))

    def read_old(self, call: Node) -> None:
        """`torch::RegisterOperators().op("ns::name", &function)`, which is older than the blocks."""
        function = part(call, "function")
        if not function or self.text(part(function, "field")) != "op":
            return
        if self.receiver(function).rpartition("::")[2] == "RegisterOperators":
            self.read_call("def", part(call, "arguments"), "RegisterOperators", None)

    def function(self, items: list[Node]) -> Node | None:
        """The expression that names an implementation; of a table that is gone through, the element at hand."""
        node, constants = functions.named(items, self.source), self.texts.constants
        if node is None or not (node.type in functions.ELEMENTS or constants.text(node) in constants.turn):
            return node
        meant = constants.meant(node)
        return functions.named([meant], self.source) if isinstance(meant, Node) else None

    def bind(self, items: list[Node], namespace: str | None, key: str) -> None:
        text, function = self.mapped(items[0]), self.function(items[1:])
        # What cannot be read is noted too: it may bind any operator, in a way that nothing here knows.
        readable = bool(text and function)
        words = " ".join(self.text(item) for item in items[1:] if item.type != "lambda_expression")
        own = DISPATCH_KEY.search(words)
        name, key = text.text if text else "", own[1] if own else key
        made = self.implementation(name, namespace, function or items[-1], key, readable=readable)
        self.found.implementations.append(made)

    def implementation(
        self, op: str, namespace: str | None, node: Node, key: str = "", *, readable: bool = True
    ) -> Implementation:
        kind = functions.kind(node, self.source) if readable else "other"
        own, _, name = op.strip().rpartition("::")
        span = Span(node.start_byte, node.end_byte)
        where = self.location(node.start_byte)
        return Implementation(name, own or namespace, where, span, kind, self.text(node), key)

    def mapped(self, argument: Node, namespace: str | None = None) -> MappedText | None:
        """The text of a call's first argument; None, and a Problem, where it has none that we can map."""
        node = self.texts.unwrapped(argument)
        try:
            return literals.read(self.source, self.pieces(node))
        except Unclear as what:
            name = self.text(node).rpartition("::")[2] if node.type in NAMES else ""
            if name in self.elsewhere.constants:
                return MappedText(self.elsewhere.constants[name], ())
            if name:
                self.found.unclear.append(Constant(name, namespace))
            found = str(what).strip()[:40]
            message = f"the text is not made of string literals alone: found {found!r}"
        except Unreadable as error:
            message = str(error)
        self.problem(node.start_byte, message, self.text(node))
        return None

    def pieces(self, node: Node) -> list[Span]:
        """The literals that an argument is made of. Raises Unclear."""
        whole = node.type not in (*LITERALS, "ERROR")
        try:
            found = list(self.texts.of(node))
            if whole or WHOLE.match(self.clean, found[-1].end):
                return found
        except Unclear:
            if whole:
                raise
        return list(self.texts.adjacent(node.start_byte))  # the parser lost what follows, a macro as a rule

    def read_macro(self, node: Node) -> None:
        value = self.source[node.start_byte : node.end_byte]
        name = part(node, "name")
        if name and DEF_CALL.search(value):
            self.macros.append(self.text(name))
        match = SCHEMA_IN_MACRO.search(value)
        if match:
            text = value.decode("latin-1")
            self.problem(
                node.start_byte + match.start(), "the schema is written inside a macro: edit the macro by hand", text
            )

    def problem(self, offset: int, message: str, text: str = "", *, fatal: bool = False) -> None:
        problem = Problem(self.location(offset), message, text, fatal)
        if problem not in self.found.problems[-1:]:  # every turn of a loop has the same
            self.found.problems.append(problem)
