"""Old and new bytes of a file -> a unified diff that `patch` and `git apply` take."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from difflib import diff_bytes, unified_diff

ESCAPES = {b"\n": b"\\n", b"\t": b"\\t", b"\r": b"\\r", b'"': b'\\"', b"\\": b"\\\\"}


def unified(before: bytes, after: bytes, name: str) -> bytes:
    """The diff, in bytes, whatever the encoding; lines end at line feeds alone, as they do for `patch`."""
    old, new = (re.findall(rb"[^\n]*\n|[^\n]+", data) for data in (before, after))
    path = name.encode("utf-8", "surrogateescape")
    lines = diff_bytes(unified_diff, old, new, quoted(b"a/" + path), quoted(b"b/" + path))
    return b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines)


def pieces(texts: Iterable[tuple[str, str]], name: str) -> bytes:
    """Texts in a binary file, before and after, in the look of a diff; no program takes it."""
    path = quoted(name.encode("utf-8", "surrogateescape"))
    rows = [f"@@\n-{' '.join(old.split())}\n+{' '.join(new.split())}\n".encode() for old, new in texts]
    return b"".join([b"--- a/" + path + b"\n+++ b/" + path + b"\n", *rows])


def shown(path: str, root: str) -> str:
    """The name of a file in a diff: from the working directory where it lies there, else from the tree that was named,
    in which the diff then is to be applied."""
    real = os.path.abspath(path)
    here = os.getcwd()
    base = here if real.startswith(here.rstrip(os.sep) + os.sep) else os.path.abspath(root)
    if base == real or not os.path.isdir(base):
        base = os.path.dirname(base)
    return os.path.relpath(real, base)


def quoted(name: bytes) -> bytes:
    """As git writes a name: in quotes with escapes where it must, with a tab behind it where it holds a space."""
    if not re.search(rb'[\x00-\x1f\x7f"\\]', name):
        return name + b"\t" if b" " in name else name
    return b'"' + re.sub(rb'[\x00-\x1f\x7f"\\]', lambda m: ESCAPES.get(m[0]) or b"\\%03o" % ord(m[0]), name) + b'"'
