"""What earlier runs read and concluded, kept in the user's cache folder: one file a tree. Silent where it cannot write.

Knows a file by its path and content, and what was inferred of an operator by how it is registered; whoever asks judges
which of that still holds.
"""

from __future__ import annotations

import hashlib
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

import schema_patch
from schema_patch.cpp.registered import Source
from schema_patch.model import ToolError
from schema_patch.schemas.inferred import Inferred
from schema_patch.text import files

from .scan import FileIndex


@dataclass(frozen=True, slots=True)
class ReadFile:
    """One file: a digest of it, what it defines and what it registers."""

    digest: str
    index: FileIndex
    source: Source | None


class Kept(msgspec.Struct):
    """Files by their path, what macros define in them, and of operators by a digest of their registration what was
    inferred and which names were looked up for that."""

    files: dict[str, ReadFile] = {}
    made: dict[str, FileIndex] = {}
    results: dict[str, tuple[Inferred, bytes]] = {}


@cache
def version() -> str:
    """Changes with any line of the package and its tables: what an older version concluded is not believed."""
    digest = hashlib.blake2b(digest_size=12)
    package = Path(schema_patch.__file__).parent
    for file in sorted(package.rglob("*")):
        if file.suffix in (".py", ".toml"):
            digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest() + f"-{sys.version_info[0]}.{sys.version_info[1]}"


class Store:
    """The file of one tree."""

    def __init__(self, name: str, on: bool) -> None:
        tag = hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
        self.path = files.cache_home() / "schema-kit" / "audit" / f"{tag}-{version()}.msgpack" if on else None
        self.kept = Kept()
        if self.path and self.path.is_file():
            with suppress(OSError, msgspec.MsgspecError):  # a file that is cut is a file that is not there
                self.kept = msgspec.msgpack.decode(self.path.read_bytes(), type=Kept)

    def save(self, kept: Kept) -> None:
        """Writes what is known now, whole or not at all."""
        if self.path is None:
            return
        with suppress(OSError, ToolError, ValueError):  # ValueError: a path that is no UTF-8
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            files.write(self.path, msgspec.msgpack.encode(kept))
            tag = self.path.name.partition("-")[0]
            for old in self.path.parent.glob(f"{tag}-*"):
                if old != self.path:
                    old.unlink()
