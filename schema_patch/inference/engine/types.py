"""Which class of the tree a type names or an expression has, by what is declared: variables, fields, returns, casts.

Evaluates nothing; what a method of that class does is in methods.py.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tree_sitter import Node

from schema_patch.cpp.syntax import first, part
from schema_patch.inference.domain.values import Value
from schema_patch.inference.index.brackets import split
from schema_patch.inference.index.index import nearest
from schema_patch.inference.index.scan import Function

from .frame import NAME, FunctionReader

CASTS = frozenset({"reinterpret_cast", "static_cast", "const_cast", "dynamic_cast", "static_pointer_cast"})
QUALIFIER = re.compile(r"(\w+)\s*::")
SMART = re.compile(r"\b(?:unique_ptr|shared_ptr)\s*<(.*)>")
WORDS = re.compile(r"\b(?:const|constexpr|static|struct|class|typename|volatile|inline|thread_local)\b")
NESTED = 12  # links of a chain such as `a.b()->c`, beyond which nothing is looked up


@lru_cache(maxsize=65536)
def bare(text: str) -> str:
    """A type's last name, without template arguments, qualifiers, pointers."""
    names = NAME.findall(WORDS.sub(" ", text).split("<")[0])
    return names[-1] if names else ""


class Types(FunctionReader):
    """Finds the classes of types and expressions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.index = self.frame.index

    def class_of(self, text: str) -> str:
        """The class of the tree that a type names, through aliases; empty where it is none."""
        smart = SMART.search(text) if "_ptr" in text else None
        name = bare(smart[1] if smart else text)
        local = self.frame.types
        for _ in range(5):
            if name in self.index.classes and name not in local:
                return name if self.nested(name, QUALIFIER.findall(text.split("<")[0])) else ""
            target = local[name] if name in local else self.index.aliases.get(name)
            if not target or target == name:
                return ""
            name = target.rpartition("::")[2]
        return ""

    def is_alias(self, name: str) -> bool:
        """Whether a name is another one's for a type, of which a call makes an object."""
        return name in self.frame.types or name in self.index.aliases

    def nested(self, name: str, qualifiers: list[str]) -> bool:
        """Whether `Q::Name` may be one of the tree's classes: those that stand within other classes have to match."""
        classes = self.index.classes
        if not qualifiers or any(not c.scope or c.scope[-1] not in classes for c in classes[name]):
            return True
        outer = self.class_of(qualifiers[-1]) if qualifiers[-1] != name else ""
        family = self.index.family((outer,)) if outer else set(qualifiers[-1:])
        return any(c.scope[-1] in family for c in classes[name])

    def class_of_value(self, base: Node, value: Value) -> str:
        """The class of an object on which a method is called; empty where the tree does not define it."""
        return self.class_of_expression(base) or self.frame.state.class_in(value)

    def class_of_expression(self, node: Node | None, depth: int = 0) -> str:
        """The class that an expression is declared to have, or to point to."""
        if node is None or depth > NESTED:
            return ""
        if node.type == "this":
            return next(reversed(self.frame.function.scope), "")
        if node.type == "identifier":
            variable = self.frame.state.names.get(self.frame.text(node))
            if variable:
                return variable.cls
            scope = self.frame.function.scope
            return self.field_class(scope[-1], self.frame.text(node)) if self.frame.function.in_class and scope else ""
        if node.type in ("parenthesized_expression", "pointer_expression", "subscript_expression"):
            return self.class_of_expression(node.child_by_field_name("argument") or first(node), depth + 1)
        if node.type == "cast_expression":
            return self.class_of(self.frame.text(node.child_by_field_name("type")))
        if node.type == "field_expression":
            cls = self.class_of_expression(node.child_by_field_name("argument"), depth + 1)
            return self.field_class(cls, self.frame.text(node.child_by_field_name("field"))) if cls else ""
        return self.class_of_call(node, depth) if node.type == "call_expression" else ""

    def class_of_call(self, node: Node, depth: int) -> str:
        """The class that a call is declared to give back."""
        function, inner = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or inner is None:
            return ""
        count = inner.named_child_count
        if field := function.child_by_field_name("field"):
            cls, names = self.class_of_expression(part(function, "argument"), depth + 1), self.frame.names(field)
            return self.returned_class(self.frame.methods(cls, names[-1], count)) if cls and names else ""
        if function.type not in ("identifier", "qualified_identifier", "template_function"):
            return ""
        names = self.frame.names(function)
        if names and names[-1] in CASTS:
            return next(iter(self.class_of(text) for text in self.frame.template_arguments(function)), "")
        if not names or self.frame.state.names.get(names[-1]):
            return ""
        return self.returned_class(self.index.resolve(names[-1], names[:-1], count, self.frame.function))

    def constructors(self, cls: str, count: int, depth: int = 0) -> list[Function]:
        """The constructors of a class that take so many arguments; those of its bases where it has none itself."""
        path = self.frame.path
        own = [f for f in self.index.functions.get(cls, ()) if f.in_class and f.scope[-1:] == (cls,)]
        if own or depth > NESTED:
            return [f for f in self.frame.methods(cls, cls, count) if f.scope[-1:] == (cls,)]
        for found in nearest(self.index.classes.get(cls, []), path)[:1]:
            for base in found.bases:
                inherited = self.constructors(self.class_of(base), count, depth + 1)
                if inherited:
                    return inherited
        return []

    def returned_class(self, functions: list[Function]) -> str:
        """The class that these functions are declared to return, where they agree."""
        found = {self.class_of(self.return_type(function)) for function in functions}
        return found.pop() if len(found) == 1 else ""

    def return_type(self, function: Function) -> str:
        """The type before a function's name; one that trails is not read."""
        head = self.index.signature(function)[0]
        text = head[: head.rfind(function.name)].rstrip()
        while text.endswith("::"):  # `Class::method`
            text = re.sub(r"\w+\s*(?:<[^<>]*>)?\s*::$", "", text).rstrip()
        text = text.rstrip("&* \n")
        at, depth = len(text), 0
        while at > 0 and (depth or text[at - 1] == ">"):
            at -= 1
            depth += (text[at] == ">") - (text[at] == "<")
        name = re.search(r"[\w:]+\s*$", text[:at])
        return text[name.start() :] if name else ""

    def field_class(self, cls: str, name: str) -> str:
        """The class that a field of a class is declared to have, or to point to."""
        for found in nearest(self.index.classes.get(cls, []), self.frame.path):
            for text in found.fields:
                if name in NAME.findall(text.split("=")[0]):
                    before = split(text)[0].split("=")[0]
                    return self.class_of(before[: before.rfind(NAME.findall(before)[-1])])
            for base in found.bases:
                inherited = self.field_class(base, name) if base != cls else ""
                if inherited:
                    return inherited
        return ""
