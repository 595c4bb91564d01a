"""Values through the statements of a function: branches, loops, declarations, returns. A loop is read twice."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

from tree_sitter import Node

from schema_patch.cpp.syntax import children, first, is_a, part
from schema_patch.inference.domain.state import Place
from schema_patch.inference.domain.values import (
    DEREF,
    EMPTY,
    NOTHING,
    PERHAPS,
    Value,
    addresses,
    constant,
    union,
)

from .declarations import ATOMIC, SCALARS, Declarations
from .evaluator import Evaluator
from .frame import NAME, FunctionReader
from .lambdas import Lambdas
from .objects import Objects
from .types import Types, bare

LOCAL_ALIAS = re.compile(r"using\s+(\w+)\s*=\s*(?:typename\s+)?([\w:]+)")
ABORTS = re.compile(r"\s*(?:(?:STD_)?TORCH_CHECK\w*\s*\(\s*(?:false|0)\s*[,)]|AT_ERROR\s*\()")
STATIC = re.compile(r"\b(?:static|thread_local)\b")
ASKS = re.compile(r"(?:\.|->)(?:has_value|defined|is_cuda|is_xpu|empty)\(\)")
Asked: TypeAlias = tuple[object, ...]
PASSED_OVER = frozenset(
    "comment type_definition using_declaration static_assert_declaration template_declaration struct_specifier "
    "class_specifier".split()
)


@dataclass(eq=False)
class Statements(FunctionReader):
    """Executes the statements of one function."""

    evaluator: Evaluator
    types: Types
    declarations: Declarations
    lambdas: Lambdas
    objects: Objects
    asked: dict[Asked, dict[Place, tuple[Value, Value, Value]]] = field(default_factory=dict)
    """What places held where a condition held, where it did not, and behind both."""
    looping: int = 0
    returned: Value = NOTHING

    def __post_init__(self) -> None:
        super().__post_init__()
        self.execute = self.evaluator.execute
        self.frame.statements |= dict.fromkeys(PASSED_OVER, lambda _: None)

    def run(self) -> Value:
        """Reads the whole function; gives all that it returns."""
        self.declarations.parameters()
        for child in self.frame.body.root.children:
            # Where the parse broke off, what there is is read.
            self.execute(part(child, "body") if child.type == "function_definition" else child)
        return self.returned

    def part(self) -> None:
        """Lets the parts of the reading go: each knows others, and a syntax tree is large."""
        self.frame.values.clear()
        self.frame.statements.clear()

    def do_compound_statement(self, node: Node) -> None:
        statements = children(node)
        if len(statements) == 2 and ABORTS.match(self.frame.text(statements[0])):
            statements.pop()  # a value for the compiler, which no caller gets
        with self.state.scope():
            for statement in statements:
                self.execute(statement)

    def do_expression_statement(self, node: Node) -> None:
        self.state.now = self.frame.here(node)
        for child in node.named_children:
            self.evaluator.value(child)

    def each(self, node: Node) -> None:
        for child in node.named_children:
            self.execute(child)

    do_case_statement = do_condition_clause = each

    def branch(self, *nodes: Node | None) -> None:
        """What may or may not be executed."""
        before = dict(self.state.heap)
        for node in nodes:
            self.execute(node)
        self.meet(before, _leaves(nodes[-1]))

    def meet(self, other: dict[Place, Value], leaves: bool) -> None:
        """A branch ends beside another; one that leaves does not come here."""
        if leaves:
            self.state.heap = other
        else:
            self.state.merge(other)

    def do_if_statement(self, node: Node) -> None:
        yes, no = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        decided = self.evaluator.decided(node)
        if decided is not None:
            self.execute(yes if decided else no)
            return
        with self.state.scope():
            self.undecided(node.child_by_field_name("condition"), yes, no)

    def undecided(self, condition: Node | None, first: Node | None, second: Node | None) -> None:
        """`if (condition) first else second`, where either may be executed."""
        self.execute(condition)
        asked, turned = self.condition(condition)
        before, sides = self.state.heap, []
        for holds, branch in ((True, first), (False, second)):
            self.state.heap = dict(before)
            for place, told in self.asked.get(asked, {}).items():
                if self.state.heap.get(place) is told[2]:  # not assigned since the same was asked
                    self.state.heap[place] = told[holds is turned]
            with self.state.without(self.evaluator.absent(condition, holds)):
                self.execute(branch)
            sides.append(before if _leaves(branch) and holds else self.state.heap)
        yes, no = (sides[0], dict(sides[1])) if asked else ({}, {})
        self.meet(sides[0], _leaves(second))
        if asked and not _leaves(first) and not _leaves(second):
            yes, no = (no, yes) if turned else (yes, no)
            both = self.state.heap
            self.asked[asked] = {
                place: (yes.get(place, NOTHING), no.get(place, NOTHING), both[place])
                for place in both
                if yes.get(place) is not no.get(place)
            }

    def condition(self, node: Node | None) -> tuple[Asked, bool]:
        """What a condition asks, so that it is known again, and whether it asks for the contrary; () where it is more
        than names and what they hold."""
        node, turned = self.evaluator.bare(node), False
        while is_a(node, "unary_expression") and self.frame.text(node).startswith("!"):
            node, turned = self.evaluator.bare(node.child_by_field_name("argument")), not turned
        text = "".join(self.frame.text(node).split())
        if not text or re.search(r"[(.\[]|->", ASKS.sub("", text)):
            return (), False
        found = [variable for name in sorted(set(NAME.findall(text))) if (variable := self.state.names.get(name))]
        return (text, *((v.root, self.state.assigned.get(v.root)) for v in found)), turned

    def loop(self, *nodes: Node | None) -> None:
        self.looping += 1
        before, count = dict(self.state.heap), self.state.count
        self.branch(*nodes)
        if self.looping == 1 and self.state.changed(before, count):
            self.branch(*nodes)
        self.looping -= 1

    def do_for_statement(self, node: Node) -> None:
        with self.state.scope():
            self.execute(node.child_by_field_name("initializer"))
            self.loop(*(part(node, name) for name in ("condition", "body", "update")))

    def do_while_statement(self, node: Node) -> None:
        self.loop(node.child_by_field_name("condition"), node.child_by_field_name("body"))

    def do_do_statement(self, node: Node) -> None:
        self.loop(node.child_by_field_name("body"), node.child_by_field_name("condition"))

    def do_for_range_loop(self, node: Node) -> None:
        elements = self.state.select(self.evaluator.value(node.child_by_field_name("right")), DEREF)
        declarator = node.child_by_field_name("declarator")
        with self.state.scope():
            if declarator:
                self.declarations.declare(declarator, self.frame.text(part(node, "type")) or "auto", elements, node)
            self.loop(node.child_by_field_name("body"))

    def do_switch_statement(self, node: Node) -> None:
        self.execute(node.child_by_field_name("condition"))
        self.branch(node.child_by_field_name("body"))

    def do_return_statement(self, node: Node) -> None:
        self.state.now = self.frame.here(node)
        value = union([self.evaluator.value(child) for child in node.named_children])
        self.state.leave(value)
        if self.lambdas.results:
            self.lambdas.results[-1] |= value
            return
        self.returned |= value
        positions = tuple(self.state.elements(value)) or (value,)  # of a tuple; of anything else, the one
        self.state.summary.returns.append((positions, self.frame.body.line(node)))

    def do_alias_declaration(self, node: Node) -> None:
        match = LOCAL_ALIAS.match(self.frame.text(node))
        if match:
            self.frame.types[match[1]] = match[2]

    def do_declaration(self, node: Node) -> None:
        self.state.now = self.frame.here(node)
        kind = node.child_by_field_name("type")
        text = self.frame.text(kind)
        before = self.frame.body.source[node.start_byte : kind.end_byte if kind else node.start_byte]
        static = bool(STATIC.search(before))
        for declarator in node.children_by_field_name("declarator"):
            if declarator.type == "init_declarator":
                self.initialise(declarator, before.strip() or text, static)
            elif declarator.type == "function_declarator":
                self.vexing(declarator, text, node)
            else:
                self.declarations.declare(declarator, before.strip() or text, NOTHING, node, static)

    def initialise(self, node: Node, kind: str, static: bool) -> None:
        """`T x = value`, `T x(values)`, `T x{values}`."""
        declarator, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
        if not declarator:
            return
        atomic = self.atomic(kind, value)
        if atomic:
            self.declarations.declare(declarator, ATOMIC, atomic, node)
            return
        cls = self.types.class_of(kind)
        if is_a(value, "initializer_list", "argument_list") and declarator.type == "identifier":
            found = self.initial(kind, cls, value, node)
        else:
            found = self.evaluator.value(value)
        if is_a(value, "initializer_list") and not cls:
            if "const" in kind and not value.named_children:
                found = self.state.make(EMPTY)
            self.objects.aggregate(kind, value, found, node)
        if "auto" in kind:
            cls = self.types.class_of_expression(value)
        if declarator.type == "reference_declarator":
            spots = self.evaluator.places(value)
            if spots and not any(PERHAPS in path for _, path, _ in found):  # else one element of many
                found = spots
        self.declarations.declare(declarator, kind, found, node, static, cls)
        variable = self.frame.variable(declarator)
        if variable and value and bare(kind) in ("bool", "auto", "string", "path"):
            self.evaluator.meant[variable.root] = value

    def initial(self, kind: str, cls: str, value: Node, node: Node) -> Value:
        """What a variable is made from in parentheses or braces."""
        if cls or value.type == "argument_list":
            items = children(value)
            if bare(kind) == "vector" and not cls:
                return self.vector(self.evaluator.all(items))
            return self.objects.construct(cls, value, node)
        found = self.evaluator.value(value)
        if "auto" in kind or bare(kind) in SCALARS or "*" in kind:
            found |= union(item for _, item in self.objects.items(value))
        return found

    def atomic(self, kind: str, value: Node | None) -> Value:
        """The place that `atomic_ref<T> r(place)` or `auto r = atomic_ref<T>(place)` refers to."""
        if "auto" in kind and (function := part(value, "function")):
            kind, value = self.frame.text(function), part(value, "arguments")
        listed = is_a(value, "argument_list", "initializer_list") and bare(kind) == ATOMIC
        return self.evaluator.places(first(value)) if listed else NOTHING

    def vexing(self, declarator: Node, kind: str, node: Node) -> None:
        """`Kernel k(a, b);` parses as the declaration of a function."""
        inner = declarator.child_by_field_name("declarator")
        if not is_a(inner, "identifier") or kind == "void":
            return
        parameters = children(declarator.child_by_field_name("parameters"))
        values = [self.mentioned(self.frame.text(parameter)) for parameter in parameters]
        if bare(kind) == ATOMIC and values:
            self.declarations.declare(inner, ATOMIC, values[0], node)
            return
        cls = self.types.class_of(kind)
        vector = bare(kind) == "vector" and not cls
        made = self.vector(values) if vector else self.objects.build(cls, values, [], node)
        self.declarations.declare(inner, kind, made, node)

    def vector(self, values: list[Value]) -> Value:
        """What is made of values in parentheses, without what was read from memory: how many, or of what value."""
        values = [*map(addresses, values)]
        return self.objects.copy_of_range(values) if len(values) == 2 else self.objects.listed(values)

    def mentioned(self, text: str) -> Value:
        """The variables that an expression names, where it was parsed as a parameter: `reinterpret_cast<T*>(x)`."""
        value = union(self.evaluator.named(name) for name in NAME.findall(text) if self.state.names.get(name))
        if "[" in text:
            value = self.state.select(value, DEREF)
            self.state.read(value)
        return constant(value) if re.search(r"\bconst\b", text) else value


def _leaves(node: Node | None) -> bool:
    """Whether what follows is not reached from here."""
    while is_a(node, "compound_statement", "else_clause") and node.named_children:
        node = node.named_children[-1]
    return is_a(node, "return_statement", "throw_statement")
