"""The value of an expression: which places it can stand for. Knows names, operators, casts, assignments.

What other parts know how to read, calls, lambdas, statements, they enter in its two tables by kind of node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from tree_sitter import Node

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
    at,
    either,
    element,
    field,
    is_data,
    mutable,
    parameter,
    plain,
    select,
    union,
)
from schema_patch.inference.index.constants import decide

from .frame import FunctionFrame, arguments
from .memory import TensorMemory
from .types import CASTS

ARITHMETIC = frozenset({"+", "-", "|", "&", ","})
LVALUES = frozenset({"identifier", "subscript_expression", "field_expression", "pointer_expression"})
STREAM = re.compile(r"\bcin$|stream")
EMPTY = re.compile(r"\bnullopt$|\{\}$")


class Evaluator:
    """Evaluates the expressions of one function in its state."""

    def __init__(self, frame: FunctionFrame, memory: TensorMemory) -> None:
        self.frame = frame
        self.memory = memory
        self.state = frame.state
        own = ((name, getattr(self, name)) for name in vars(Evaluator) if name.startswith("of_"))
        self.values: dict[str, Callable[[Node], Value]] = {name[3:]: method for name, method in own}
        self.statements: dict[str, Callable[[Node], None]] = {}
        self.meant: dict[Local, Node] = {}  # what variables were declared to be that are true or false, or text

    def value(self, node: Node | None) -> Value:
        """The places that an expression stands for, and what they hold."""
        if node is None:
            return NOTHING
        kind = node.type
        read = self.values.get(kind)
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
        run = self.statements.get(kind)
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
        condition = node.child_by_field_name("condition") if known else None
        return decide(self.frame.text(condition), known) if condition is not None else None

    def of_identifier(self, node: Node) -> Value:
        return self.named(self.frame.text(node))

    def named(self, name: str) -> Value:
        """What a name stands for."""
        state = self.state
        variable = state.find(name)
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
            return state.load(at(THIS, field(name))) | self.frame.functions(name)
        return self.frame.functions(name)

    def of_qualified_identifier(self, node: Node) -> Value:
        frame, names = self.frame, self.frame.names(node)
        if not names:
            return NOTHING
        found = frame.functions(names[-1], names[:-1], frame.template_arguments(node))
        if not found and frame.function.in_class and names[-1] not in frame.index.functions:
            return self.state.load(at(THIS, field(names[-1])))  # `Base::field`
        return found

    def of_template_function(self, node: Node) -> Value:
        frame, name = self.frame, node.child_by_field_name("name")
        if name is not None and not self.state.find(frame.text(name)):
            return frame.functions(frame.text(name), (), frame.template_arguments(node)) or self.value(name)
        return self.value(name)

    def of_this(self, _: Node) -> Value:
        return at(THIS, ADDRESS)

    def of_parenthesized_expression(self, node: Node) -> Value:
        return self.value(next(iter(node.named_children), None))

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
                    result |= self.value(node.child_by_field_name(side))
        return result

    def absent(self, node: Node | None, holds: bool) -> frozenset[Parameter]:
        """The optional parameters that are known to be empty where a condition holds, or does not."""
        node = self.bare(node)
        if node is None:
            return frozenset()
        operator = self.frame.text(found) if (found := node.child_by_field_name("operator")) is not None else ""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if node.type == "unary_expression" and operator == "!":
            return self.absent(node.child_by_field_name("argument"), not holds)
        if operator == ("&&" if holds else "||"):
            return self.absent(left, holds) | self.absent(right, holds)
        if operator in ("==", "!=") and right is not None and EMPTY.search(self.frame.text(right)):
            return self.optional(left) if holds == (operator == "==") else frozenset()
        function = node.child_by_field_name("function") if node.type == "call_expression" else None
        if function is not None and function.type == "field_expression":
            asked = self.frame.names(function.child_by_field_name("field"))[-1:] in (("has_value",), ("defined",))
            return self.optional(function.child_by_field_name("argument")) if asked and not holds else frozenset()
        variable = self.frame.variable(node)
        meant = self.meant.get(variable.root) if variable else None  # `bool given = x.has_value();`
        return self.absent(meant, holds) if meant is not None else self.optional(node) if not holds else frozenset()

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
        while node is not None and node.type in ("parenthesized_expression", "condition_clause"):
            node = node.child_by_field_name("value") or next(iter(arguments(node)), None)
        return node

    def of_cast_expression(self, node: Node) -> Value:
        inner = node.child_by_field_name("value")
        return self.cast(self.value(inner), node.child_by_field_name("type"), inner)

    def cast(self, value: Value, target: Node | None, inner: Node | None) -> Value:
        """A value as a type: a number as an address, a pointer as one to const or not."""
        text = self.frame.text(target) if target else ""
        if "*" not in text and "&" not in text:
            return value
        if all(map(self.state.blank, value)):
            value = self.address(inner)
        return self.state.as_const(value) if "const" in text.split("*")[0] else mutable(value)

    def address(self, node: Node | None) -> Value:
        """What a number that was handed in leads to, once it is taken for an address."""
        while node is not None and node.type in ("call_expression", "cast_expression", "parenthesized_expression"):
            function = node.child_by_field_name("function")
            if function is not None and self.frame.names(function)[-1:] != ("static_cast",):
                return NOTHING
            inner = node.child_by_field_name("arguments" if function is not None else "value")
            node = inner if function is None and inner is not None else next(iter(arguments(inner or node)), None)
        variable = self.frame.variable(node)
        return at(parameter(variable.root.number)) if variable and variable.root.kind == ARGUMENT else NOTHING

    def of_pointer_expression(self, node: Node) -> Value:
        argument, operator = node.child_by_field_name("argument"), node.child_by_field_name("operator")
        if operator is not None and self.frame.text(operator) == "&":
            functions = frozenset(o for o in self.value(argument) if isinstance(o[0], Callee | Closure))
            return select(self.places(argument), ADDRESS) | functions
        found = self.state.select(self.value(argument), DEREF)
        self.state.read(found)
        return found

    def of_subscript_expression(self, node: Node) -> Value:
        base, frame = node.child_by_field_name("argument"), self.frame
        if base is not None and base.type == "identifier" and not frame.variable(base):
            names = frame.index.table(frame.text(base), frame.path)
            if names:
                return union(frame.functions(name) for name in names)
        places = self.places(node)
        self.state.read(places)
        found = self.state.load(places)
        if not any(isinstance(o[0], Local) for o in places):
            return found
        index = arguments(node.child_by_field_name("indices"))
        if len(index) == 1 and frame.text(index[0]).isdigit():
            found = self.state.element(self.value(base), int(frame.text(index[0])))
        return either(found)

    def of_field_expression(self, node: Node) -> Value:
        name = node.child_by_field_name("field")
        part = PAIR.get(self.frame.text(name)) if name is not None else None
        if part is not None:
            value = self.object(node)
            if any((o[0], (*o[1], part)) in self.state.heap for o in value):
                return self.state.element(value, int(part.text[1:]))
        return self.state.load(self.places(node))

    def places(self, node: Node | None) -> Value:
        """The places that an expression denotes on the left of an assignment, not what they hold."""
        if node is None:
            return NOTHING
        kind, frame = node.type, self.frame
        if kind == "identifier":
            variable = self.state.find(frame.text(node))
            if variable and variable.reference is None:
                return at(variable.root)
            if not variable and frame.function.in_class:
                return at(THIS, field(frame.text(node)))
            return self.value(node)
        if kind in ("parenthesized_expression", "parameter_pack_expansion"):
            return self.places(next(iter(node.named_children), None))
        if kind == "pointer_expression" and frame.text(node).startswith("*"):
            return select(self.value(node.child_by_field_name("argument")), DEREF)
        if kind == "subscript_expression":
            self.all(arguments(node.child_by_field_name("indices")))
            return select(self.value(node.child_by_field_name("argument")), DEREF)
        if kind == "field_expression":
            names = frame.names(node.child_by_field_name("field"))
            return select(self.object(node), field(names[-1])) if names else NOTHING
        return self.value(node)

    def object(self, node: Node) -> Value:
        """What stands before `.` or `->`."""
        value, operator = self.value(node.child_by_field_name("argument")), node.child_by_field_name("operator")
        arrow = operator is not None and self.frame.text(operator) == "->"
        return self.state.select(value, DEREF) if arrow else value

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
            while node is not None and node.type == "call_expression":
                function = node.child_by_field_name("function")
                name = self.frame.names(function)[-1:]
                if name not in (("forward",), ("move",), ("addressof",)) and not (
                    name and name[0] in CASTS and any("&" in text for text in self.frame.template_arguments(function))
                ):
                    break
                node = self.bare(next(iter(arguments(node.child_by_field_name("arguments"))), None))
            variable = self.frame.variable(node)
            fixed = variable is not None and (variable.reference is None or "const" in variable.kind)
            yield NOTHING if node is None or node.type not in LVALUES or fixed else select(self.places(node), ADDRESS)

    def of_assignment_expression(self, node: Node) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        value = self.value(right)
        operator = node.child_by_field_name("operator")
        plainly = operator is None or self.frame.text(operator) == "="
        if left is not None and left.type != "identifier" and (not plainly or self.views_data(left)):
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
            return any(map(self.frame.is_element, self.value(left.child_by_field_name("argument"))))
        function = left.child_by_field_name("function") if left.type == "call_expression" else None
        name = function.child_by_field_name("field") if function is not None else None
        return name is not None and self.frame.text(name) in ("index", *self.frame.models.names.views)

    def assign(self, left: Node | None, value: Value, node: Node, plainly: bool = True) -> None:
        """`left = value`; not plainly: `left += …`."""
        state, here = self.state, self.frame.here(node)
        if left is None:
            return
        if variable := self.frame.variable(left):
            self.meant.pop(variable.root, None)
            if not plainly and variable.reference is None:
                self.memory.write_in_place(variable, node)
            state.assign(variable, value, here)
            return
        function = left.child_by_field_name("function") if left.type == "call_expression" else None
        if self.frame.names(function)[-1:] == ("tie",):  # `std::tie(a, b) = …`
            for number, item in enumerate(arguments(left.child_by_field_name("arguments"))):
                self.assign(item, state.select(value, element(number)), node)
            return
        state.store(self.places(left), value, here)

    def of_update_expression(self, node: Node) -> Value:
        argument = node.child_by_field_name("argument")
        value = self.value(argument)
        if argument is not None and argument.type != "identifier":
            self.state.store(self.places(argument), NOTHING, self.frame.here(node))
        elif argument is not None:
            variable = self.state.find(self.frame.text(argument))
            if variable:
                self.state.assigned[variable.root] = self.state.assigned.get(variable.root, 0) + 1
            if variable and variable.reference is not None:
                self.state.store(variable.reference, NOTHING, self.frame.here(node))
        return value

    def of_binary_expression(self, node: Node) -> Value:
        left = self.operand(node.child_by_field_name("left"))
        right = self.operand(node.child_by_field_name("right"))
        sign = self.frame.text(found) if (found := node.child_by_field_name("operator")) is not None else ""
        if sign == ">>" and self.is_stream(node.child_by_field_name("left")):
            self.state.store(self.places(node.child_by_field_name("right")), NOTHING, self.frame.here(node))
        if sign not in ARITHMETIC:
            return NOTHING
        both = frozenset(o for o in left | right if not self.state.blank(o))
        # A pointer and what was read as an index: the sum leads where the pointer does.
        return frozenset(o for o in both if not is_data(plain(o[1]))) or both

    def is_stream(self, node: Node | None) -> bool:
        """Whether `node >> x` reads into x."""
        text = self.frame.text(node).split(">>")[0].strip() if node is not None else ""
        variable = self.state.find(text)
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
