"""What names stand for in one C++ file: constants, fields and elements of tables, and what a loop over a table is at.

Follows what the file defines once, and nothing that is computed. Knows syntax, no strings and no functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product, zip_longest
from math import prod

from tree_sitter import Node

from schema_patch.model import Span

from .syntax import children, first, is_a, nodes, part

CHANGES = rb"\s*(?:\+=|\.\s*(?:append|insert|replace|push_back|emplace_back)\b)"
PARTS = rb"(?:\s*\[[^\]]*\]|\s*(?:\.|->)\s*\w+)*"  # of what a name stands for
# How a table is changed by another name than its own.
LENDS = rb"\s*(?:\.\s*(?:begin|end|data|find)\b|\.\s*(?:at|front|back)\s*\([^()]*\)" + PARTS + rb"\s*=(?!=))"
GIVES = rb"(?<!\bdef)(?<!\bimpl)(?<!\bsizeof)(?<!\bsize)\(\s*&?\s*%s\s*[,)]"
REFERS = (  # `for (auto& row : table)`, `auto& row = table[0]`, not those to const
    rb"(?:(?<!const )\b(?:auto|\w+)\s*[&*]+\s*(?:(\w+)|\[([^\]]*)\])\s*)(?::|=\s*&?)\s*%s\b"
)
DEEPEST = 8  # names that stand for names
MANY = 500  # turns of the loops around one call
PAIR = {b"first": 0, b"second": 1}
MADE = re.compile(rb"(?:std::)?make_(?:pair|tuple)")
HOLDERS = frozenset({"declaration", "compound_literal_expression", "field_declaration"})  # that name a class
DEFINES = {  # what gives a name a value: the fields of both
    "init_declarator": ("declarator", "value"),
    "field_declaration": ("declarator", "default_value"),
    "assignment_expression": ("left", "right"),
    "preproc_def": ("name", "value"),
}
LITERALS = ("string_literal", "raw_string_literal", "concatenated_string")
NAMES = ("identifier", "qualified_identifier")

Value = Node | Span  # Span: the body of a macro


class Constants:
    """The constants of one file, as syntax."""

    def __init__(self, source: bytes, root: Node) -> None:
        self.source = source
        self.root = root
        self.turn: dict[bytes, Node | None] = {}  # what the names of loops stand for now; None: not told
        self._defined: dict[bytes, list[Value]] | None = None

    def text(self, node: Node | None) -> bytes:
        return self.source[node.start_byte : node.end_byte] if node else b""

    def defined(self, name: bytes) -> list[Value]:
        """Every value that a name is given in this file."""
        return self._definitions().get(name, [])

    def meant(self, node: Node, depth: int = 0) -> Value | None:
        """What an expression stands for, behind names, fields and subscripts; None where that is not told."""
        found: Value | None
        if depth > DEEPEST:
            return None
        if node.type in NAMES:
            found = self._named(self.text(node).rpartition(b"::")[2].strip())
        elif node.type == "field_expression":
            found = self._field(node, depth)
        elif node.type == "subscript_expression":
            number = self.text(part(node, "indices")).strip(b"[ ]")
            parts = self._parts(part(node, "argument"), depth)
            found = parts[int(number)] if number.isdigit() and int(number) < len(parts) else None
        else:
            return node
        return self.meant(found, depth + 1) if isinstance(found, Node) else found

    def turns(self, node: Node) -> Iterator[None]:
        """Goes through the loops over tables around a node: in each turn their names stand for that turn's element."""
        loops = list(self._loops(node))
        untold: Sequence[Node | None] = [None]
        elements = [self._parts(part(loop, "right"), 0) or untold for loop in loops]
        if prod(map(len, elements)) > MANY:
            elements = [untold] * len(loops)
        for turn in product(*elements):
            self.turn = {}
            for loop, element in zip(loops, turn, strict=True):
                self._bind(part(loop, "declarator"), element)
            self.turn |= dict.fromkeys(self._changed(loops[-1])) if loops else {}
            yield
        self.turn = {}

    def _changed(self, loop: Node) -> list[bytes]:
        """The names of this turn to which a loop gives another value, or a part of one."""
        change = PARTS + rb"(?:\s*=(?!=)|" + CHANGES + rb")"
        body = self.text(loop)
        return [name for name in self.turn if re.search(rb"(?<![\w.>])" + re.escape(name) + change, body)]

    def _named(self, name: bytes) -> Value | None:
        if name in self.turn:
            return self.turn[name]
        found = self.defined(name)
        changed = len(found) == 1 and re.search(rb"\b" + re.escape(name) + CHANGES, self.source)
        listed = len(found) == 1 and isinstance(found[0], Node) and found[0].type == "initializer_list"
        return found[0] if len(found) == 1 and not changed and not (listed and self._lent(name)) else None

    def _lent(self, name: bytes) -> bool:
        """Whether a table that is no constant may be changed by another name than its own: a loop's reference, a
        variable's, an iterator, a function's parameter."""
        here = re.escape(name)
        if re.search(rb"\bconst(?:expr)?\b[^;{}()]*\b" + here + rb"\s*(?:\[[^\]]*\]\s*)*[={]", self.source):
            return False
        if re.search(rb"\b" + here + LENDS + rb"|" + GIVES % here, self.source):
            return True
        loops = (re.escape(match[1] or match[2]) for match in re.finditer(REFERS % here, self.source))
        names = {other for text in loops for other in re.findall(rb"\w+", text)}
        change = PARTS + rb"(?:\s*=(?!=)|" + CHANGES + rb")|(?<=[(,])\s*&?\s*%s\s*[,)]"
        return any(re.search(rb"(?<![\w.>])" + n + change % n, self.source) for n in names)

    def _field(self, node: Node, depth: int) -> Node | None:
        """`row.schema`: by its designator, or by the order in which the row's class declares its fields."""
        name, parts = self.text(part(node, "field")), self._parts(part(node, "argument"), depth)
        for pair in parts:
            if self.text(part(pair, "designator")).lstrip(b". ") == name:
                return part(pair, "value")
        place = PAIR.get(name)
        if place is None and parts:
            fields = self._fields(parts[0])
            place = fields.index(name) if name in fields else None
        plain = place is not None and place < len(parts) and parts[place].type != "initializer_pair"
        return parts[place] if plain and place is not None else None

    def _parts(self, node: Node | None, depth: int) -> Sequence[Node]:
        """The elements of what an expression stands for; none where it is no list that is written there."""
        value = self.meant(node, depth + 1) if node else None
        if not isinstance(value, Node):
            return []
        if value.type == "compound_literal_expression" or MADE.match(self.text(part(value, "function"))):
            value = part(value, "value") or part(value, "arguments")
        parts = children(value) if is_a(value, "initializer_list", "argument_list") else []
        lost = [n for n, one in enumerate(parts) if one.type == "ERROR"]  # a macro behind a literal belongs to it
        if any(n == 0 or parts[n - 1].type not in LITERALS for n in lost):
            return []
        return [one for n, one in enumerate(parts) if n not in lost]

    def _fields(self, item: Node) -> list[bytes]:
        """The fields of the class of the object that this is a part of, by what stands around it."""
        above = item.parent
        while above and above.type not in HOLDERS:
            above = above.parent
        kind = part(above, "type")
        classes = [kind]
        if kind and not kind.type.endswith("_specifier"):
            words = set(re.findall(rb"\w+", self.text(kind)))
            named = nodes(self.root, "struct_specifier")
            classes = [node for node in named if self.text(part(node, "name")) in words]
        bodies = [body for node in classes if (body := part(node, "body"))]
        return self._declared(bodies[0]) if len(bodies) == 1 else []

    def _declared(self, body: Node) -> list[bytes]:
        """The fields that a class declares, in order; none where an object may begin with others, or have others."""
        if body.parent and any(child.type == "base_class_clause" for child in body.parent.children):
            return []
        found: list[bytes] = []
        for node in body.named_children:
            if node.type.startswith("preproc_") or node.type == "ERROR":
                return []
            static = any(self.text(child) == b"static" for child in node.children)
            declared = [] if static or node.type != "field_declaration" else node.children_by_field_name("declarator")
            names = [_innermost(declarator) for declarator in declared if not _is_method(declarator)]
            found += [self.text(name) for name in names if name]
        return found

    def _loops(self, node: Node) -> Iterator[Node]:
        above = node.parent
        while above and above.type != "function_definition":
            if above.type == "for_range_loop":
                yield above
            above = above.parent

    def _bind(self, declarator: Node | None, element: Node | None) -> None:
        while is_a(declarator, "reference_declarator", "pointer_declarator"):
            declarator = first(declarator)
        if is_a(declarator, "structured_binding_declarator"):
            names = map(self.text, declarator.named_children)
            self.turn |= zip_longest(names, self._parts(element, 0)[: declarator.named_child_count])
        elif declarator:
            self.turn[self.text(declarator)] = element

    def _definitions(self) -> dict[bytes, list[Value]]:
        if self._defined is not None:
            return self._defined
        self._defined = {}
        for node in nodes(self.root, *DEFINES):
            named, given = DEFINES[node.type]
            name, value = _whole(_innermost(part(node, named))), part(node, given)
            if name and value:
                macro = Span(value.start_byte, value.end_byte) if node.type == "preproc_def" else None
                self._defined.setdefault(self.text(name), []).append(macro or value)
        return self._defined


def _innermost(name: Node | None) -> Node | None:
    """What a declarator declares: `x` of `*const x[]`."""
    while name and name.type.endswith("_declarator"):
        name = part(name, "declarator") or first(name)
    return name


def _whole(name: Node | None) -> Node | None:
    """What is changed where a part of it is: `x` of `x[0].text`."""
    while is_a(name, "field_expression", "subscript_expression"):
        name = part(name, "argument")
    return name


def _is_method(name: Node | None) -> bool:
    """Whether a declarator declares a function, and no pointer to one."""
    while name and name.type.endswith("_declarator") and name.type != "parenthesized_declarator":
        inner = part(name, "declarator")
        if name.type == "function_declarator" and inner and inner.type != "parenthesized_declarator":
            return True
        name = inner or first(name)
    return False
