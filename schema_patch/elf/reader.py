"""What a shared library on disk says: path -> ElfFacts.

Knows where a compiler leaves the strings of a program. Does not know which operators exist, what is right, or where
libraries are found. Nothing is loaded or run. layout.py proves the file whole before anything in it is believed; the
file is mapped, and what was read is given back, so that a large one takes no more memory than a small one.

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
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from schema_patch.model import ToolError
from schema_patch.schemas.grammar import Schema, SchemaError, parse

from . import devices, dynamic, inlined, namespaces
from .devices import DeviceCode
from .dynamic import Dynamic, Symbol
from .layout import MAGIC, X86_64, Bytes, ForeignElf, Layout, Part, prove_whole, release

__all__ = ["Damaged", "ElfFacts", "ForeignElf", "FoundSchema", "read"]

# A symbol of torch that every library needs whose code hands over the text of a schema as a std::string.
REGISTERS = b"parseSchema"
CODE = "code"

# What a packer leaves instead of the program: its strings are not in the file.
PACKED = b"UPX!"

# Each is in every schema worth a look, and no turned bit takes both away.
NEEDLES = (b"->", b"(Tensor")
NOT_ASCII = re.compile(rb"[^\t\n\r -~]")
CONTROL = re.compile(r"[^\t\n\r -\uffff]|\x7f")
OPENING = re.compile(r"(?:[A-Za-z_]\w*::)?[A-Za-z_]\w*(?:\.\w+)?\s*\(")
LONGEST = 4096  # a string of a schema; the longest published has 1,100
WINDOW = 1 << 22


@dataclass(frozen=True, slots=True)
class FoundSchema:
    """An operator schema in a library: its text as stored, parsed, and the section that holds it, or the code.

    `namespace`: of the TORCH_LIBRARY block that registers it, where symbols tell.
    """

    text: str
    schema: Schema
    section: str
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A string with `Tensor` in it that is no schema; `partly`: code builds it in ways not understood after this."""

    text: str
    partly: bool = False


class _String(NamedTuple):
    """Bytes that may be a schema, where they are, and whether all of them are known."""

    raw: bytes
    at: int
    section: str
    whole: bool


