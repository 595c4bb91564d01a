"""Schema texts of known operators wherever they stand in a C++ file; what no registration was read from is a stray.

Libraries register in more ways than cpp.py reads: through macros of their own, constants, loops, older interfaces. The
text of the schema is in the file all the same, and must not go unseen. Knows names and bytes, no C++.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache

from schema_patch.model import Span

# Between the pieces of a literal that is cut anywhere.
GAP = rb"(?:[\s\"\\])*"


@cache
def _pattern(names: frozenset[str]) -> re.Pattern[bytes]:
    known = b"|".join(re.escape(name.encode()) for name in sorted(names, key=len, reverse=True))
    return re.compile(rb'["(]\s*(?:\w+::)?(' + known + rb")" + GAP + rb"\(" + GAP + rb"Tensor\b")


def find(source: bytes, names: Collection[str]) -> list[tuple[int, str]]:
    """Where a literal seems to begin the schema of one of these operators: offset of the name, and the name."""
    if not any(name.encode() in source for name in names):
        return []
    return [(match.start(1), match[1].decode()) for match in _pattern(frozenset(names)).finditer(source)]


def left_over(found: Iterable[tuple[int, str]], read: Collection[int], inert: Iterable[Span]) -> list[tuple[int, str]]:
    """The finds outside `inert` at which nothing was read; `read` holds the offsets of characters that were."""
    hidden = tuple(inert)
    return [
        (at, name) for at, name in found if at not in read and not any(span.start <= at < span.end for span in hidden)
    ]
