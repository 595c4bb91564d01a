"""Values through the statements of a function, and summaries of functions, each made once.

Knows C++ statements and declarations. A loop is read twice; recursion is cut where it closes.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from schema_patch.inference.domain.models import Models
from schema_patch.inference.domain.state import State, Variable
from schema_patch.inference.domain.values import MIXED, NOTHING, PACK, Origin, Summary, Value, constant
from schema_patch.inference.index.constants import Constants, decide
from schema_patch.inference.index.index import Index
from schema_patch.inference.index.scan import Function
from schema_patch.inference.index.syntax import Body, parse

from .calls import TENSOR_LIKE
from .expressions import arguments
from .objects import Objects, bare

SCALARS = frozenset(
    "bool char short int long unsigned float double half bfloat16 size_t ssize_t ptrdiff_t int8_t int16_t int32_t "
    "int64_t uint8_t uint16_t uint32_t uint64_t uint index_t ScalarType Device DeviceIndex dim3 string".split()
)
NAME = re.compile(r"[A-Za-z_]\w*")
LOCAL_ALIAS = re.compile(r"using\s+(\w+)\s*=\s*(?:typename\s+)?([\w:]+)")
KEEPS = re.compile(r"\bauto\b|Tensor|Accessor|optional|\*|&|Ptr|ptr|Params|params|Args|vector|array")
ATOMIC = "atomic_ref"
ABORTS = re.compile(r"\s*(?:(?:STD_)?TORCH_CHECK\w*\s*\(\s*(?:false|0)\s*[,)]|AT_ERROR\s*\()")
STATIC = re.compile(r"\b(?:static|thread_local)\b")


class Flow(Objects):
    """Executes the statements of one function."""

    def __init__(self, body: Body, index: Index, models: Models, summaries: Summaries) -> None:
        super().__init__(body, State(body.function.path), index, models)
        self.summaries = summaries
        self.looping = 0
        self.read_again: dict[int, int] = {}
        self.returned: Value = NOTHING

    def summary_of(self, function: Function, constants: Constants = ()) -> Summary:
        return self.summaries.of(function, constants)

    def run(self) -> Summary:
        state = self.state
        self.types = dict.fromkeys(self.body.template_types, "")
        for number, parameter in enumerate(self.body.parameters):
            origin: Origin = (number, (PACK,) if "..." in parameter.type else (), parameter.const)
            pointer = "*" in parameter.type
            variable = Variable(f"p{number}", parameter.type, self.class_of(parameter.type), const=parameter.const)
            if (parameter.reference and not pointer) or PACK in origin[1]:
                variable.reference = frozenset({origin})
                variable.handle = not parameter.const and not origin[1] and bool(TENSOR_LIKE.search(parameter.type))
                if variable.handle:
                    state.heap[(variable.root, ())] = variable.reference
            else:
                state.by_value.add(number)
                variable.scalar = bare(parameter.type) in SCALARS and not pointer and "<" not in parameter.type
                if not variable.scalar:
                    state.heap[(variable.root, ())] = frozenset({origin})
            if parameter.name:
                state.declare(parameter.name, variable)
        for child in self.body.root.children:
            if child.type == "function_definition":
                self.execute(child.child_by_field_name("body"))
            else:  # the parse broke off here: read what there is
                self.execute(child)
        self.finish()
        state.summary.finish()
        return state.summary

    def finish(self) -> None:
        state, summary = self.state, self.state.summary
        returned = self.returned
        summary.returned = frozenset(o for o in returned if not isinstance(o[0], str) and not _a_lambda(o))
        handed = {any(_handed(o) for o in value) for values, _ in summary.returns for value in values[:1]}
        summary.mixed = len(handed) > 1 or any(str(o[0]).startswith(MIXED) for o in returned)
        for root in {o[0] for o in returned if isinstance(o[0], str) and not o[1]}:
            for (holder, path), held in state.heap.items():
                if holder == root and path:
                    value = frozenset(o for o in state.load(held) if not isinstance(o[0], str) and not _a_lambda(o))
                    if value:
                        summary.made[path] = summary.made.get(path, NOTHING) | value

    def execute(self, node: Node | None) -> None:
        if node is None:
            return
        method = getattr(self, f"do_{node.type}", None)
        if method:
            method(node)
        elif node.type.endswith(("_expression", "identifier", "_literal", "_list")) or node.type == "ERROR":
            self.value(node)
        else:
            for child in node.named_children:
                self.execute(child)

    def do_comment(self, _: Node) -> None: ...

    def do_compound_statement(self, node: Node) -> None:
        self.state.scopes.append({})
        children = [child for child in node.named_children if child.type != "comment"]
        if len(children) == 2 and ABORTS.match(self.text(children[0])):
            children.pop()  # a value for the compiler, which no caller gets
        for child in children:
            self.execute(child)
        self.state.scopes.pop()

    def do_expression_statement(self, node: Node) -> None:
        for child in node.named_children:
            self.value(child)

    def branch(self, *nodes: Node | None) -> None:
        """What may or may not be executed."""
        before = dict(self.state.heap)
        for node in nodes:
            self.execute(node)
        if nodes and _leaves(nodes[-1]):
            self.state.heap = before
        else:
            self.state.merge(before)

    def do_if_statement(self, node: Node) -> None:
        condition = node.child_by_field_name("condition")
        decided = decide(self.text(condition), self.constants) if condition is not None and self.constants else None
        if decided is not None:
            self.execute(node.child_by_field_name("consequence" if decided else "alternative"))
            return
        self.state.scopes.append({})
        self.execute(node.child_by_field_name("condition"))
        first, second = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        before = dict(self.state.heap)
        self.execute(first)
        after = before if _leaves(first) else self.state.heap
        self.state.heap = dict(before)
        self.execute(second)
        if _leaves(second):
            self.state.heap = after
        else:
            self.state.merge(after)
        self.state.scopes.pop()

    def do_condition_clause(self, node: Node) -> None:
        for child in node.named_children:
            self.execute(child)

    def loop(self, *nodes: Node | None) -> None:
        self.looping += 1
        before = dict(self.state.heap)
        self.branch(*nodes)
        if self.looping == 1 and self.state.heap != before:
            self.branch(*nodes)
        self.looping -= 1

    def do_for_statement(self, node: Node) -> None:
        self.state.scopes.append({})
        self.execute(node.child_by_field_name("initializer"))
        fields = ("condition", "body", "update")
        self.loop(*(node.child_by_field_name(name) for name in fields))
        self.state.scopes.pop()

    def do_while_statement(self, node: Node) -> None:
        self.loop(node.child_by_field_name("condition"), node.child_by_field_name("body"))

    def do_do_statement(self, node: Node) -> None:
        self.loop(node.child_by_field_name("body"), node.child_by_field_name("condition"))

    def do_for_range_loop(self, node: Node) -> None:
        self.state.scopes.append({})
        elements = self.state.select(self.value(node.child_by_field_name("right")), "*")
        declarator = node.child_by_field_name("declarator")
        kind = node.child_by_field_name("type")
        if declarator is not None:
            self.declare(declarator, self.text(kind) if kind else "auto", elements, node)
        self.loop(node.child_by_field_name("body"))
        self.state.scopes.pop()

    def do_switch_statement(self, node: Node) -> None:
        self.execute(node.child_by_field_name("condition"))
        self.branch(node.child_by_field_name("body"))

    def do_case_statement(self, node: Node) -> None:
        for child in node.named_children:
            self.execute(child)

    def do_return_statement(self, node: Node) -> None:
        value = NOTHING
        for child in node.named_children:
            value |= self.value(child)
        if self.results:
            self.results[-1] |= value
        else:
            self.returned |= value
            self.state.summary.returns.append((self.positions(value), self.body.line(node)))

    def positions(self, value: Value) -> tuple[Value, ...]:
        """The values of a tuple that is returned; of anything else, the one."""
        return tuple(self.state.elements(value)) or (value,)

    def do_alias_declaration(self, node: Node) -> None:
        match = LOCAL_ALIAS.match(self.text(node))
        if match:
            self.types[match[1]] = match[2]

    def do_type_definition(self, _: Node) -> None: ...

    def do_using_declaration(self, _: Node) -> None: ...

    def do_static_assert_declaration(self, _: Node) -> None: ...

    def do_template_declaration(self, _: Node) -> None: ...

    def do_struct_specifier(self, _: Node) -> None: ...

    def do_class_specifier(self, _: Node) -> None: ...

    def do_gnu_asm_expression(self, node: Node) -> None:
        self.of_gnu_asm_expression(node)

    def do_declaration(self, node: Node) -> None:
        kind = node.child_by_field_name("type")
        text = self.text(kind) if kind else ""
        before = self.body.source[node.start_byte : kind.end_byte if kind else node.start_byte]
        for declarator in node.children_by_field_name("declarator"):
            static = bool(STATIC.search(before))
            if declarator.type == "init_declarator":
                inner, value = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("value")
                if inner is not None:
                    self.initialise(inner, before.strip() or text, value, declarator, static)
            elif declarator.type == "function_declarator":
                self.vexing(declarator, text, node)
            else:
                self.declare(declarator, before.strip() or text, NOTHING, node, static)

    def initialise(self, declarator: Node, kind: str, value: Node | None, node: Node, static: bool) -> None:
        """`T x = value`, `T x(values)`, `T x{values}`."""
        atomic = self.atomic(kind, value)
        if atomic:
            self.declare(declarator, ATOMIC, atomic, node)
            return
        cls = self.class_of(kind)
        if value is not None and value.type == "initializer_list" and not cls:
            self.aggregate(kind, value, node)
        if (
            value is not None
            and value.type in ("argument_list", "initializer_list")
            and declarator.type == "identifier"
        ):
            if value.type == "initializer_list" and not cls:
                found = self.value(value)
                if "auto" in kind or bare(kind) in SCALARS or "*" in kind:
                    found |= frozenset(o for _, v in self.items(value) for o in v)
            elif bare(kind) == "vector" and len(arguments(value)) == 2 and not cls:
                found = self.copy_of_range([self.value(item) for item in arguments(value)])
            else:
                found = self.construct(cls, value, node)
        else:
            found = self.value(value)
        reference = declarator.type == "reference_declarator" and value is not None
        if "auto" in kind:
            cls = self.class_of_expression(value)
        if reference:
            spots = self.places(value)
            if spots and not any("~" in path for _, path, _ in found):  # else one element of many
                found = spots
        self.declare(declarator, kind, found, node, static, cls)

    def atomic(self, kind: str, value: Node | None) -> Value:
        """The place that `atomic_ref<T> r(place)` or `auto r = atomic_ref<T>(place)` refers to."""
        function = value.child_by_field_name("function") if value is not None else None
        if value is not None and function is not None and "auto" in kind:
            kind, value = self.text(function), value.child_by_field_name("arguments")
        if value is None or value.type not in ("argument_list", "initializer_list") or bare(kind) != ATOMIC:
            return NOTHING
        return self.places(next(iter(arguments(value)), None))

    def vexing(self, declarator: Node, kind: str, node: Node) -> None:
        """`Kernel k(a, b);` parses as the declaration of a function."""
        inner, parameters = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("parameters")
        if inner is None or inner.type != "identifier" or parameters is None:
            return
        values = [self.mentioned(self.text(parameter)) for parameter in arguments(parameters)]
        self.declare(inner, kind, self.build(self.class_of(kind), values, [], node), node)

    def mentioned(self, text: str) -> Value:
        """The variables that an expression names, where it was parsed as a parameter: `reinterpret_cast<T*>(x)`."""
        value = NOTHING
        for name in NAME.findall(text):
            if self.state.find(name):
                value |= self.named(name)
        return constant(value) if re.search(r"\bconst\b", text) else value

    def declare(
        self, declarator: Node, kind: str, value: Value, node: Node, static: bool = False, cls: str = ""
    ) -> None:
        """Declares a name with its first value; a reference names the places themselves."""
        state = self.state
        pointer = array = False
        reference = kind == ATOMIC
        while declarator.type in (
            "pointer_declarator",
            "reference_declarator",
            "array_declarator",
            "parenthesized_declarator",
            "init_declarator",
        ):
            pointer |= declarator.type == "pointer_declarator"
            reference |= declarator.type == "reference_declarator"
            array |= declarator.type == "array_declarator"
            inner = declarator.child_by_field_name("declarator") or next(iter(declarator.named_children), None)
            if inner is None:
                return
            declarator = inner
        if declarator.type == "structured_binding_declarator":
            for number, child in enumerate(declarator.named_children):
                variable = state.declare(self.text(child), Variable(state.new(), "auto"))
                state.hold((variable.root, ()), state.element(value, number))
            return
        const = "const" in kind.split("*")[0] and pointer
        scalar = bare(kind) in SCALARS and not (pointer or reference or array or "<" in kind)
        plain = not (pointer or reference or array or KEEPS.search(kind))
        root = state.new("static" if static else "array" if array else "v")
        variable = Variable(root, kind, cls or self.class_of(kind), const=const, scalar=scalar, plain=plain)
        if reference and value:
            variable.reference = value
        state.declare(self.text(declarator), variable)
        if const:
            value = frozenset((r, p, True) for r, p, _ in value)
        if not variable.cls:
            variable.cls = next((state.classes[o[0]] for o in value if not o[1] and o[0] in state.classes), "")
        if variable.cls and not pointer:
            state.classes[variable.root] = variable.cls
        if array:
            for root_, path_, _ in value:
                for path in state.inside.get(root_, ()) if not path_ else ():
                    state.add((variable.root, path), state.heap.get((root_, path), NOTHING))
        if variable.reference is None:
            state.assign(variable, value, self.here(node))

    def run_lambda(self, node: Node, values: list[Value], spots: list[Value]) -> Value:
        count = self.read_again.get(node.id, 0)
        if node.id in self.running or count > 12:
            return NOTHING
        self.read_again[node.id] = count + 1
        self.running.append(node.id)
        self.results.append(NOTHING)
        self.state.scopes.append({})
        before = dict(self.state.heap)
        declarator = node.child_by_field_name("declarator")
        parameters = declarator.child_by_field_name("parameters") if declarator is not None else None
        for number, parameter in enumerate(arguments(parameters)):
            inner, kind = parameter.child_by_field_name("declarator"), parameter.child_by_field_name("type")
            if inner is not None:
                given = spots if inner.type == "reference_declarator" else values
                value = given[number] if number < len(given) else NOTHING
                self.declare(inner, self.text(kind) if kind else "auto", value, node)
        self.execute(node.child_by_field_name("body"))
        self.state.merge(before)
        self.state.scopes.pop()
        self.running.pop()
        return self.results.pop()


def _leaves(node: Node | None) -> bool:
    """Whether what follows is not reached from here."""
    while node is not None and node.type in ("compound_statement", "else_clause") and node.named_children:
        node = node.named_children[-1]
    return node is not None and node.type in ("return_statement", "throw_statement")


def _handed(origin: Origin) -> bool:
    """Whether this is a parameter itself."""
    return isinstance(origin[0], int) and not origin[1]


def _a_lambda(origin: Origin) -> bool:
    return isinstance(origin[0], tuple) and origin[0][0] == "lambda"


class Summaries:
    """The summary of each function, made when it is first asked for."""

    def __init__(self, index: Index, models: Models) -> None:
        self.index = index
        self.models = models
        self.known: dict[tuple[tuple[str, int], Constants], Summary] = {}

    def of(self, function: Function, constants: Constants = ()) -> Summary:
        """What calling the function does, its template parameters being what is known of them."""
        key = function.key, constants
        found = self.known.get(key)
        if found is None:
            self.known[key] = Summary()  # what a recursive call sees
            flow = Flow(parse(function, self.index), self.index, self.models, self)
            flow.constants.update(constants)
            found = self.known[key] = flow.run()
        return found
