"""One process at a time in a directory, with what the standard library of the system has."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NAME = ".schema-patch.lock"  # where a directory cannot be locked itself


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Waits until no other process is alone there. Raises OSError where it cannot be locked."""
    if sys.platform == "win32":
        import msvcrt

        with open(folder / NAME, "wb") as file:
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # waits ten seconds
            yield
        with suppress(OSError):  # another one waits for it
            (folder / NAME).unlink()
    else:
        import fcntl

        lock = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)
