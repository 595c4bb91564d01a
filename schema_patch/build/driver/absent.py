"""Functions of a torch with XPU, for a library that is built beside a torch without it.

Such a library could not be loaded: torch loads it with all symbols resolved at once. So each function of XPU that it
calls is defined in it, and throws: the library loads, its operators are registered, and what needs a card says that it
was not built for one. Beside a torch with XPU nothing is defined.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping

from . import objects

VARIABLE = "SCHEMA_PATCH_WITHOUT_XPU"  # set by home.py
FUNCTIONS = re.compile(r"_ZNK?(?:3c10|2at)3xpu\d")
SYMBOL = struct.Struct("<IBBHQQ")
SOURCE = """\
#include <stdexcept>
#include <string>

[[noreturn, gnu::noinline]] static void absent(const char* name) {{
  throw std::runtime_error(std::string(name) + " {why}");
}}
{functions}"""
FUNCTION = """\
extern "C" [[gnu::weak]] void absent_{index}() __asm__("{name}");
extern "C" void absent_{index}() {{ absent("{told}"); }}
"""
WHY = "is not there: this library was built beside a torch without XPU; built beside one with XPU it runs on a card"


def source(paths: Iterable[str]) -> str:
    """C++ that defines what the objects call of XPU; empty where they call nothing."""
    names = sorted({name for path in paths for name in undefined(path) if FUNCTIONS.match(name)})
    return throwing({name: name for name in names}, WHY) if names else ""


def throwing(names: Mapping[str, str], why: str) -> str:
    """C++ that defines functions by their symbols; called, each throws how it is spelled and why it is not there."""
    rows = enumerate(names.items())
    functions = "".join(FUNCTION.format(index=index, name=name, told=told) for index, (name, told) in rows)
    return SOURCE.format(functions=functions, why=why)


def undefined(path: str) -> Iterator[str]:
    """The symbols that an object file needs from others."""
    if not path.endswith(".o"):
        return
    with open(path, "rb") as file:
        parts = dict(objects.sections(file.read(), path))
    table, names = parts.get(".symtab", b""), parts.get(".strtab", b"")
    for name, _, _, section, _, _ in SYMBOL.iter_unpack(table):
        if not section and name:
            yield names[name : names.find(b"\0", name)].decode("ascii", "replace")