@dataclass(frozen=True, slots=True)
class ElfFacts:
    """What one library says of itself. `runpath` is empty where it has none; `stripped`: it has no symbol table.

    `unread`: how many more calls take the text of a schema than were found. `abi`: what of torch and C++ it was built
    against. `symbols`: what it exports, if asked for.
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
    damaged: tuple[Damaged, ...] = ()
    unread: int = 0
    abi: tuple[str, ...] = ()
    symbols: tuple[Symbol, ...] = ()


def read(
    path: str | os.PathLike[str], name: str | None = None, *, deep: bool = False, linked: bool = False
) -> ElfFacts:
    """Reads a library; `name` is what messages and facts call it. Raises ToolError where the file is not whole.

    `deep`: the exported symbols and a hash of each kernel too. `linked`: nothing but what it needs and is called.
    """
    where = name or os.fspath(path)
    try:
        with _mapped(path, where) as data:
            layout = prove_whole(data, where)
            dyn = dynamic.read(data, layout, where)
            facts = ElfFacts(
                where, layout.machine, len(data), dyn.needed, dyn.runpath, layout.stripped, (), dyn.soname, dyn.versions
            )
            return facts if linked else _whole(data, layout, dyn, facts, deep)
    except OSError as error:
        raise ToolError(f"cannot be read: {error.strerror}", where) from error


def _whole(data: Bytes, layout: Layout, dyn: Dynamic, facts: ElfFacts, deep: bool) -> ElfFacts:
    where = facts.path
    if not layout.sections and data.find(PACKED, 0, 4096) >= 0:
        raise ToolError("expected a library, found one packed by UPX: its strings cannot be read; unpack it", where)
    found: list[tuple[int, FoundSchema]] = []
    damaged: dict[str, Damaged] = {}
    built, calls = _built(data, layout, dyn, where)
    for raw, at, section, whole in (*_stored(data, layout), *built):
        text = _text(raw)
        try:
            if whole:
                found.append((at + len(raw) - len(text), FoundSchema(text, parse(text), section)))
        except SchemaError:
            whole = False
        if not whole and b"Tensor" in raw and len(raw) < LONGEST:
            text = raw.decode("latin-1")  # a character for each byte
            damaged[text] = Damaged(text, section == CODE)
    spaces = namespaces.told(
        namespaces.read(data, layout),
        data,
        layout,
        [at for at, schema in found if schema.section != CODE],
        [at for at, schema in found if schema.section == CODE],
    )
    schemas = {(spaces.get(at, ""), schema.text): replace(schema, namespace=spaces.get(at, "")) for at, schema in found}
    symbols = tuple(dynamic.symbols(data, layout, dyn, where)) if deep else ()
    return replace(
        facts,
        schemas=tuple(schemas.values()),
        device=devices.read(data, layout, dyn, where, hashes=deep),
        unread=max(0, calls - len(found)) if calls > 1 else 0,
        damaged=tuple(d for d in damaged.values() if not (d.partly and any(s.startswith(d.text) for _, s in schemas))),
        abi=tuple(_abi(data, dyn)),
        symbols=tuple(symbol for symbol in symbols if symbol.value),
    )


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


def _stored(data: Bytes, layout: Layout) -> Iterator[_String]:
    for part in layout.literals:
        for raw, at in _with_needle(data, part):
            yield _String(raw, at, part.name, True)


def _built(data: Bytes, layout: Layout, dyn: Dynamic, where: str) -> tuple[list[_String], int]:
    """The strings that code builds, and how many calls hand one over."""
    found: list[_String] = []
    count = 0
    if layout.machine == X86_64 and dyn.mentions(data, REGISTERS):
        load = partial(layout.constant, data)
        slots, own = dynamic.slots(data, layout, dyn, REGISTERS.decode(), where)
        for part in layout.code:
            calls = list(inlined.calls(data, part.start, part.end, part.address, slots, own))
            count += len(calls)
            strings = inlined.strings(data, part.start, part.end, part.address, load, calls)
            found += [_String(raw, at, CODE, whole) for raw, at, whole in strings]
            release(data, part.start, part.end)
    return found, count


def _with_needle(data: Bytes, part: Part) -> Iterator[tuple[bytes, int]]:
    """Every NUL-terminated string with a needle in it. Searches, rather than splits: a library can have 300 MB."""
    seen: set[int] = set()
    for first in range(part.start, part.end, WINDOW):
        base = max(part.start, first - LONGEST)
        window = data[base : min(first + WINDOW + LONGEST, part.end)]
        for needle in NEEDLES:
            at = first - base
            while (at := window.find(needle, at, first - base + WINDOW + len(needle) - 1)) >= 0:
                begin, end = window.rfind(b"\0", 0, at) + 1, window.find(b"\0", at)
                if end < 0:
                    break
                if base + begin not in seen and b"(" in window[begin:end]:
                    seen.add(base + begin)
                    yield window[begin:end], base + begin
                at = end + 1
        release(data, base, base + len(window))


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


def _abi(data: Bytes, dyn: Dynamic) -> Iterator[str]:
    """What the names of its dynamic symbols and the versions it needs give away."""
    if dyn.mentions(data, b"aoti_torch_") or dyn.mentions(data, b"torch_library_"):
        yield "torch stable ABI"
    if dyn.mentions(data, b"N3c10") or dyn.mentions(data, b"N2at") or dyn.mentions(data, b"N5torch"):
        yield "torch C++ ABI"
        yield f"_GLIBCXX_USE_CXX11_ABI={int(dyn.mentions(data, b'7__cxx11'))}"
    for prefix in ("GLIBC_", "GLIBCXX_", "CXXABI_"):
        found = [v.removeprefix(prefix) for _, names in dyn.versions for v in names if v.startswith(prefix)]
        numbers = [tuple(map(int, v.split("."))) for v in found if re.fullmatch(r"\d+(\.\d+)*", v)]
        if numbers:
            yield prefix + ".".join(map(str, max(numbers)))
