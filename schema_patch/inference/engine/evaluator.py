"""The value of an expression: which places it can stand for. Knows names, operators, casts, assignments.

What other parts know how to read, calls, lambdas, statements, is in the frame's two tables, by kind of node.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from tree_sitter import Node

from schema_patch.cpp.syntax import children, first, is_a, part
from schema_patch.inference.domain.values import (
    ADDRESS,
    ARGUMENT,
    DEREF,
    NOTHING,
    PAIR,
    THIS,
    Callee,
    Closure,
    Local,
    Parameter,
    Value,
    addresses,
    at,
    either,
    element,
    field_of,
    mutable,
    parameter,
    rooted,
    select,
    union,
)
from schema_patch.inference.index.constants import decide

from .frame import FunctionReader
from .memory import TensorMemory
from .types import CASTS

ARITHMETIC = frozenset({"+", "-", "|", "&", ","})
LVALUES = frozenset({"identifier", "subscript_expression", "field_expression", "pointer_expression"})
STREAM = re.compile(r"\bcin$|stream")
EMPTY = re.compile(r"\bnullopt$|\{\}$")


@dataclass(eq=False)
class Evaluator(FunctionReader):
    """Evaluates the expressions of one function in its state."""

    memory: TensorMemory
    meant: dict[Local, Node] = field(default_factory=dict)
    """What variables were declared to be that are true or false, or text."""

    def value(self, node: Node | None) -> Value:
        """The places that an expression stands for, and what they hold."""
        if node is None:
            return NOTHING
        kind = node.type
        read = self.frame.values.get(kind)
        if read:
            return read(node)
        if kind.endswith(("_literal", "_string", "_type", "_specifier")) or not node.named_child_count:
            return NOTHING
        result = NOTHING
        for child in node.named_children:  # an ERROR, or what nothing here knows
            if child.type.endswith(("_statement", "_definition")) or child.type == "declaration":
                self.execute(child)
            else:
                result |= self.value(child)
        return result if kind == "ERROR" else NOTHING

    def execute(self, node: Node | None) -> None:
        """A statement, or an expression as one."""
        if node is None:
            return
        kind = node.type
        run = self.frame.statements.get(kind)
        if run:
            run(node)
        elif kind.endswith(("_expression", "identifier", "_literal", "_list")) or kind == "ERROR":
            self.value(node)
        else:
            for child in node.named_children:
                self.execute(child)

    def all(self, items: list[Node]) -> list[Value]:
        return [self.value(item) for item in items]

    def decided(self, node: Node) -> bool | None:
        """Whether the condition of this node holds, where template parameters that are known say so."""
        known = self.frame.constants
        return decide(self.frame.text(node.child_by_field_name("condition")), known) if known else None

    def of_identifier(self, node: Node) -> Value:
        return self.named(self.frame.text(node))

    def named(self, name: str) -> Value:
        """What a name stands for."""
        state = self.state
        variable = state.names.get(name)
        if variable:
            if variable.handle:
                return state.load(state.heap[variable.root, ()])
            if variable.reference is not None:
                return state.load(variable.reference)
            held = state.heap.get((variable.root, ()), NOTHING)
            if not held and variable.scalar:
                return NOTHING
            if held and all(isinstance(o[0], Parameter) for o in held):
                return state.load(held)  # a pointer or a handle: it is what it leads to, and no object of its own
            return state.load([(variable.root, (), False)])
        if self.frame.function.in_class:
            return state.load(at(THIS, field_of(name))) | self.frame.functions(name)
        return self.frame.functions(name)

    def of_qualified_identifier(self, node: Node) -> Value:
        frame, names = self.frame, self.frame.names(node)
        if not names:
            return NOTHING
        found = frame.functions(names[-1], names[:-1], frame.template_arguments(node))
        if not found and frame.function.in_class and names[-1] not in frame.index.functions:
            return self.state.load(at(THIS, field_of(names[-1])))  # `Base::field`
        return found

    def of_template_function(self, node: Node) -> Value:
        frame, name = self.frame, self.frame.text(node.child_by_field_name("name"))
        functions = () if self.state.names.get(name) else frame.functions(name, (), frame.template_arguments(node))
        return functions or self.value(node.child_by_field_name("name"))

    def of_this(self, _: Node) -> Value:
        return at(THIS, ADDRESS)

    def of_parenthesized_expression(self, node: Node) -> Value:
        return self.value(first(node))

    of_parameter_pack_expansion = of_parenthesized_expression

    def of_comma_expression(self, node: Node) -> Value:
        self.value(node.child_by_field_name("left"))
        return self.value(node.child_by_field_name("right"))

    def of_conditional_expression(self, node: Node) -> Value:
        condition, result = node.child_by_field_name("condition"), NOTHING
        self.value(condition)
        decided = self.decided(node)
        for side, holds in (("consequence", True), ("alternative", False)):
            if decided is None or decided is holds:
                with self.state.without(self.absent(condition, holds)):
                    result |= self.value(part(node, side))
        return result

    def absent(self, node: Node | None, holds: bool) -> frozenset[Parameter]:
        """The optional parameters that are known to be empty where a condition holds, or does not."""
        node = self.bare(node)
        if node is None:
            return frozenset()
        operator = self.frame.text(node.child_by_field_name("operator"))
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if node.type == "unary_expression" and operator == "!":
            return self.absent(node.child_by_field_name("argument"), not holds)
        if operator == ("&&" if holds else "||"):
            return self.absent(left, holds) | self.absent(right, holds)
        if operator in ("==", "!=") and EMPTY.search(self.frame.text(right)):
            return self.optional(left) if holds == (operator == "==") else frozenset()
        if asked := part(node, "function", "field"):
            empty = self.frame.text(asked) in ("has_value", "defined") and not holds
            return self.optional(part(node, "function", "argument")) if empty else frozenset()
        variable = self.frame.variable(node)
        meant = self.meant.get(variable.root) if variable else None  # `bool given = x.has_value();`
        return self.absent(meant, holds) if meant else self.optional(node) if not holds else frozenset()

    def optional(self, node: Node | None) -> frozenset[Parameter]:
        """The parameter that a name stands for, and nothing else."""
        node = self.bare(node)
        variable = self.frame.variable(node)
        if variable is None or not re.search("optional|Tensor", variable.kind):
            return frozenset()
        held = variable.reference or self.state.heap.get((variable.root, ()), NOTHING)
        roots = [root for root, path, _ in held if isinstance(root, Parameter) and not path]
        return frozenset(roots) if len(held) == 1 else frozenset()

    def bare(self, node: Node | None) -> Node | None:
        """An expression out of its parentheses."""
        while is_a(node, "parenthesized_expression", "condition_clause"):
            node = node.child_by_field_name("value") or first(node)
        return node

    def of_cast_expression(self, node: Node) -> Value:
        inner = node.child_by_field_name("value")
        return self.cast(self.value(inner), node.child_by_field_name("type"), inner)

    def cast(self, value: Value, target: Node | None, inner: Node | None) -> Value:
        """A value as a type: a number as an address, a pointer as one to const or not."""
        text = self.frame.text(target)
        if "*" not in text and "&" not in text:
            return value
        if all(map(self.state.blank, value)):
            value = self.address(inner)
        return self.state.as_const(value) if "const" in text.split("*")[0] else mutable(value)

    def address(self, node: Node | None) -> Value:
        """What a number that was handed in leads to, once it is taken for an address."""
        while is_a(node, "call_expression", "cast_expression", "parenthesized_expression"):
            function = node.child_by_field_name("function")
            if function and self.frame.names(function)[-1:] != ("static_cast",):
                return NOTHING
            node = node.child_by_field_name("value") or first(node.child_by_field_name("arguments") or node)
        variable = self.frame.variable(node)
        return at(parameter(variable.root.number)) if variable and variable.root.kind == ARGUMENT else NOTHING

    def of_pointer_expression(self, node: Node) -> Value:
        argument = node.child_by_field_name("argument")
        if self.frame.text(node.child_by_field_name("operator")) == "&":
            return select(self.places(argument), ADDRESS) | rooted(self.value(argument), Callee | Closure)
        found = self.state.select(self.value(argument), DEREF)
        self.state.read(found)
        return found

    def of_subscript_expression(self, node: Node) -> Value:
        base, frame = node.child_by_field_name("argument"), self.frame
        if is_a(base, "identifier") and not frame.variable(base):
            names = frame.index.table(frame.text(base), frame.path)
            if names:
                return union(frame.functions(name) for name in names)
        places = self.places(node)
        self.state.read(places)
        found = self.state.load(places)
        if not rooted(places, Local):
            return found
        index = children(node.child_by_field_name("indices"))
        if len(index) == 1 and frame.text(index[0]).isdigit():
            found = self.state.element(self.value(base), int(frame.text(index[0])))
        return either(found)

    def of_field_expression(self, node: Node) -> Value:
        half = PAIR.get(self.frame.text(node.child_by_field_name("field")))
        if half:
            value = self.object(node)
            if any((o[0], (*o[1], half)) in self.state.heap for o in value):
                return self.state.element(value, int(half.text[1:]))
        return self.state.load(self.places(node))

    def places(self, node: Node | None) -> Value:
        """The places that an expression denotes on the left of an assignment, not what they hold."""
        if node is None:
            return NOTHING
        kind, frame = node.type, self.frame
        if kind == "identifier":
            variable = self.state.names.get(frame.text(node))
            if variable and variable.reference is None:
                return at(variable.root)
            if not variable and frame.function.in_class:
                return at(THIS, field_of(frame.text(node)))
            return self.value(node)
        if kind in ("parenthesized_expression", "parameter_pack_expansion"):
            return self.places(first(node))
        if kind == "pointer_expression" and frame.text(node).startswith("*"):
            return select(self.value(node.child_by_field_name("argument")), DEREF)
        if kind == "subscript_expression":
            self.all(children(node.child_by_field_name("indices")))
            return select(self.value(node.child_by_field_name("argument")), DEREF)
        if kind == "field_expression":
            names = frame.names(node.child_by_field_name("field"))
            return select(self.object(node), field_of(names[-1])) if names else NOTHING
        return self.value(node)

    def object(self, node: Node) -> Value:
        """What stands before `.` or `->`."""
        value = self.value(node.child_by_field_name("argument"))
        return self.state.select(value, DEREF) if self.frame.text(part(node, "operator")) == "->" else value

    def spots(self, items: list[Node], values: list[Value], plainly: Collection[int] = ()) -> list[Value]:
        """The places that the arguments denote, as a reference parameter sees them; but for those at `plainly`."""
        places = list(values)
        for number, item in enumerate(items[: len(values)]):
            if item.type != "call_expression" and number not in plainly:
                places[number] = self.places(item)
        return places

    def referred(self, items: list[Node]) -> Iterator[Value]:
        """The address of each argument, as what is not seen gets it that may take a reference."""
        for item in items:
            node = self.bare(item)
            while is_a(node, "call_expression"):
                function = node.child_by_field_name("function")
                name = "".join(self.frame.names(function)[-1:])
                to_reference = any("&" in text for text in self.frame.template_arguments(function))
                if not (name in ("forward", "move", "addressof") or (name in CASTS and to_reference)):
                    break
                node = self.bare(first(node.child_by_field_name("arguments")))
            variable = self.frame.variable(node)
            fixed = variable is not None and (variable.reference is None or "const" in variable.kind)
            yield select(self.places(node), ADDRESS) if is_a(node, *LVALUES) and not fixed else NOTHING

    def of_assignment_expression(self, node: Node) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        value = self.value(right)
        plainly = self.frame.text(node.child_by_field_name("operator")) in ("=", "")
        if left and left.type != "identifier" and (not plainly or self.views_data(left)):
            tensors = self.memory.tensors(self.value(left))
            if tensors:
                self.memory.write_data(tensors, node)
                self.state.read_data(value)
                return tensors
        self.assign(left, value if plainly else value | self.value(left), node, plainly)
        return value

    def views_data(self, left: Node) -> bool:
        """Whether this is `x.select(…)`, `x[i]` or its like: what is assigned to such a temporary is copied into the
        data."""
        if left.type == "subscript_expression":
            return any(map(self.frame.is_element, self.value(part(left, "argument"))))
        name = self.frame.text(part(left, "function", "field"))
        return name == "index" or name in self.models.names.views

    def assign(self, left: Node | None, value: Value, node: Node, plainly: bool = True) -> None:
        """`left = value`; not plainly: `left += …`."""
        state, here = self.state, self.frame.here(node)
        if variable := self.frame.variable(left):
            self.meant.pop(variable.root, None)
            if not plainly and variable.reference is None:
                self.memory.write_in_place(variable, node)
            state.assign(variable, value, here)
            return
        if self.frame.names(part(left, "function"))[-1:] == ("tie",):  # `std::tie(a, b) = …`
            for number, item in enumerate(children(part(left, "arguments"))):
                self.assign(item, state.select(value, element(number)), node)
            return
        state.store(self.places(left), value, here)

    def of_update_expression(self, node: Node) -> Value:
        argument = node.child_by_field_name("argument")
        value, places = self.value(argument), NOTHING
        if not is_a(argument, "identifier"):
            places = self.places(argument)
        elif variable := self.frame.variable(argument):
            self.state.assigned[variable.root] = self.state.assigned.get(variable.root, 0) + 1
            places = variable.reference or NOTHING
        if places:
            self.state.store(places, NOTHING, self.frame.here(node))
        return value

    def of_binary_expression(self, node: Node) -> Value:
        left = self.operand(node.child_by_field_name("left"))
        right = self.operand(node.child_by_field_name("right"))
        sign = self.frame.text(node.child_by_field_name("operator"))
        if sign == ">>" and self.is_stream(node.child_by_field_name("left")):
            self.state.store(self.places(node.child_by_field_name("right")), NOTHING, self.frame.here(node))
        if sign not in ARITHMETIC:
            return NOTHING
        both = frozenset(o for o in left | right if not self.state.blank(o))
        # A pointer and what was read as an index: the sum leads where the pointer does.
        return addresses(both) or both

    def is_stream(self, node: Node | None) -> bool:
        """Whether `node >> x` reads into x."""
        text = self.frame.text(node).split(">>")[0].strip()
        variable = self.state.names.get(text)
        return STREAM.search(variable.kind if variable else text) is not None

    def operand(self, node: Node | None) -> Value:
        """An operand of a sum: the sum of tensors is a new one, that of a pointer and a number is the same place."""
        value = self.value(node)
        variable = self.frame.variable(node)
        if variable and "Tensor" in variable.kind and "Accessor" not in variable.kind:
            self.state.read_data(value)
            return NOTHING
        tensors = self.memory.tensors(value)
        self.state.read_data(tensors)
        return value - tensors

    def of_unary_expression(self, node: Node) -> Value:
        self.value(node.child_by_field_name("argument"))
        return NOTHING
