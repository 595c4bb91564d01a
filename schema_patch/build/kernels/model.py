"""The facts of a kernel, as the JSON report holds them. Values without logic of their own."""

from __future__ import annotations

import msgspec

from schema_patch.build.driver.notes import Notes

KINDS = ("send", "dpas", "math", "int64", "move", "arithmetic", "control", "sync")


class Access(msgspec.Struct, frozen=True):
    """One form of message to memory: what it does, how many there are, bytes that one moves, whether to one place.

    `block`: the bytes lie side by side, by the message's own form; else each lane has an address of its own.
    """

    form: str
    count: int
    size: int
    block: bool
    local: bool

    @property
    def load(self) -> bool:
        return self.form.startswith("load")


class Loop(msgspec.Struct, frozen=True):
    """An innermost loop. `bytes_loaded`: of one round of one thread, from global memory."""

    start: str
    line: str
    instructions: dict[str, int]
    accesses: tuple[Access, ...]

    @property
    def size(self) -> int:
        return sum(self.instructions.values())

    @property
    def bytes_loaded(self) -> int:
        return sum(a.count * a.size for a in self.accesses if a.load and not a.local)


class Division(msgspec.Struct, frozen=True):
    """64-bit divisions of the source that stand in one place."""

    line: str
    count: int
    in_loop: bool


class Resident(msgspec.Struct, frozen=True):
    """What one card holds at once: threads by registers; groups, where they are told how large, or at most."""

    threads: int
    groups: int
    exact: bool


class ExaminedKernel(Notes, frozen=True, kw_only=True):
    """A kernel as compiled for one device, and the compiler's notes of it.

    None: not told by what there was to read. `compiled`: from SPIR-V, here; else as found in the library.
    """

    name: str
    title: str
    target: str
    where: str
    compiled: bool
    instructions: dict[str, int]
    loops: tuple[Loop, ...]
    accesses: tuple[Access, ...]
    bank_conflicts: int | None
    divisions: tuple[Division, ...] | None
    line: str
    resident: dict[str, Resident]


class Document(msgspec.Struct, frozen=True):
    """A whole run, as `--format json` prints and `--against` reads it."""

    version: int
    compiler: str
    kernels: tuple[ExaminedKernel, ...]
    failed: tuple[str, ...] = ()
