"""A library in the place where it was found."""

from __future__ import annotations

from dataclasses import dataclass

from schema_patch.elf.reader import ElfFacts


@dataclass(frozen=True, slots=True)
class Placed:
    """A library and the distribution that owns it; `judged`: its operators were looked at, not only what it links."""

    facts: ElfFacts
    owner: str
    judged: bool = True
