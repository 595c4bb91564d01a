"""The schema that torch infers from a C++ function where `m.def` gives none: its types, and no word of what it writes.

Knows C++ types; which functions a name means is infer.py's. Where a type has no sure schema type, there is no schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from schema_patch.cpp.registered import Implementation, Unwritten
from schema_patch.schemas.grammar import Schema, SchemaError, parse

from .index.brackets import split
from .index.index import Index
from .index.scan import Function
from .index.syntax import read_parameters
from .infer import Inference
from .operators import ImplementedOperator

# What torch/library takes in functions that it infers schemas of.
PLAIN = {
    "Tensor": "Tensor", "int64_t": "int", "long": "int", "double": "float", "bool": "bool", "string": "str",
    "string_view": "str", "Scalar": "Scalar", "ScalarType": "ScalarType", "Device": "Device", "SymInt": "SymInt",
    "TensorList": "Tensor[]", "IntArrayRef": "int[]", "SymIntArrayRef": "SymInt[]",
}  # fmt: skip
LISTS = frozenset({"vector", "ArrayRef", "List"})
NOISE = re.compile(
    r"\b(?:const|static|inline|extern|struct|TORCH_API|C10_EXPORT|TORCH_CUDA_CU_API|[A-Z]+_API|[A-Z]+_EXPORT)\b"
    r"|\[\[.*?\]\]|__attribute__\s*\(\(.*?\)\)|[&\s]"
)
OUTER = re.compile(r"(\w+)<(.*)>")


def operators(found: Iterable[Unwritten], inference: Inference) -> list[ImplementedOperator]:
    """The operators that are registered by a name and a function of this tree."""
    made = []
    for one in found:
        bound = one.implementation
        inferred = schema(one.op, bound, inference) if bound and bound.kind == "function" else None
        if bound and inferred:
            made.append(
                ImplementedOperator(one.location, one.namespace, inferred, one.name, (bound,), (), written=False)
            )
    return made


def schema(op: str, bound: Implementation, inference: Inference) -> Schema | None:
    """What torch infers; None where the function is not in the tree, or its types are not known here."""
    texts = {text_of(op, function, inference.index) for function in inference.definitions(bound, -1)}
    text = texts.pop() if len(texts) == 1 else None
    try:
        return parse(text) if text else None
    except SchemaError:
        return None


def text_of(op: str, function: Function, index: Index) -> str | None:
    """`op(Tensor out, float value) -> ()` of `void f(at::Tensor& out, double value)`."""
    before, listed = index.signature(function)
    head, parameters = re.sub(r"[\w:]+\s*$", "", before), read_parameters(listed)
    returned = type_of(head)
    types = [type_of(parameter.type) for parameter in parameters]
    if head.startswith("template") or returned is None or None in types or not all(p.name for p in parameters):
        return None
    arguments = ", ".join(f"{kind} {p.name}" for kind, p in zip(types, parameters, strict=True))
    return f"{op}({arguments}) -> {returned}"


def type_of(text: str) -> str | None:
    """The schema type of a C++ type, as torch infers it."""
    name = re.sub(r"\w+::", "", NOISE.sub("", text))
    outer = OUTER.fullmatch(name)
    if name == "void":
        return "()"
    if not outer:
        return PLAIN.get(name)
    if outer[1] == "tuple":
        inner = [type_of(part) for part in split(outer[2])]
        return None if None in inner else f"({', '.join(map(str, inner))})"
    one = type_of(outer[2])
    if one is None or one.startswith("("):
        return None
    return f"{one}?" if outer[1] == "optional" else f"{one}[]" if outer[1] in LISTS else None
