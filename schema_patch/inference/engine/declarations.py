"""Declares names with their first values: variables, references, arrays, structured bindings. Evaluates nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from schema_patch.cpp.syntax import first
from schema_patch.inference.domain.state import Variable
from schema_patch.inference.domain.summary import MANY
from schema_patch.inference.domain.values import (
    ARGUMENT,
    ARRAY,
    LIST,
    NOTHING,
    PACK,
    STATIC,
    VARIABLE,
    Local,
    Value,
    at,
    element,
    parameter,
)

from .frame import BOXED, TENSOR_LIKE, FunctionReader
from .types import Types, bare

SCALARS = frozenset(
    "bool char short int long unsigned float double half bfloat16 size_t ssize_t ptrdiff_t int8_t int16_t int32_t "
    "int64_t uint8_t uint16_t uint32_t uint64_t uint index_t ScalarType Device DeviceIndex dim3 string".split()
)
KEEPS = re.compile(r"\bauto\b|Tensor|Accessor|optional|\*|&|Ptr|ptr|Params|params|Args|vector|array")
ATOMIC = "atomic_ref"
WRAPPERS = frozenset(
    "pointer_declarator reference_declarator array_declarator parenthesized_declarator init_declarator".split()
)


@dataclass(eq=False)
class Declarations(FunctionReader):
    """Enters names in the innermost scope."""

    types: Types

    def parameters(self) -> None:
        """The parameters of the function."""
        state = self.state
        for number, declared in enumerate(self.frame.body.parameters):
            if self.frame.boxed:
                self.stack(declared.name if BOXED.search(declared.type) else "")
                continue
            path = (PACK,) if "..." in declared.type else ()
            value: Value = frozenset({(parameter(number), path, declared.const)})
            pointer = "*" in declared.type
            root = Local(ARGUMENT, number)
            if not pointer and TENSOR_LIKE.search(declared.type):
                state.tensors.add(parameter(number))
            variable = Variable(root, declared.type, self.types.class_of(declared.type), const=declared.const)
            if (declared.reference and not pointer) or path:
                variable.reference = value
                variable.handle = not declared.const and not path and bool(TENSOR_LIKE.search(declared.type))
                if variable.handle:
                    state.heap[root, ()] = value
            else:
                state.by_value.add(parameter(number))
                variable.scalar = bare(declared.type) in SCALARS and not pointer and "<" not in declared.type
                if not variable.scalar:
                    state.heap[root, ()] = value
            if declared.name:
                state.declare(declared.name, variable)

    def stack(self, name: str) -> None:
        """The stack of a boxed function, as a list of the operator's arguments."""
        if name:
            root = self.state.new(LIST)
            for number in range(MANY):
                self.state.heap[root, (element(number),)] = at(parameter(number))
                self.state.tensors.add(parameter(number))
            variable = self.state.declare(name, Variable(self.state.new()))
            self.state.hold((variable.root, ()), at(root))

    def declare(
        self, declarator: Node, kind: str, value: Value, node: Node, static: bool = False, cls: str = ""
    ) -> None:
        """Declares a name with its first value; a reference names the places themselves."""
        state, seen = self.state, set()
        while declarator.type in WRAPPERS:
            seen.add(declarator.type)
            inner = declarator.child_by_field_name("declarator") or first(declarator)
            if inner is None:
                return
            declarator = inner
        if declarator.type == "structured_binding_declarator":
            for number, child in enumerate(declarator.named_children):
                variable = state.declare(self.frame.text(child), Variable(state.new(), "auto"))
                state.hold((variable.root, ()), state.element(value, number))
            return
        pointer, array = "pointer_declarator" in seen, "array_declarator" in seen
        reference = kind == ATOMIC or "reference_declarator" in seen
        const = "const" in kind.split("*")[0] and pointer
        scalar = bare(kind) in SCALARS and not (pointer or reference or array or "<" in kind)
        plain = not (pointer or reference or KEEPS.search(kind))
        root = state.new(STATIC if static else ARRAY if array else VARIABLE)
        if plain:
            state.plain.add(root)
        variable = Variable(root, kind, cls or self.types.class_of(kind), const=const, scalar=scalar)
        if reference and value:
            variable.reference = value
        state.declare(self.frame.text(declarator), variable)
        if const:
            value = state.as_const(value)
        variable.cls = variable.cls or state.class_in(value)
        if variable.cls and not pointer:
            state.classes[root] = variable.cls
        if array:
            for source, path, _ in value:
                for inside in list(state.inside.get(source, ())) if not path else ():
                    state.add((root, inside), state.heap.get((source, inside), NOTHING))
        if variable.reference is None:
            state.assign(variable, value, self.frame.here(node))
