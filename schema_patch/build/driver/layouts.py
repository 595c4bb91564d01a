"""The fields of kernel objects, as the front end lays them out and as the host compiler does: both must be the same.

Host code copies a kernel's object byte by byte. Where a macro gives the two sides other fields of the same size, SYCL's
headers, which assert the size, are content, and the kernel reads one thing as another. Both compilers are clang and
dump their records in one form (-fdump-record-layouts). SYCL's own classes differ on purpose and are passed over; so is
a type whose name alone does not say what it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from schema_patch.model import ToolError

from . import integration

DUMP = ("-Xclang", "-fdump-record-layouts")
BEGIN = "*** Dumping AST Record Layout\n"
_ROW = re.compile(r"^ *(\d+)(?::(\d*-\d*))? \| ( *)(.*)$", re.MULTILINE)  # of a bit-field its first and last bit
_LAMBDA = re.compile(r"\(lambda at (?:.*/)?([^/]+:\d+:\d+)\)")
_OF_SYCL = re.compile(r"(?:class|struct|union) sycl::")
_WORDS = re.compile(r"\b(?:class|struct|union|const|volatile) |\(anonymous namespace\)::|^::| (?=>)")
KINDS = {
    name: kind
    for kind, names in {
        "bool": ("bool", "_Bool"),
        "int8": ("char", "signed char", "int8_t", "std::int8_t"),
        "uint8": ("unsigned char", "uint8_t", "std::uint8_t", "std::byte"),
        "int16": ("short", "int16_t", "std::int16_t"),
        "uint16": ("unsigned short", "uint16_t", "std::uint16_t"),
        "int32": ("int", "int32_t", "std::int32_t"),
        "uint32": ("unsigned int", "uint32_t", "std::uint32_t"),
        "int64": ("long", "long long", "int64_t", "std::int64_t", "ptrdiff_t"),
        "uint64": ("unsigned long", "unsigned long long", "uint64_t", "std::uint64_t", "size_t", "std::size_t"),
        "float16": ("_Float16",),
        "float32": ("float",),
        "float64": ("double",),
    }.items()
    for name in names
}

SAID = ("FunctionName", "FileName", "LineNumber", "ColumnNumber")
_ARRAY = re.compile(r"(?:struct|class) std::array<(.*), (\d+)\w*> ")

Fields = tuple[tuple[int, str], ...]  # offset in bits and what lies there, empty where its name does not say
Layouts = dict[str, tuple[Fields, ...]]  # by class; a lambda in a template is as many classes at one place


def classes(header: str) -> frozenset[str]:
    """The classes of the kernels of an integration header: a lambda by its place, another by its name."""
    found = set()
    for block in integration.INFO.findall(header):
        name, file, line, column = (integration.returned(block, f"get{what}") for what in SAID)
        found |= {f"{file}:{line}:{column}", _WORDS.sub("", name)}
    return frozenset(found)


def read(dump: str, wanted: Collection[str]) -> Layouts:
    """The layouts of the classes that are wanted, from what a compiler has dumped."""
    found: dict[str, dict[Fields, None]] = {}
    for block in dump.split(BEGIN)[1:]:
        first = _ROW.match(block)
        title = first[4] if first else ""
        place = _LAMBDA.search(title)
        name = place[1] if place else _WORDS.sub("", title.removesuffix(" (empty)"))
        if name in wanted and (not place or title.endswith(place[0])):
            found.setdefault(name, {})[tuple(_fields(_ROW.findall(block)[1:]))] = None
    return {name: tuple(several) for name, several in found.items()}


def _fields(rows: Sequence[tuple[str, str, str, str]]) -> Iterator[tuple[int, str]]:
    passed = None  # how deep a class stands whose rows, which are below it, say nothing
    for number, (offset, bits, indent, text) in enumerate(rows):
        if passed is not None and len(indent) > passed:
            continue
        array = _ARRAY.match(text)
        passed = len(indent) if array or _OF_SYCL.match(text) else None
        has_rows = number + 1 < len(rows) and len(rows[number + 1][2]) > len(indent)
        if bits == "-" or (passed is None and (has_rows or text.endswith("(empty)"))):
            continue  # holds nothing of its own
        kind = _kind(f"{array[1]}[{array[2]}] " if array else text)
        first, _, last = bits.partition("-")
        width = f" in {int(last) - int(first) + 1} bits" if kind and bits else ""
        yield 8 * int(offset) + int(first or 0), kind + width


def _kind(text: str) -> str:
    """What a field is, from its type and name; the members of a lambda have no names on the host side."""
    written = text if text.endswith(" ") else text.rpartition(" ")[0]
    kind, _, length = _WORDS.sub("", f"{written.strip()} ").strip().partition("[")
    known = "address" if kind.endswith(("*", "&", "(*)")) else KINDS.get(kind.strip(), "")
    return f"{known}[{length}" if known and length else known


def agree(front_end: Layouts, host: Layouts, source: str) -> None:
    """Raises ToolError where an object of the front end's is none of the host compiler's, with its first difference."""
    for name, several in front_end.items():
        others = host.get(name, ())
        for fields in several:
            found = [_difference(fields, other) for other in others]
            if found and all(found):
                raise ToolError(
                    f"kernel object {name}: {found[0]}; what the two sides see of it must not depend on a macro", source
                )


def _difference(ours: Fields, theirs: Fields) -> str:
    device, host = _by_place(ours), _by_place(theirs)
    whole = all(kind for _, kind in (*ours, *theirs))
    for offset in sorted({*device, *host}):
        one, other = device.get(offset, []), host.get(offset, [])
        if one != other and (whole or (one and other and all((*one, *other)))):
            place = f"byte {offset // 8}" + (f", bit {offset % 8}," if offset % 8 else "")
            said = (" or ".join(kinds) or "nothing" for kinds in (one, other))
            return "at {} the front end has {} and the host compiler {}".format(place, *said)
    return ""


def _by_place(fields: Fields) -> dict[int, list[str]]:
    """All kinds that lie at one place: a union has several."""
    found: dict[int, list[str]] = {}
    for offset, kind in fields:
        found.setdefault(offset, []).append(kind)
    return found
