"""What a check of the toolchain says, and the policy that it judges by: policies/toolchain.toml, typed.

Strict about misspelt keys; knows no file but that one, and no fact of any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import msgspec

from schema_patch.model import Severity
from schema_patch.schemas import policies

from .toolchain import Facts


class Crashing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Devices that the ahead-of-time compiler cannot be asked for."""

    names: tuple[str, ...]
    why: str


class Cards(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cards of one architecture and release, by PCI device number."""

    pci: tuple[str, ...]
    ip: str
    name: str


class Toolchain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """policies/toolchain.toml."""

    compiler: str
    arch: str
    memory: dict[str, float]
    crashing: tuple[Crashing, ...]
    card: tuple[Cards, ...]

    def why_crashing(self, word: str) -> str | None:
        return next((group.why for group in self.crashing if word.lower().replace("_", "-") in group.names), None)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found, why it matters, the command that fixes it; a note is in order and needs none."""

    check: str
    severity: Severity
    found: str
    why: str = ""
    fix: str = ""


Check = Callable[[Facts, str], Iterator[Diagnosis]]


@cache
def toolchain() -> Toolchain:
    """The policy that ships with the kit. Raises ToolError where it is misspelt."""
    return policies.load("toolchain", Toolchain)
