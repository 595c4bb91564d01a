"""Functions of a torch with XPU, for a library that is built beside a torch without it.

Such a library could not be loaded: torch loads it with all symbols resolved at once. So each function of XPU that it
calls is defined in it, and throws: the library loads, its operators are registered, and what needs a card says that it
was not built for one. Beside a torch with XPU nothing is defined.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator

from . import objects

VARIABLE = "SCHEMA_PATCH_WITHOUT_XPU"  # set by home.py
FUNCTIONS = re.compile(r"_ZNK?(?:3c10|2at)3xpu\d")
SYMBOL = struct.Struct("<IBBHQQ")
SOURCE = """\
#include <stdexcept>
#include <string>

[[noreturn, gnu::noinline]] static void absent(const char* name) {{
  throw std::runtime_error(std::string("this library was built beside a torch without XPU, and calls ") + name +
                           ": build it beside a torch with XPU to run it on a card");
}}
{functions}"""
FUNCTION = """\
extern "C" [[gnu::weak]] void absent_{index}() __asm__("{name}");
extern "C" void absent_{index}() {{ absent("{name}"); }}
"""


def source(paths: Iterable[str]) -> str:
    """C++ that defines what the objects call of XPU; empty where they call nothing."""
    names = sorted({name for path in paths for name in undefined(path) if FUNCTIONS.match(name)})
    functions = "".join(FUNCTION.format(index=index, name=name) for index, name in enumerate(names))
    return SOURCE.format(functions=functions) if names else ""


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
