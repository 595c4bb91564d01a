"""What a shared library on disk says: path -> ElfFacts. The only door to lief, which is imported at the first read.

Knows where a compiler leaves the strings of a program. Does not know which operators exist, what is right, or where
libraries are found. Nothing is loaded or run. lief takes a file cut to 64 bytes for a good one, so that layout.py first
proves the file whole.

What the file cannot tell: linkers merge the tails of strings. Where `my_gemv(Tensor x) -> Tensor` is stored, no second
string is stored for `gemv(Tensor x) -> Tensor`, and only the longer one is seen.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from . import inlined
from .layout import MAGIC, X86_64, ForeignElf, Layout, Part, broken, prove_whole
from .model import ToolError
from .schema import Schema, SchemaError, parse

__all__ = ["ElfFacts", "ForeignElf", "FoundSchema", "read"]

# A symbol of torch that every library needs whose code hands over the text of a schema as a std::string.
REGISTERS = b"parseSchema"

NOT_ASCII = re.compile(rb"[^\t\n\r -~]")
CONTROL = re.compile(r"[^\t\n\r -\uffff]|\x7f")
OPENING = re.compile(r"(?:[A-Za-z_]\w*::)?[A-Za-z_]\w*(?:\.\w+)?\s*\(")


@dataclass(frozen=True, slots=True)
class FoundSchema:
    """An operator schema in a library: its text as stored, parsed, and the section that holds it, or the code."""

    text: str
    schema: Schema
    section: str


@dataclass(frozen=True, slots=True)
class ElfFacts:
    """What one library says of itself. `runpath` is empty where it has none; `stripped`: it has no symbol table."""

    path: str
    machine: str
    size: int
    needed: tuple[str, ...]
    runpath: str
    stripped: bool
    schemas: tuple[FoundSchema, ...]


def read(path: str | os.PathLike[str], name: str | None = None) -> ElfFacts:
    """Reads a library; `name` is what messages and facts call it. Raises ToolError where the file is not whole."""
    where = name or os.fspath(path)
    try:
        with _mapped(path, where) as data:
            layout = prove_whole(data, where)
            schemas = {schema.text: schema for schema in _schemas(data, layout)}
            size = len(data)
        needed, runpath = _dynamic(path, where)
    except OSError as error:
        raise ToolError(f"cannot be read: {error.strerror}", where) from error
    return ElfFacts(where, layout.machine, size, needed, runpath, layout.stripped, tuple(schemas.values()))


@contextmanager
def _mapped(path: str | os.PathLike[str], where: str) -> Iterator[mmap.mmap]:
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ToolError("expected an ELF file, found something that is not a regular file", where)
    with open(path, "rb") as file:
        start = file.read(len(MAGIC))
        if start != MAGIC:
            raise ToolError(f"expected an ELF file, found one that begins with {start!r}", where)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data


def _schemas(data: mmap.mmap, layout: Layout) -> Iterator[FoundSchema]:
    for raw, section in _strings(data, layout):
        if b"->" not in raw or b"(" not in raw:
            continue
        text = _text(raw)
        try:
            yield FoundSchema(text, parse(text), section)
        except SchemaError:
            continue


def _strings(data: mmap.mmap, layout: Layout) -> Iterator[tuple[bytes, str]]:
    """Strings that may be schemas: those stored, then those that code builds."""
    for part in layout.literals:
        for raw in _with_arrow(data, part):
            yield raw, part.name
    if layout.machine == X86_64 and data.find(REGISTERS) >= 0:
        load = partial(layout.constant, data)
        for part in layout.code:
            for raw in inlined.strings(data, part.start, part.end, part.address, load):
                yield raw, "code"


def _with_arrow(data: mmap.mmap, part: Part) -> Iterator[bytes]:
    """Every NUL-terminated string with `->` in it. Searches, rather than splits: a library can have 300 MB."""
    at = part.start
    while (arrow := data.find(b"->", at, part.end)) >= 0:
        end = data.find(b"\0", arrow, part.end)
        if end < 0:
            return
        yield data[data.rfind(b"\0", at, arrow) + 1 or at : end]
        at = end + 1


def _text(raw: bytes) -> str:
    """The text of a string, without the bytes of a number that stands right before it.

    Constants lie beside strings with no NUL between: 1.0f is 00 00 80 3f, so that its string seems to begin with 80 3f
    ('?'). What stands before the operator's name is such a number if it is no text at all, or ends as floats of
    ordinary size do ('?' and '@'). Anything else is prose around a schema, which is no schema.
    """
    last = NOT_ASCII.split(raw)[-1].decode("ascii")
    name = OPENING.search(last)
    if not name:
        return last
    prefix = last[: name.start()]
    number = _is_no_text(raw) or prefix.endswith(("?", "@"))
    if number and not re.search(r"\s", prefix):
        return last[name.start() :]
    return last if len(last) == len(raw) else ""


def _is_no_text(raw: bytes) -> bool:
    try:
        return bool(CONTROL.search(raw.decode("utf-8")))
    except UnicodeDecodeError:
        return True


def _dynamic(path: str | os.PathLike[str], where: str) -> tuple[tuple[str, ...], str]:
    """The libraries needed, in order, and the run path, as lief reads them."""
    import lief

    lief.logging.disable()  # it writes to stderr
    config = lief.ELF.ParserConfig()
    for option in ("dyn_symbols", "symtab_symbols", "symbol_versions", "relocations", "notes", "overlay"):
        setattr(config, f"parse_{option}", False)
    binary = lief.ELF.parse(os.fspath(path), config)
    if binary is None:
        raise broken("headers that lief reads", "none", where)
    needed: list[str] = []
    runpath = ""
    for entry in binary.dynamic_entries:
        if isinstance(entry, lief.ELF.DynamicEntryLibrary):
            needed.append(_printable(entry.name, where))
        elif isinstance(entry, lief.ELF.DynamicEntryRunPath):
            runpath = _printable(entry.runpath, where)
        elif isinstance(entry, lief.ELF.DynamicEntryRpath) and not runpath:
            runpath = _printable(entry.rpath, where)
    return tuple(needed), runpath


def _printable(name: str | bytes, where: str) -> str:
    """lief gives bytes, or nothing, where a name lies outside of its table."""
    if isinstance(name, bytes) or not name.isprintable() or not name:
        raise broken("the name of a library or a path in the dynamic section", repr(name), where)
    return name
