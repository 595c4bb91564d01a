"""Schedules that name a card: the residency of each kernel that was launched, told to the runtime.

`card=b580` in a schedule's words stands for as many groups of a kernel as that card holds at once (`cards`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from schema_patch.schemas.cards import find

from . import cards
from .cards import CompiledKernel, Launched
from .watch import HostRuntime

WORD = "card="


class Residency:
    """What is known of kernels: a report by name, or the registers of a thread of all of them."""

    def __init__(self, runtime: HostRuntime, kernels: Mapping[str, CompiledKernel], registers: int) -> None:
        self.runtime, self._kernels, self._registers = runtime, kernels, registers

    def asked(self, schedules: Mapping[str, str]) -> bool:
        """Some schedule names a card, so that its launches must be known."""
        return any(_card(words) for words in schedules.values())

    def schedule(self, words: str, launched: Iterable[Launched]) -> None:
        """Sets the schedule, and with it how many groups of each kernel are alive at once."""
        if name := _card(words):
            for one in launched:
                self.runtime.residency(one.name, one.items, self._groups(name, one))
            words = ",".join("resident=card" if word.startswith(WORD) else word for word in words.split(","))
        self.runtime.schedule(words)

    def of(self, words: str, launched: Iterable[Launched]) -> int:
        """Of the launch with most groups: how many the card of this schedule holds at once; 0 where it names none."""
        name = _card(words)
        largest = max(launched, key=lambda one: one.groups, default=None)
        return self._groups(name, largest) if name and largest else 0

    def _groups(self, name: str, launched: Launched) -> int:
        return cards.resident(find(name), launched, cards.of(launched, self._kernels), self._registers)


def _card(words: str) -> str:
    return next((word.removeprefix(WORD) for word in words.split(",") if word.startswith(WORD)), "")
