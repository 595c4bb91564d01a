"""How many threads and work-groups a card holds at once. From policies/cards.toml; values in, values out."""

from __future__ import annotations

from functools import cache

import msgspec

from schema_patch.model import ToolError

from . import policies


class Core(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one core of an architecture has; `threads` of an engine by the registers that each takes."""

    engines: int
    local: int
    threads: dict[str, int]
    source: str


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One card by the names that people type. `ip`: which code runs on it, as in targets.toml.

    `bandwidth`: of its memory, GB/s; `clock`: GHz, the highest that Intel names.
    """

    names: tuple[str, ...]
    title: str
    architecture: str
    ip: str
    cores: int
    bandwidth: int
    clock: float
    source: str


class _Cards(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    architecture: dict[str, Core]
    card: tuple[Card, ...]


def known() -> tuple[str, ...]:
    """The names of cards, in the order of the policy."""
    return tuple(name for card in _policy().card for name in card.names)


def find(name: str) -> Card:
    """Raises ToolError for a name that the policy does not have."""
    for card in _policy().card:
        if name.lower() in card.names:
            return card
    raise ToolError(f"--card: expected one of {', '.join(known())}; found '{name}'")


def running(ip: str) -> tuple[Card, ...]:
    """The cards on which code for a device ("20.1") runs."""
    return tuple(card for card in _policy().card if card.ip == ip)


def threads(card: Card, registers: int) -> int:
    """Threads of a kernel alive at once. Raises ToolError for a number of registers that the card does not know."""
    return card.cores * _threads(card, registers)


def groups(card: Card, threads_each: int, registers: int, local: int) -> int:
    """Groups alive at once, at least 1, where each has so many threads and bytes of local memory.

    cores x min(threads of a core / threads of the group, local memory of a core / that of the group): a group does not
    leave its core.
    """
    fit = _threads(card, registers) // threads_each
    if local:
        fit = min(fit, _core(card).local // local)
    return max(1, card.cores * fit)


def _threads(card: Card, registers: int) -> int:
    core = _core(card)
    if str(registers) not in core.threads:
        raise ToolError(f"expected {' or '.join(core.threads)} registers of a thread, found {registers}")
    return core.engines * core.threads[str(registers)]


def _core(card: Card) -> Core:
    return _policy().architecture[card.architecture]


@cache
def _policy() -> _Cards:
    """policies/cards.toml. Raises ToolError where a card names an architecture that is not there."""
    policy = policies.load("cards", _Cards)
    for card in policy.card:
        if card.architecture not in policy.architecture:
            raise ToolError(f"no architecture '{card.architecture}', of {card.title}", policies.path("cards"))
    return policy
