"""What will be compared, said before it is measured, and whether the runs kept to it. Pure.

A registration fixes the arms, their size, the kinds that count, the test, and how often it may be looked at: once, or
at `looks` equal steps, of which each has a level of its own (`looks`). Whatever departs from it is named, on every
output.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from esimd_soak.model import ToolError


class Preregistration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What will be compared, said before it is measured."""

    hypothesis: str
    a: str
    b: str
    """The arms: the names of the runs' plans."""
    size: int
    """Generations an arm."""
    stop: str
    """The stopping rule, in words."""
    alpha: float = 0.05
    test: Literal["blocks", "two-proportion", "fisher"] = "two-proportion"
    kinds: tuple[str, ...] = ()
    """What counts as a collapse; none: what the plans say."""
    digest: str = ""
    looks: int = 1

    def sealed(self) -> Preregistration:
        return msgspec.structs.replace(self, digest=self.seal())

    def seal(self) -> str:
        """The hash of everything else; it is written into each run of the arms."""
        told = msgspec.to_builtins(msgspec.structs.replace(self, digest=""))
        if told["looks"] == 1:
            del told["looks"]
        told["kinds"] = list(told["kinds"])
        return hashlib.sha256(msgspec.json.encode(told, order="sorted")).hexdigest()

    @property
    def steps(self) -> list[int]:
        """Generations an arm at each look."""
        return [self.size * (i + 1) // self.looks for i in range(self.looks)]

    def look(self, sent: int) -> int:
        """The number of the last look, from 1, for which so many generations an arm suffice; 0: none yet."""
        return sum(step <= sent for step in self.steps)


def read(data: bytes, where: str) -> Preregistration:
    """ToolError when it was changed after it was sealed."""
    try:
        found = msgspec.json.decode(data, type=Preregistration)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ToolError(f"expected a registration: {error}", where) from None
    if found.seal() != found.digest:
        raise ToolError(f"the registration was changed after it was sealed (expected {found.seal()})", where)
    return found


def of(document: dict[str, Any] | None) -> Preregistration | None:
    """The registration that a run carries."""
    return msgspec.convert(document, Preregistration) if document else None


def departures(
    registered: Preregistration, name: str, sent: int, plan: dict[str, Any], counted: Sequence[str]
) -> list[str]:
    """Where a run of `sent` generations, counted by these kinds, departs from what was registered."""
    found = []
    if name not in (registered.a, registered.b):
        found.append(f"{name} is neither {registered.a} nor {registered.b}")
    if sent > registered.size:
        found.append(f"{name} has {sent:,} of the registered {registered.size:,}: more than was registered")
    elif sent < registered.size and sent not in registered.steps:
        word = "between two looks" if registered.looks > 1 else "stopped early, or not yet complete"
        found.append(f"{name} has {sent:,} of the registered {registered.size:,}: {word}")
    if plan.get("stop", {}).get("collapses"):
        found.append(f"{name} stops at a number of collapses, which its size does not")
    wanted = registered.kinds or tuple(plan.get("count", ()))
    if set(counted) != set(wanted):
        found.append(f"{name} is counted by {', '.join(counted)}, registered was {', '.join(wanted)}")
    return found


def bound(registered: Preregistration, plan: Any) -> Any:
    """The plan, ending at the registered size. ToolError where it would go beyond, or end by its results."""
    servers = len(plan.server)
    if plan.name not in (registered.a, registered.b):
        raise ToolError(f"it registers {registered.a} against {registered.b}, but this plan is named {plan.name}")
    if plan.stop.collapses:
        raise ToolError("a registered run ends at its size, not at a number of collapses: leave out stop.collapses")
    if plan.generations * servers > registered.size:
        raise ToolError(
            f"the plan sends {plan.generations * servers:,} generations, registered were {registered.size:,} an arm; "
            "more data than registered is another experiment"
        )
    if plan.generations:
        return plan
    if registered.size % servers:
        raise ToolError(f"the registered {registered.size:,} cannot be shared evenly by {servers} servers")
    stop = msgspec.structs.replace(plan.stop, generations=registered.size // servers)
    return msgspec.structs.replace(plan, stop=stop)
