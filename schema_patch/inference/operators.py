"""Which implementations belong to which schema: registrations of one tree, matched by name, namespace and nearness.

Knows what cpp.py reads of each file, and macros of the tree that call `.impl` themselves.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from schema_patch.cpp.registered import Implementation, Source
from schema_patch.model import Location, Span
from schema_patch.schemas.grammar import Schema, SchemaError, parse
from schema_patch.text.mapped import MappedText

from .index.brackets import closing, split
from .index.macros import substitute
from .index.mask import Macro, mask

# Keys whose functions compute shapes or wrap the real ones.
NOT_REAL = re.compile(
    r"Meta|Fake|(?<!plicit)Autograd|ADInplaceOrView|Autocast|Functionalize|Tracer|Batched|Vmap|Python"
)
IMPL_CALL = re.compile(r"\.\s*impl\s*(\()\s*(?:TORCH_SELECTIVE_NAME\s*\(\s*)?\"([\w:.]+)\"\s*\)?\s*,")
IMPL_MACRO = re.compile(r"\.\s*impl\s*\(\s*(?:TORCH_SELECTIVE_NAME\s*\(\s*)?(\w+)")
KEY = re.compile(r"DispatchKey::(\w+)|\bk([A-Z]\w+)")


@dataclass(frozen=True, slots=True)
class ImplementedOperator:
    """One schema with everything that is registered as its implementation."""

    location: Location
    namespace: str | None
    schema: Schema
    text: MappedText
    implementations: tuple[Implementation, ...]
    fakes: tuple[Implementation, ...]  # those for Meta tensors
    written: bool = True  # the schema stands in the source; if not, torch infers it, and `schema` is what it infers

    @property
    def op(self) -> str:
        return self.schema.op

    @property
    def full_name(self) -> str:
        """As a call through torch's dispatcher gives it."""
        return f"{self.namespace}::{self.schema.op.partition('.')[0]}"


@dataclass(frozen=True, slots=True)
class Defined:
    """A schema that is registered somewhere: in C++ or in Python."""

    location: Location
    namespace: str | None
    text: MappedText


def match(
    sources: Iterable[Source], extra: Iterable[Implementation] = (), elsewhere: Iterable[Defined] = ()
) -> list[ImplementedOperator]:
    """The operators of a tree, behind them those whose schema stands `elsewhere`. A schema that torch would not parse
    is left to `check`."""
    defined: list[Defined] = []
    bound: dict[str, list[Implementation]] = defaultdict(list)
    for implementation in extra:
        bound[implementation.op].append(implementation)
    for source in sources:
        for implementation in source.implementations:
            bound[implementation.op.strip()].append(implementation)
        defined += [Defined(r.location, r.namespace, r.schema) for r in source.registrations]
    found: list[ImplementedOperator] = []
    for one in (*defined, *elsewhere):
        try:
            schema = parse(one.text.text)
        except SchemaError:  # `check` tells of it
            continue
        namespace = schema.namespace or one.namespace
        same = [i for i in bound.get(schema.op, ()) if namespace is None or i.namespace in (None, namespace)]
        near = nearby(same, one.location.path)
        fakes = tuple(i for i in near if i.key in ("Meta", "Fake"))
        rest = tuple(i for i in near if i not in fakes)
        found.append(ImplementedOperator(one.location, namespace, schema, one.text, rest, fakes))
    return found


def nearby(found: list[Implementation], path: str) -> list[Implementation]:
    """Those in the smallest folder around the schema that holds a real one: trees keep copies of each other."""
    folder = path.rpartition("/")[0]
    while True:
        inside = [i for i in found if i.location.path.startswith(folder.rstrip("/") + "/")]
        if any(not NOT_REAL.search(i.key) for i in inside) or folder in ("", "/", "."):
            return inside or found
        folder = folder.rpartition("/")[0]


def through_macros(source: bytes, path: str, macros: dict[str, Macro]) -> list[Implementation]:
    """Implementations bound by a macro of the tree, as in `DISPATCH_TO_CUDA("name", function)`."""
    names = [name for name in macros if name.encode() in source]
    if not names:
        return []
    text = mask(source)[0]
    raw = source.decode("latin-1")
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, names))})\s*\(")
    found = []
    for use in pattern.finditer(text):
        end = closing(text, use.end() - 1)
        if end < 0:
            continue
        body = substitute(macros[use[1]], [part.strip() for part in split(raw[use.end() : end])])
        call = IMPL_CALL.search(body)
        if not call:
            continue
        own, _, name = call[2].rpartition("::")
        function = body[call.end() : closing(body, call.start(1))]
        key = KEY.search(function)
        where = Location.at(path, source, use.start())
        kind = (key[1] or key[2]) if key else ""
        found.append(Implementation(name, own or None, where, Span(use.start(), end), "function", function, kind))
    return found
