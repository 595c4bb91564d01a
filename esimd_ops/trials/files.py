"""Values in files, JSON or TOML, with what is wrong as a ToolError. Knows no value."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from schema_patch.model import ToolError

T = TypeVar("T")


def read(path: str, kind: type[T], what: str, *, toml: bool = False, version: int | None = None) -> T:
    """Raises ToolError for a file that cannot be read, is no `what`, or one of another version."""
    try:
        decode = msgspec.toml.decode if toml else msgspec.json.decode
        found = decode(Path(path).read_bytes(), type=kind)
    except OSError as error:
        raise ToolError(error.strerror or str(error), path) from error
    except msgspec.MsgspecError as error:
        raise ToolError(f"not a {what}: {error}", path) from error
    if version is not None and (its := getattr(found, "version", None)) != version:
        raise ToolError(f"expected a {what} of version {version}, found {its}", path)
    return found


def write(path: str, value: msgspec.Struct) -> None:
    """As JSON. Raises ToolError where that cannot be done."""
    try:
        Path(path).write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")
    except OSError as error:
        raise ToolError(error.strerror or str(error), path) from error


def near(path: str) -> str:
    """As seen from the working directory, where it lies below."""
    whole = Path(path).resolve()
    return str(whole.relative_to(Path.cwd())) if whole.is_relative_to(Path.cwd()) else path
