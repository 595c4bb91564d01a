"""What is a library, a wheel, or a place where packages are installed: told by names and first bytes."""

from __future__ import annotations

import os
import re
from pathlib import Path

from schema_patch.text import files

MAGIC = b"\x7fELF"
ZIP = b"PK\x03\x04"
ZSTD, GZIP = b"\x28\xb5\x2f\xfd", b"\x1f\x8b"
COMPRESSED = (GZIP, b"BZh", b"\xfd7zXZ\x00", ZSTD)
SHARED = re.compile(r"\.so(\.[0-9]+)*$")  # foo.cpython-311-x86_64-linux-gnu.so, libx.so.8
# x.so.old is one if its content says so; debug files hold no strings, and what a killed process left is no library
MAYBE_SHARED = re.compile(r"(?s)^(?!(.*/)?\..*\.tmp$).*\.so(?!.*\.debug$)")
# What is never looked into for a library; anything else may be one, that a program loads by its path.
SOURCES = (".py", ".pyc", ".pyi", ".h", ".hpp", ".cuh", ".txt", ".json", ".md", ".html", ".js", ".css", ".yaml")
SITES = frozenset({"site-packages", "dist-packages"})


def is_installed(path: str) -> bool:
    """Whether a path holds what is installed, and no sources: a library, a wheel, a site-packages folder or one inside,
    or a folder with libraries and without any C++."""
    if os.path.isfile(path):
        return os.access(path, os.R_OK) and magic(path) in (MAGIC, ZIP)
    real = Path(os.path.realpath(path))
    if not SITES.isdisjoint((*real.parts, *Path(os.path.abspath(path)).parts)) or next(real.glob("*.dist-info"), None):
        return real.is_dir()
    if any(files.has_suffix(name) for _, _, names in files.walk(path) for name in names):
        return False
    return any(MAYBE_SHARED.search(name) for _, _, names in os.walk(path) for name in names)


def is_archive(start: bytes) -> bool:
    """Whether a file that begins so may be a tar archive; 512 bytes tell."""
    return start.startswith(COMPRESSED) or start[257:262] == b"ustar"


def magic(path: str) -> bytes:
    """The first four bytes of a file."""
    with open(path, "rb") as file:
        return file.read(4)
