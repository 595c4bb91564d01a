"""Speaks to the runtime of a host build that this process has loaded: schedules, watched tensors, what was seen.

Knows the runtime's C functions, nothing of operators.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from esimd_ops.host.build import RUNTIME
from schema_patch.model import ToolError

from .cards import Launched


class Party(msgspec.Struct, frozen=True):
    """One side of what was seen: a place in a library, and who was there."""

    file: str
    offset: int
    group: int
    item: int
    did: str


class AccessSeen(msgspec.Struct, frozen=True):
    """One thing that the runtime saw, `count` times; the parties and details are those of the first."""

    kind: str
    subject: str
    detail: str
    count: int
    same_value: bool
    now: Party
    before: Party


class HostRuntime:
    """The runtime that the loaded libraries share."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))
        library.esimd_host_schedule.restype = ctypes.c_char_p
        library.esimd_host_reports.restype = ctypes.c_char_p
        library.esimd_host_launches.restype = ctypes.c_char_p
        library.esimd_host_residency.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint]
        flags = (ctypes.c_size_t, ctypes.c_int, ctypes.c_int)
        library.esimd_host_watch.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, *flags]
        self._library = library
        self.checks = bool(library.esimd_host_has_checks())
        if self.checks:
            library.esimd_host_track()

    @classmethod
    def loaded(cls) -> HostRuntime:
        """Raises ToolError where no library of a host build was loaded."""
        for line in Path("/proc/self/maps").read_text().splitlines():
            if line.endswith(f"/{RUNTIME}"):
                return cls(Path(line[line.index("/") :]))
        raise ToolError(
            f"expected libraries that host-build made, found no {RUNTIME} loaded: the operators are not from it"
        )

    def schedule(self, words: str) -> None:
        """Raises ToolError for words that the runtime does not know."""
        if wrong := self._library.esimd_host_schedule(words.encode()):
            raise ToolError(f"schedule: {wrong.decode()}")

    def launches(self) -> list[Launched]:
        """The kernels that were launched since the last time, each once."""
        return msgspec.json.decode(self._library.esimd_host_launches(), type=list[Launched])

    def residency(self, kernel: str, items: int, groups: int) -> None:
        """Of a kernel with groups of `items`, at most `groups` are alive at once where the schedule asks for that."""
        self._library.esimd_host_residency(kernel.encode(), items, groups)

    def watch(self, name: str, address: int, size: int, granule: int, *, read_only: bool, unwritten: bool) -> None:
        """A tensor that kernels may touch: `size` bytes from `address`, in elements of `granule` bytes."""
        self._library.esimd_host_watch(name.encode(), address, size, granule, read_only, unwritten)

    @contextmanager
    def watching(self) -> Iterator[list[AccessSeen]]:
        """While entered, accesses are judged; afterwards the list holds what was seen. Only in a build with checks."""
        seen: list[AccessSeen] = []
        self._library.esimd_host_check(1)
        try:
            yield seen
        finally:
            self._library.esimd_host_check(0)
            self._library.esimd_host_unwatch()
            seen += msgspec.json.decode(self._library.esimd_host_reports(), type=list[AccessSeen])
