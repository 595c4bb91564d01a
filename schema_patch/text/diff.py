"""Old and new bytes of a file -> a unified diff that `patch` takes. Pure."""

from __future__ import annotations

import re
from difflib import diff_bytes, unified_diff


def unified(before: bytes, after: bytes, name: str) -> bytes:
    """The diff, in bytes, whatever the encoding; lines end at line feeds alone, as they do for `patch`."""
    old, new = (re.findall(rb"[^\n]*\n|[^\n]+", data) for data in (before, after))
    path = name.encode("utf-8", "surrogateescape")
    lines = diff_bytes(unified_diff, old, new, b"a/" + path, b"b/" + path)
    return b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines)
