"""Results by what they were made from: a folder of files named by digests. Two builds may write to it at once.

An entry is written whole or not at all, and never changed: who finds it may use it. Deleting any is always safe.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from schema_patch.model import ToolError
from schema_patch.text import files

Value = TypeVar("Value", bound=msgspec.Struct)

VARIABLE = "SCHEMA_PATCH_CACHE"  # another folder


def folder() -> Path:
    given = os.environ.get(VARIABLE)
    return Path(given) if given else files.cache_home() / "schema-patch" / "driver"


def digest(*parts: str | bytes) -> str:
    """Of several texts in their order; where one ends counts."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        whole.update(f"{len(data)} ".encode() + data)
    return whole.hexdigest()


def load(kind: str, key: str, of: type[Value]) -> Value | None:
    """An entry; None where there is none, or it is damaged."""
    try:
        return msgspec.msgpack.decode((folder() / kind / key[:2] / key).read_bytes(), type=of)
    except (OSError, msgspec.MsgspecError):
        return None


def store(kind: str, key: str, value: msgspec.Struct) -> None:
    """A cache that cannot be written costs time and nothing else."""
    target = folder() / kind / key[:2] / key
    with suppress(OSError, ToolError):
        target.parent.mkdir(parents=True, exist_ok=True)
        files.write(target, msgspec.msgpack.encode(value))


def kept(kind: str, key: str, of: type[Value], make: Callable[[], Value]) -> Value:
    """An entry; made where there is none."""
    found = load(kind, key, of)
    if found is None:
        found = make()
        store(kind, key, found)
    return found


def made(kind: str, key: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills, once. Raises ToolError where it cannot be written: its files are used in place."""
    target = folder() / kind / key
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=target.parent))
    except OSError as error:
        raise ToolError(f"cannot write: {error.strerror}; {VARIABLE} names another folder", str(target)) from error
    try:
        make(work)
        with suppress(OSError):  # another build was faster
            os.replace(work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target
