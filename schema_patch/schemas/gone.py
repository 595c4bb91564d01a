"""Operators whose result is gone since their schema says `-> ()`: what Python callers must follow."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class VoidedOperator:
    """An operator that hands `buffer` back, and whose schema says `-> ()`. No buffer: its result was more than that."""

    namespace: str | None
    op: str
    arguments: tuple[str, ...]
    buffer: str | None
    overload: str = ""


Gone: TypeAlias = Collection[VoidedOperator]
