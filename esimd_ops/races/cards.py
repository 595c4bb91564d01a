"""How many work-groups of a kernel a card holds at once: cores x min(threads, local memory). Values in, values out.

Cards come from policies/cards.toml. What a kernel's thread takes (registers) and a group's local memory are facts of
its machine code: read from a report of kernels where one is given, else 128 registers, which is what the graphics
compiler gives without -doubleGRF, and the local memory that the host build saw the kernel ask for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from schema_patch.model import ToolError
from schema_patch.schemas import policies

REGISTERS = 128  # of a thread, unless a report says otherwise


class Core(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one core of an architecture has; `threads` of an engine by the registers that each takes."""

    engines: int
    local: int
    threads: dict[str, int]
    source: str


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One card by the names that people type."""

    names: tuple[str, ...]
    title: str
    architecture: str
    cores: int
    source: str


class _Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    architecture: dict[str, Core]
    card: tuple[Card, ...]


class Launched(msgspec.Struct, frozen=True):
    """A kernel as the host build saw it launched: `items` a group, `local` bytes of local memory, most `groups`."""

    name: str
    groups: int
    items: int
    local: int


class Kernel(msgspec.Struct, frozen=True):
    """A kernel as compiled for a device: registers of a thread, bytes of local memory of a group, its SIMD width.

    The names are those of ocloc's `.ze_info`.
    """

    name: str
    grf_count: int = REGISTERS
    slm_size: int = 0
    simd_size: int = 1


class _Report(msgspec.Struct, frozen=True):
    kernels: tuple[Kernel, ...]


def known() -> tuple[str, ...]:
    """The names of cards, in the order of the policy."""
    return tuple(name for card in _policy().card for name in card.names)


def find(name: str) -> Card:
    """Raises ToolError for a name that the policy does not have."""
    for card in _policy().card:
        if name.lower() in card.names:
            return card
    raise ToolError(f"--card: expected one of {', '.join(known())}; found '{name}'")


def resident(card: Card, launched: Launched, kernel: Kernel | None = None, registers: int = REGISTERS) -> int:
    """Groups of a kernel alive at once, at least 1. An ESIMD work-item is a thread; of SIMD kernels several are."""
    core = _policy().architecture[card.architecture]
    registers = kernel.grf_count if kernel else registers
    if str(registers) not in core.threads:
        raise ToolError(f"expected {' or '.join(core.threads)} registers of a thread, found {registers}")
    width = kernel.simd_size if kernel else 1
    threads = -(-launched.items // width)
    local = max(launched.local, kernel.slm_size if kernel else 0)
    fit = core.engines * core.threads[str(registers)] // threads
    if local:
        fit = min(fit, core.local // local)
    return max(1, card.cores * fit)


def read(path: str) -> dict[str, Kernel]:
    """Kernels by name, from a report in JSON: {"kernels": [{"name", "grf_count", "slm_size", "simd_size"}, ...]}.

    Raises ToolError for a file that is none.
    """
    try:
        report = msgspec.json.decode(Path(path).read_bytes(), type=_Report)
    except OSError as error:
        raise ToolError(error.strerror or str(error), path) from error
    except msgspec.MsgspecError as error:
        raise ToolError(f"not a report of kernels: {error}", path) from error
    return {_bare(kernel.name): kernel for kernel in report.kernels}


def of(launched: Launched, kernels: Mapping[str, Kernel]) -> Kernel | None:
    """The compiled kernel of a launch; None where the report does not have it."""
    return kernels.get(_bare(launched.name))


def _bare(name: str) -> str:
    """A kernel's mangled name without the prefix of a type's name and the runtime's inline namespace."""
    return re.sub(r"3_V1", "", name.removeprefix("_ZTS"))


def _policy() -> _Policy:
    """policies/cards.toml. Raises ToolError where a card names an architecture that is not there."""
    policy = policies.load("cards", _Policy)
    for card in policy.card:
        if card.architecture not in policy.architecture:
            raise ToolError(f"no architecture '{card.architecture}', of {card.title}", policies.path("cards"))
    return policy
