"""What a compiler said of a source -> in a line, what the source lacks. Knows the messages of g++ and clang++."""

from __future__ import annotations

import os
import re
from pathlib import Path

_ERROR = re.compile(r"^(.+?):(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.MULTILINE)
_HEADER = re.compile(r"(?P<gcc>\S+): No such file or directory|'(?P<clang>[^']+)' file not found")
_QUOTES = str.maketrans("‘’", "''")


def line(said: str, tree: Path) -> str:
    """The first error at its place in the tree, and how many follow; of a missing header, its name."""
    errors = _ERROR.findall(said)
    if not errors:
        return said.strip().partition("\n")[0] or "the compiler ended and said nothing: most likely for want of memory"
    path, number, message = errors[0]
    inside = os.path.relpath(path, tree) if os.path.isabs(path) else path
    where = f"{path if inside.startswith('..') else inside}:{number}"
    if header := _HEADER.fullmatch(message):
        return (
            f"{where}: needs the header {header['gcc'] or header['clang']}, which is neither in the tree nor below -I"
        )
    more = f" (and {len(errors) - 1} more errors)" if len(errors) > 1 else ""
    return f"{where}: {message.translate(_QUOTES)}{more}"
