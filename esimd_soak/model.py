"""The values that every room of this package exchanges: what is wrong with a server, and what could not be done.

Knows files as bytes alone. A `Finding` is a result; a `ToolError` means that the work could not be done; anything else
is a bug.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class ToolError(Exception):
    """The work cannot be done. `message`: what was expected and what was found; `where`: a file, a URL or a key."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.message, self.where = message, where

    def __str__(self) -> str:
        return f"{self.where}: error: {self.message}" if self.where else f"error: {self.message}"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with what was measured: `code` names the kind, `where` the run or file, `server` whose."""

    code: str
    where: str
    message: str
    server: str = ""


def contents(path: str | Path, what: str = "") -> bytes:
    """Of a file, which `what` names. ToolError where it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ToolError(f"cannot read{what and f' the {what}'}: {error.strerror}", str(path)) from None
