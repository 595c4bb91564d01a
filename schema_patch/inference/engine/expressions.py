"""The value of an expression: which places it can stand for. Knows C++ expressions; calls are in calls.py."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from schema_patch.inference.domain.models import Models
from schema_patch.inference.domain.state import State, Variable
from schema_patch.inference.domain.values import (
    NOTHING,
    THIS,
    Origin,
    Value,
    constant,
    either,
    is_data,
    mutable,
    plain,
    select,
)
from schema_patch.inference.index.constants import Constants, decide, given
from schema_patch.inference.index.index import Index
from schema_patch.inference.index.scan import Function, split
from schema_patch.inference.index.syntax import Body
from schema_patch.schemas.inferred import Chain

ARITHMETIC = frozenset({"+", "-", "|", "&", ","})
NAME = re.compile(r"[A-Za-z_]\w*")
ASSIGNED = frozenset("select slice narrow view index t transpose diagonal".split())
PAIR = {"first": 0, "second": 1}
CASTS = frozenset({"reinterpret_cast", "static_cast", "const_cast", "dynamic_cast", "static_pointer_cast"})


def arguments(node: Node | None) -> list[Node]:
    return [n for n in node.named_children if n.type != "comment"] if node else []


class Expressions:
    """Evaluates expressions of one function in a State."""

    def __init__(self, body: Body, state: State, index: Index, models: Models) -> None:
        self.body = body
        self.state = state
        self.index = index
        self.models = models
        self.lambdas: dict[int, Node] = {}
        self.read: dict[tuple[object, ...], Value] = {}  # what a lambda returned that was read before
        self.constants: dict[str, bool] = {}  # template parameters of which the value is known
        self.types: dict[str, str] = {}  # `using X = Y` within the function
        self.running: list[int] = []
        self.results: list[Value] = []  # of the lambdas being read

    def text(self, node: Node) -> str:
        return self.body.text(node)

    def here(self, node: Node) -> Chain:
        return ((self.body.function.path, self.body.line(node)),)

    def value(self, node: Node | None) -> Value:
        """The places that an expression stands for, and what they hold."""
        if node is None:
            return NOTHING
        method = getattr(self, f"of_{node.type}", None)
        if method:
            result: Value = method(node)
            return result
        if node.type.endswith(("_literal", "_string", "_type", "_specifier")) or not node.named_child_count:
            return NOTHING
        result = NOTHING
        for child in node.named_children:  # an ERROR, or what nothing here knows
            if child.type.endswith(("_statement", "_definition")) or child.type == "declaration":
                self.execute(child)
            else:
                result |= self.value(child)
        return result if node.type == "ERROR" else NOTHING

    def execute(self, node: Node) -> None:
        raise NotImplementedError

    def of_identifier(self, node: Node) -> Value:
        return self.named(self.text(node))

    def named(self, name: str) -> Value:
        state = self.state
        variable = state.find(name)
        if variable:
            if variable.handle:
                return state.load(state.heap[(variable.root, ())])
            if variable.reference is not None:
                return state.load(variable.reference)
            held = state.heap.get((variable.root, ()), NOTHING)
            if not held and variable.scalar:
                return NOTHING
            if held and all(isinstance(o[0], int) for o in held):
                return state.load(held)  # a pointer or a handle: it is what it leads to, and no object of its own
            return state.load([(variable.root, (), False)])
        function = self.body.function
        if function.in_class:
            found = state.load([(THIS, (f".{name}",), False)])
            known = self.functions(name)
            return found | known if known else found
        return self.functions(name)

    def functions(self, name: str, qualifiers: tuple[str, ...] = (), arguments: Sequence[str] = ()) -> Value:
        """A name that is a function's, as a value."""
        if name not in self.index.functions:
            return NOTHING
        found = self.index.resolve(name, qualifiers, -1, self.body.function)
        return frozenset((("fn", f, self.constants_of(f, arguments)), (), False) for f in found[:6])

    def constants_of(self, function: Function, arguments: Sequence[str]) -> Constants:
        """What is known of a function's template parameters, where it is named with these arguments."""
        if not arguments:
            return ()
        return given(self.index.signature(function)[0], arguments, self.constants)

    def template_arguments(self, node: Node | None) -> list[str]:
        """The text of the template arguments in `f<a, b>` and `n::f<a, b>`."""
        while node is not None and node.type == "qualified_identifier":
            node = node.child_by_field_name("name")
        inner = node.child_by_field_name("arguments") if node is not None and node.type == "template_function" else None
        return split(self.text(inner)[1:-1]) if inner is not None else []

    def of_qualified_identifier(self, node: Node) -> Value:
        names = self.names(node)
        if not names:
            return NOTHING
        found = self.functions(names[-1], names[:-1], self.template_arguments(node))
        if not found and self.body.function.in_class and names[-1] not in self.index.functions:
            return self.state.load([(THIS, (f".{names[-1]}",), False)])  # `Base::field`
        return found

    def of_template_function(self, node: Node) -> Value:
        name = node.child_by_field_name("name")
        if name is not None and not self.state.find(self.text(name)):
            return self.functions(self.text(name), (), self.template_arguments(node)) or self.value(name)
        return self.value(name)

    def names(self, node: Node) -> tuple[str, ...]:
        """`a::b<T>::c` as names."""
        if node.type == "qualified_identifier":
            scope, name = node.child_by_field_name("scope"), node.child_by_field_name("name")
            return (*(self.names(scope) if scope else ()), *(self.names(name) if name else ()))
        if node.type in ("template_function", "template_type", "template_method", "dependent_name"):
            inner = node.child_by_field_name("name") or (node.named_children[0] if node.named_children else None)
            return self.names(inner) if inner else ()
        return (self.text(node).strip(),)

    def of_this(self, _: Node) -> Value:
        return frozenset({(THIS, ("&",), False)})

    def of_parenthesized_expression(self, node: Node) -> Value:
        return self.value(node.named_children[0]) if node.named_children else NOTHING

    def of_parameter_pack_expansion(self, node: Node) -> Value:
        return self.value(node.named_children[0]) if node.named_children else NOTHING

    def of_comma_expression(self, node: Node) -> Value:
        self.value(node.child_by_field_name("left"))
        return self.value(node.child_by_field_name("right"))

    def of_conditional_expression(self, node: Node) -> Value:
        condition = node.child_by_field_name("condition")
        self.value(condition)
        decided = decide(self.text(condition), self.constants) if condition is not None and self.constants else None
        if decided is not None:
            return self.value(node.child_by_field_name("consequence" if decided else "alternative"))
        first = self.value(node.child_by_field_name("consequence"))
        return first | self.value(node.child_by_field_name("alternative"))

    def of_cast_expression(self, node: Node) -> Value:
        inner = node.child_by_field_name("value")
        return self.cast(self.value(inner), node.child_by_field_name("type"), inner)

    def cast(self, value: Value, target: Node | None, inner: Node | None) -> Value:
        text = self.text(target) if target else ""
        if "*" not in text and "&" not in text:
            return value
        if all(map(self.state.blank, value)):
            value = self.address(inner)
        return constant(value) if "const" in text.split("*")[0] else mutable(value)

    def address(self, node: Node | None) -> Value:
        """What a number that was handed in leads to, once it is taken for an address."""
        while node is not None and node.type in ("call_expression", "cast_expression", "parenthesized_expression"):
            function = node.child_by_field_name("function")
            if function is not None and self.names(function)[-1:] != ("static_cast",):
                return NOTHING
            inner = node.child_by_field_name("arguments" if function is not None else "value")
            node = inner if function is None and inner is not None else next(iter(arguments(inner or node)), None)
        variable = self.state.find(self.text(node)) if node is not None and node.type == "identifier" else None
        number = variable.root[1:] if variable and variable.root.startswith("p") else ""
        return frozenset({(int(number), (), False)}) if number.isdigit() else NOTHING

    def of_pointer_expression(self, node: Node) -> Value:
        argument = node.child_by_field_name("argument")
        operator = node.child_by_field_name("operator")
        if operator is not None and self.text(operator) == "&":
            return select(self.places(argument), "&") | frozenset(
                o for o in self.value(argument) if isinstance(o[0], tuple)
            )
        value = self.value(argument)
        found = self.state.select(value, "*")
        self.state.read(found)
        return found

    def of_subscript_expression(self, node: Node) -> Value:
        base = node.child_by_field_name("argument")
        if base is not None and base.type == "identifier" and not self.state.find(self.text(base)):
            names = self.index.table(self.text(base), self.body.function.path)
            if names:
                return frozenset(o for name in names for o in self.functions(name))
        places = self.places(node)
        self.state.read(places)
        index = arguments(node.child_by_field_name("indices"))
        if len(index) == 1 and self.text(index[0]).isdigit() and any(isinstance(o[0], str) for o in places):
            return either(self.state.element(self.value(base), int(self.text(index[0]))))
        found = self.state.load(places)
        return either(found) if any(isinstance(o[0], str) for o in places) else found

    def of_field_expression(self, node: Node) -> Value:
        field = node.child_by_field_name("field")
        number = PAIR.get(self.text(field)) if field is not None else None
        if number is not None:
            value = self.value(node.child_by_field_name("argument"))
            if any((o[0], (f".{number}",)) in self.state.heap for o in value if not o[1]):
                return self.state.element(value, number)
        return self.state.load(self.places(node))

    def places(self, node: Node | None) -> Value:
        """The places that an expression denotes on the left of an assignment, not what they hold."""
        if node is None:
            return NOTHING
        kind = node.type
        if kind == "identifier":
            variable = self.state.find(self.text(node))
            if variable and variable.reference is None:
                return frozenset({(variable.root, (), False)})
            if not variable and self.body.function.in_class:
                return frozenset({(THIS, (f".{self.text(node)}",), False)})
            return self.value(node)
        if kind == "parenthesized_expression":
            return self.places(node.named_children[0]) if node.named_children else NOTHING
        if kind == "pointer_expression" and self.text(node).startswith("*"):
            return select(self.value(node.child_by_field_name("argument")), "*")
        if kind == "subscript_expression":
            for item in arguments(node.child_by_field_name("indices")):
                self.value(item)
            return select(self.value(node.child_by_field_name("argument")), "*")
        if kind == "field_expression":
            base = node.child_by_field_name("argument")
            value = self.value(base)
            operator = node.child_by_field_name("operator")
            if operator is not None and self.text(operator) == "->":
                value = self.state.select(value, "*")
            field = node.child_by_field_name("field")
            return select(value, f".{self.names(field)[-1]}") if field and self.names(field) else NOTHING
        if kind == "parameter_pack_expansion":
            return self.places(node.named_children[0]) if node.named_children else NOTHING
        return self.value(node)

    def of_assignment_expression(self, node: Node) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        value = self.value(right)
        operator = node.child_by_field_name("operator")
        plain = operator is None or self.text(operator) == "="
        if left is not None and left.type != "identifier" and (not plain or self.views_data(left)):
            tensors = frozenset(o for o in self.value(left) if self.is_tensor(o))
            if tensors:
                self.write_data(tensors, node)
                self.state.read_data(value)
                return tensors
        self.assign(left, value if plain else value | self.value(left), node, plain)
        return value

    def views_data(self, left: Node) -> bool:
        """Whether this is `x.select(…)` or its like: what is assigned to such a temporary is copied into the data."""
        function = left.child_by_field_name("function") if left.type == "call_expression" else None
        field = function.child_by_field_name("field") if function is not None else None
        return field is not None and self.text(field) in ASSIGNED

    def write_data(self, value: Value, node: Node) -> None:
        raise NotImplementedError

    def assign(self, left: Node | None, value: Value, node: Node, plain: bool = True) -> None:
        state = self.state
        if left is None:
            return
        if left.type == "identifier":
            variable = state.find(self.text(left))
            if variable:
                if not plain and variable.reference is None:
                    self.in_place_operator(variable, node)
                state.assign(variable, value, self.here(node))
                return
        if left.type == "call_expression" and self.tie(left, value, node):
            return
        state.store(self.places(left), value, self.here(node))

    def in_place_operator(self, variable: Variable, node: Node) -> None:
        """`x += y` writes the data of a tensor x, and moves a pointer x."""
        for root, path, const in self.state.load([(variable.root, (), False)]):
            if isinstance(root, int) and "Tensor" in variable.kind and "@" not in path:
                self.state.effect("write", (root, (*path, "@", "*"), const), self.here(node))

    def tie(self, left: Node, value: Value, node: Node) -> bool:
        """`std::tie(a, b) = …`."""
        function = left.child_by_field_name("function")
        if function is None or self.names(function)[-1:] != ("tie",):
            return False
        for number, item in enumerate(arguments(left.child_by_field_name("arguments"))):
            self.assign(item, self.state.select(value, f".{number}"), node)
        return True

    def of_update_expression(self, node: Node) -> Value:
        argument = node.child_by_field_name("argument")
        value = self.value(argument)
        if argument is not None and argument.type != "identifier":
            self.state.store(self.places(argument), NOTHING, self.here(node))
        elif argument is not None:
            variable = self.state.find(self.text(argument))
            if variable and variable.reference is not None:
                self.state.store(variable.reference, NOTHING, self.here(node))
        return value

    def of_binary_expression(self, node: Node) -> Value:
        left = self.operand(node.child_by_field_name("left"))
        right = self.operand(node.child_by_field_name("right"))
        operator = node.child_by_field_name("operator")
        if operator is None or self.text(operator) not in ARITHMETIC:
            return NOTHING
        both = frozenset(o for o in left | right if not self.state.blank(o))
        # A pointer and what was read as an index: the sum leads where the pointer does.
        return frozenset(o for o in both if not is_data(plain(o[1]))) or both

    def operand(self, node: Node | None) -> Value:
        """An operand of a sum: the sum of tensors is a new one, that of a pointer and a number is the same place."""
        value = self.value(node)
        variable = self.state.find(self.text(node)) if node is not None and node.type == "identifier" else None
        if variable and "Tensor" in variable.kind and "Accessor" not in variable.kind:
            self.state.read_data(value)
            return NOTHING
        tensors = frozenset(o for o in value if self.is_tensor(o))
        self.state.read_data(tensors)
        return value - tensors if tensors else value

    def is_tensor(self, origin: Origin) -> bool:
        raise NotImplementedError

    def of_unary_expression(self, node: Node) -> Value:
        self.value(node.child_by_field_name("argument"))
        return NOTHING

    def of_lambda_expression(self, node: Node) -> Value:
        """Read where it stands, as if called there, and again when it is called with arguments."""
        self.lambdas[node.id] = node
        captures = node.child_by_field_name("captures")
        for capture in arguments(captures):
            if capture.type == "lambda_capture_initializer":
                left, right = capture.child_by_field_name("left"), capture.child_by_field_name("right")
                if left is not None:
                    variable = self.state.declare(self.text(left), Variable(self.state.new()))
                    self.state.assign(variable, self.value(right), self.here(node))
        key = self.context(node)
        returned = self.read.get(key)
        if returned is None:
            self.read[key] = NOTHING
            returned = self.read[key] = self.run_lambda(node, [], [])
        value: Value = frozenset({(("lambda", node.id), (), False)})
        self.state.heap[(("lambda", node.id), (".result",))] = returned
        return value

    def context(self, node: Node) -> tuple[object, ...]:
        """A lambda's text and what its names mean: a dispatch macro repeats the same for every type."""
        text = self.text(node)
        found = ((name, self.state.find(name)) for name in sorted(set(NAME.findall(text))))
        return text, *((v.root, self.state.heap.get((v.root, ()))) for _, v in found if v)

    def run_lambda(self, node: Node, values: list[Value], spots: list[Value]) -> Value:
        raise NotImplementedError

    def class_of(self, text: str) -> str:
        raise NotImplementedError

    def fill(
        self, root: str, path: tuple[str, ...], items: list[tuple[str, Value]], names: tuple[str, ...] = ()
    ) -> None:
        raise NotImplementedError

    def construct(self, cls: str, inner: Node | None, node: Node) -> Value:
        raise NotImplementedError
