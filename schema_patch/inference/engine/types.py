"""Which class of the tree an expression's value has, by what is declared: variables, fields, return types, casts.

Knows expressions and the index; what a method of that class does is in methods.py.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from schema_patch.inference.domain.values import Value
from schema_patch.inference.index.index import nearest
from schema_patch.inference.index.scan import Function, split

from .assembly import Assembly
from .expressions import CASTS

NAME = re.compile(r"[A-Za-z_]\w*")
NESTED = 12  # links of a chain such as `a.b()->c`, beyond which nothing is looked up


class Types(Assembly):
    """Finds the classes of expressions."""

    def class_of_value(self, base: Node, value: Value) -> str:
        """The class of an object on which a method is called; empty where the tree does not define it."""
        return self.class_of_expression(base) or next(
            (self.state.classes[o[0]] for o in value if not o[1] and o[0] in self.state.classes), ""
        )

    def class_of_expression(self, node: Node | None, depth: int = 0) -> str:
        """The class that an expression is declared to have, or to point to."""
        if node is None or depth > NESTED:
            return ""
        if node.type == "this":
            return next(reversed(self.body.function.scope), "")
        if node.type == "identifier":
            variable = self.state.find(self.text(node))
            if variable:
                return variable.cls
            scope = self.body.function.scope
            return self.field_class(scope[-1], self.text(node)) if self.body.function.in_class and scope else ""
        if node.type in ("parenthesized_expression", "pointer_expression", "subscript_expression"):
            inner = node.child_by_field_name("argument") or next(iter(node.named_children), None)
            return self.class_of_expression(inner, depth + 1)
        if node.type == "cast_expression":
            kind = node.child_by_field_name("type")
            return self.class_of(self.text(kind)) if kind is not None else ""
        if node.type == "field_expression":
            field = node.child_by_field_name("field")
            cls = self.class_of_expression(node.child_by_field_name("argument"), depth + 1)
            return self.field_class(cls, self.text(field)) if cls and field is not None else ""
        return self.class_of_call(node, depth) if node.type == "call_expression" else ""

    def class_of_call(self, node: Node, depth: int) -> str:
        """The class that a call is declared to give back."""
        function, inner = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or inner is None:
            return ""
        count = inner.named_child_count
        path = self.body.function.path
        if function.type == "field_expression":
            cls = self.class_of_expression(function.child_by_field_name("argument"), depth + 1)
            field = function.child_by_field_name("field")
            names = self.names(field) if field is not None else ()
            return self.returned_class(self.index.methods(cls, names[-1], count, path)) if cls and names else ""
        if function.type not in ("identifier", "qualified_identifier", "template_function"):
            return ""
        names = self.names(function)
        if names and names[-1] in CASTS:
            return next(iter(self.class_of(text) for text in self.template_arguments(function)), "")
        if not names or self.state.find(names[-1]):
            return ""
        return self.returned_class(self.index.resolve(names[-1], names[:-1], count, self.body.function))

    def constructors(self, cls: str, count: int, depth: int = 0) -> list[Function]:
        """The constructors of a class that take so many arguments; those of its bases where it has none itself."""
        path = self.body.function.path
        own = [f for f in self.index.functions.get(cls, ()) if f.in_class and f.scope[-1:] == (cls,)]
        if own or depth > NESTED:
            return [f for f in self.index.methods(cls, cls, count, path) if f.scope[-1:] == (cls,)]
        for found in nearest(self.index.classes.get(cls, []), path, lambda c: c.path)[:1]:
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
        for found in nearest(self.index.classes.get(cls, []), self.body.function.path, lambda c: c.path):
            for text in found.fields:
                if name in NAME.findall(text.split("=")[0]):
                    before = split(text)[0].split("=")[0]
                    return self.class_of(before[: before.rfind(NAME.findall(before)[-1])])
            for base in found.bases:
                inherited = self.field_class(base, name) if base != cls else ""
                if inherited:
                    return inherited
        return ""
