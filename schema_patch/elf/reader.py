"""What a shared library on disk says: path -> ElfFacts.

Knows that a library says what it registers in the code that calls torch's registration (evidence). Does not know
which operators exist, what is right, or where libraries are found. Nothing is loaded or run. layout.py proves the file
whole before anything in it is believed; the file is mapped, and what was read is given back, so that a large one takes
no more memory than a small one.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from schema_patch.model import ToolError
from schema_patch.schemas.grammar import Schema, SchemaError, parse
from schema_patch.text.collector import without_collector

from . import devices, dynamic
from . import names as titles
from .devices import DeviceCode
from .dynamic import Dynamic, Symbol
from .layout import MAGIC, X86_64, Bytes, ForeignElf, Layout, holds, prove_whole

if TYPE_CHECKING:
    from .evidence.registrations import ReadRegistration

    Follow = Callable[[Bytes, Layout, Dynamic, str], list[ReadRegistration]]

__all__ = ["ElfFacts", "ForeignElf", "FoundSchema", "Named", "Unread", "names_any", "read"]

# What a library needs of torch to register an operator. (A search from behind takes a third of the time.)
REGISTERS = (b"5torch7Library", b"17RegisterOperators", b"11registerDef", b"16registerOperator", b"torch_library_")
# What a packer leaves instead of the program: its code is not in the file.
PACKED = b"UPX!"
NAME = re.compile(r"\s*[\w:.]+\s*")


@dataclass(frozen=True, slots=True)
class FoundSchema:
    """An operator schema that a library registers: its text as torch is given it, parsed.

    `namespace`: the one that it is registered in; empty where that is not known.
    """

    text: str
    schema: Schema
    namespace: str = ""

    @property
    def space(self) -> str:
        """The namespace that its text has, or else the one that it is registered in."""
        return self.schema.namespace or self.namespace

    @property
    def line(self) -> str:
        """Its text in one line."""
        return " ".join(self.text.split())


@dataclass(frozen=True, slots=True)
class Named:
    """An operator that is registered by its name alone: torch infers a schema, which declares no write."""

    name: str
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Unread:
    """A registration of which it is not known what is registered. `function`: where; `known`: how the text begins.

    `why`: what stood in the way; `damaged`: all of the text is known, and it is no schema.
    """

    function: str
    namespace: str = ""
    known: str = ""
    why: str = ""
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class ElfFacts:
    """What one library says of itself. `runpath` is empty where it has none; `stripped`: it has no symbol table.

    `abi`: what of torch and C++ it was built against. `symbols`: what it exports, if asked for. `differences`: what a
    second reader sees otherwise, if asked; `read_once`: it was asked, and the file is too large for it. `relies`: names
    by which it finds what its registrations are made with; `exports`: names that it gives to others.
    """

    path: str
    machine: str
    size: int
    needed: tuple[str, ...]
    runpath: str
    stripped: bool
    schemas: tuple[FoundSchema, ...]
    soname: str = ""
    versions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    device: DeviceCode = field(default_factory=DeviceCode)
    named: tuple[Named, ...] = ()
    unread: tuple[Unread, ...] = ()
    abi: tuple[str, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    differences: tuple[str, ...] = ()
    read_once: bool = False
    relies: frozenset[str] = frozenset()
    exports: tuple[bytes, ...] = ()

    @property
    def registers(self) -> bool:
        """Whether it registers operators, known ones or not."""
        return bool(self.schemas or self.named or self.unread)


@without_collector()
def read(
    path: str | os.PathLike[str],
    name: str | None = None,
    *,
    deep: bool = False,
    linked: bool = False,
    follow: Follow | None = None,
) -> ElfFacts:
    """Reads a library; `name` is what messages and facts call it. Raises ToolError where the file is not whole.

    `deep`: the exported symbols and a hash of each kernel too. `linked`: nothing but what it needs and is called.
    `follow`: finds the registrations in the place of registrations.read.
    """
    where = name or os.fspath(path)
    try:
        with mapped(path, where) as data:
            layout = prove_whole(data, where)
            dyn = dynamic.read(data, layout, where)
            facts = ElfFacts(
                where, layout.machine, len(data), dyn.needed, dyn.runpath, layout.stripped, (), dyn.soname, dyn.versions
            )
            return facts if linked else _whole(data, layout, dyn, facts, deep, follow)
    except OSError as error:
        raise ToolError(f"cannot be read: {error.strerror}", where) from error


def names_any(path: str | os.PathLike[str], words: Collection[bytes]) -> bool:
    """Whether some words stand anywhere in an ELF file. Raises ToolError for any other."""
    with mapped(path, os.fspath(path)) as data:
        return any(holds(data, word) for word in words)


def _whole(data: Bytes, layout: Layout, dyn: Dynamic, facts: ElfFacts, deep: bool, follow: Follow | None) -> ElfFacts:
    where = facts.path
    if not layout.sections and data.find(PACKED, 0, 4096) >= 0:
        raise ToolError("expected a library, found one packed by UPX: its code cannot be read; unpack it", where)
    names, rows = dynamic.exported(data, layout, dyn, where)
    return replace(
        _registered(data, layout, dyn, facts, names, follow),
        device=devices.read(data, layout, dyn, where, hashes=deep),
        abi=tuple(_abi(names, dyn)),
        symbols=tuple(dynamic.symbols(data, layout, dyn, where)) if deep else (),
        exports=tuple([names[at : names.find(b"\0", at)] for at, _, _ in rows]),
    )


def _registered(
    data: Bytes, layout: Layout, dyn: Dynamic, facts: ElfFacts, names: bytes, follow: Follow | None
) -> ElfFacts:
    """The facts with what the library registers. Loads the decoder only for a library that registers at all."""
    if dyn.program or not any(names.rfind(name) >= 0 for name in REGISTERS):
        return facts
    if layout.machine != X86_64:
        return replace(facts, unread=(Unread("its code", why=f"code of {layout.machine} is not followed"),))
    from .evidence import registrations

    rows = (follow or registrations.read)(data, layout, dyn, facts.path)
    functions = titles.of(data, layout, {row.entry for row in rows})
    relies = frozenset(name for row in rows for name in row.relies)
    schemas: dict[FoundSchema, None] = {}
    named: dict[Named, None] = {}
    unread: dict[Unread, None] = {}
    for row in rows:
        title, space = titled(row, functions)
        found = _text(row, space)
        if isinstance(found, FoundSchema):
            schemas[found] = None
        elif isinstance(found, Named):
            named[found] = None
        else:
            damaged = row.text is not None
            unread[Unread(title, space, row.text or row.known, row.why, damaged)] = None
    return replace(facts, schemas=tuple(schemas), named=tuple(named), unread=tuple(unread), relies=relies)


def titled(row: ReadRegistration, functions: Mapping[int, str]) -> tuple[str, str]:
    """What the function of a registration is called, and the namespace; `functions`: their names, by address."""
    function = functions.get(row.entry, "")
    return titles.title(function) or f"the function at {row.entry:#x}", row.space or titles.space(function)


def _text(row: ReadRegistration, space: str) -> FoundSchema | Named | None:
    """What a registration says; None where that is not known, or no schema."""
    if row.text is None or not row.text.isascii():
        return None
    alone = NAME.fullmatch(row.text)
    try:
        schema = parse(f"{row.text}() -> ()" if alone else row.text)
    except SchemaError:
        return None
    if not alone:
        return FoundSchema(row.text, schema, space)
    prefix, _, name = row.text.strip().rpartition("::")
    return Named(name, prefix or space)


@contextmanager
def mapped(path: str | os.PathLike[str], where: str) -> Iterator[mmap.mmap]:
    """The bytes of an ELF file, mapped. Raises ToolError where it is none."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ToolError("expected an ELF file, found something that is not a regular file", where)
    with open(path, "rb") as file:
        start = file.read(len(MAGIC))
        if start != MAGIC:
            raise ToolError(f"expected an ELF file, found one that begins with {start!r}", where)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data


def _abi(names: bytes, dyn: Dynamic) -> Iterator[str]:
    """What the names of its dynamic symbols and the versions it needs give away."""
    if b"aoti_torch_" in names or b"torch_library_" in names:
        yield "torch stable ABI"
    if b"N3c10" in names or b"N2at" in names or b"N5torch" in names:
        yield "torch C++ ABI"
        yield f"_GLIBCXX_USE_CXX11_ABI={int(b'7__cxx11' in names)}"
    for prefix in ("GLIBC_", "GLIBCXX_", "CXXABI_"):
        found = [v.removeprefix(prefix) for _, needed in dyn.versions for v in needed if v.startswith(prefix)]
        numbers = [tuple(map(int, v.split("."))) for v in found if re.fullmatch(r"\d+(\.\d+)*", v)]
        if numbers:
            yield prefix + ".".join(map(str, max(numbers)))
