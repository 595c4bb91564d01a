"""Which bytes of a C++ file need a parse: not what `#if 0` takes away, and of a huge file only what may register.

Works on bytes and knows no syntax; what is left out becomes blanks, so that every offset and line stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from schema_patch.model import Span

LARGE = 4_000_000  # bytes; a parse takes eighty times as much memory as the file
DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b[ \t]*([^\n]*)", re.MULTILINE)
OFF = re.compile(rb"(?:0|false)[ \t]*(?://.*|/\*.*)?\r?")
STARTS = re.compile(rb"LIBRARY|\bLibrary\s*&|RegisterOperators|PYBIND11_MODULE")
INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include\b[^\n]*", re.MULTILINE)
LONGEST = 1_000_000  # bytes of a block that does not end
BLANKS = bytes(byte if byte in b"\r\n" else 32 for byte in range(256))


def dead(source: bytes) -> Iterator[Span]:
    """What stands between `#if 0` and its `#else` or `#endif`."""
    if not re.search(rb"#[ \t]*if[ \t]+(?:0|false)\b", source):
        return
    depth, since = 0, -1  # how deep within the dead region, and where it began
    for match in DIRECTIVE.finditer(source):
        word = match[1]
        if since < 0:
            if word == b"if" and OFF.fullmatch(match[2]):
                depth, since = 1, match.end()
        elif word in (b"if", b"ifdef", b"ifndef"):
            depth += 1
        elif depth == 1 and word in (b"else", b"elif", b"endif"):
            yield Span(since, match.start())
            since = -1
        elif word == b"endif":
            depth -= 1


def registering(source: bytes) -> bytes:
    """The file with all blanked but the blocks that may register operators, and the includes."""
    kept = bytearray(source.translate(BLANKS))
    for match in INCLUDE.finditer(source):
        kept[match.start() : match.end()] = match.group()
    at = 0
    for match in STARTS.finditer(source):
        if match.start() < at:
            continue
        start = source.rfind(b"\n", 0, match.start()) + 1
        end = source.find(b"\n}", match.end(), match.end() + LONGEST)
        at = end + 2 if end >= 0 else min(match.end() + LONGEST, len(source))
        kept[start:at] = source[start:at]
    return bytes(kept)
