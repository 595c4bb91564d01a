"""Two arms -> one comparison, or a refusal that says why they cannot be compared. Pure.

The refusals are the mistakes of the origin reports: an aggregate of two cards against one card, arms under different
load, arms that shared a compile cache (the second then ran the first one's code). A comparison is registered before
its data exist; any other is marked as found afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from esimd_soak.store.folder import Meta
from esimd_soak.model import ToolError

from . import stats
from .analysis import Analysis, Part, percent
from .stats import Comparison


class Registration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
    test: Literal["two-proportion", "fisher"] = "two-proportion"
    kinds: tuple[str, ...] = ()
    digest: str = ""

    def sealed(self) -> Registration:
        return msgspec.structs.replace(self, digest=self.seal())

    def seal(self) -> str:
        """The hash of everything else; it is written into each run of the arms."""
        told = msgspec.to_builtins(msgspec.structs.replace(self, digest=""))
        return hashlib.sha256(msgspec.json.encode(told, order="sorted")).hexdigest()


@dataclass(frozen=True, slots=True)
class Arm:
    name: str
    events: int
    generations: int
    run: Analysis | None = None
    metas: tuple[Meta, ...] = ()
    began: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    a: Arm
    b: Arm
    found: Comparison
    registration: Registration | None
    notes: tuple[str, ...]

    @property
    def p(self) -> float:
        fisher = self.registration is not None and self.registration.test == "fisher"
        return self.found.fisher if fisher else self.found.p

    @property
    def different(self) -> bool:
        return self.p < (self.registration.alpha if self.registration else 0.05)


def read_registration(data: bytes, where: str) -> Registration:
    """ToolError when it was changed after it was sealed."""
    try:
        found = msgspec.json.decode(data, type=Registration)
    except msgspec.DecodeError as error:
        raise ToolError(f"expected a registration: {error}", where) from None
    if found.seal() != found.digest:
        raise ToolError(f"the registration was changed after it was sealed (expected {found.seal()})", where)
    return found


def counts(text: str) -> tuple[Arm, Arm]:
    """`42/12960 32/13056` -> two arms."""
    arms = []
    for name, part in zip("AB", text.split(), strict=False):
        events, _, generations = part.replace(",", "").partition("/")
        if not (events.isdigit() and generations.isdigit() and 0 <= int(events) <= int(generations) > 0):
            raise ToolError(f"expected counts such as 42/12960, found {part}")
        arms.append(Arm(name, int(events), int(generations)))
    if len(arms) != 2 or len(text.split()) != 2:
        raise ToolError(f"expected two counts such as 42/12960 32/13056, found {text!r}")
    return arms[0], arms[1]


def arm(metas: Sequence[Meta], run: Analysis, card: str = "") -> Arm:
    """A run as an arm; `card` takes one card of it. ToolError when nothing was measured."""
    parts = [part for part in run.cards if not card or part.card == card]
    if card and not parts:
        raise ToolError(f"no card {card} in {metas[0].name}; it has {', '.join(part.card for part in run.cards)}")
    measured = [part.collapses for part in parts if part.collapses]
    if not measured:
        raise ToolError(f"nothing was scored in {metas[0].name}: there is nothing to compare")
    if run.troubles:
        raise ToolError(f"{metas[0].name} is not to be trusted: {run.troubles[0]}")
    name = metas[0].name + (f" on {card}" if card else "")
    return Arm(
        name, sum(r.events for r in measured), sum(r.generations for r in measured), _only(run, parts), tuple(metas)
    )


def _only(run: Analysis, parts: Sequence[Part]) -> Analysis:
    from dataclasses import replace

    cards = {part.card for part in parts}
    return replace(run, cards=list(parts), servers=[server for server in run.servers if server.card in cards])


def refusals(a: Arm, b: Arm) -> list[str]:
    """Why these two arms say nothing about what was changed between them; empty when they may be compared."""
    if a.run is None or b.run is None:
        return []
    found = []
    cards = [[part.card for part in x.run.cards] for x in (a, b) if x.run]
    if len(cards[0]) != len(cards[1]):
        sizes = [f"{x.name} has {len(c)} ({', '.join(c)})" for x, c in zip((a, b), cards, strict=True)]
        found.append(
            f"an aggregate of several cards against another number of cards: {'; '.join(sizes)}. Cards differ by "
            "themselves; compare card by card with --card-a and --card-b"
        )
    loads = [{int(meta.plan["concurrency"]) for meta in x.metas} for x in (a, b)]
    if loads[0] != loads[1]:
        words = " and ".join(", ".join(map(str, sorted(load))) for load in loads)
        found.append(f"different concurrency: {words} in flight a server. Collapses depend on load; run both alike")
    for key in ("max_tokens", "temperature", "prompts", "prompt_lengths", "logprobs", "body", "count", "limits"):
        values = [{str(meta.plan.get(key)) for meta in x.metas} for x in (a, b)]
        if values[0] != values[1]:
            found.append(f"different {key}: {' and '.join(', '.join(sorted(v)) for v in values)}. Run both alike")
    if shared := _caches(a) & _caches(b):
        found.append(
            f"the arms shared a compile cache ({', '.join(sorted(shared))}): the second may have run the first "
            "one's code. "
            "Give each arm a cache of its own and repeat"
        )
    return found


def _caches(x: Arm) -> set[str]:
    servers = [server for meta in x.metas for server in meta.plan.get("server", [])]
    return {str(server["compile_cache"]) for server in servers if server.get("compile_cache")}


def judge(a: Arm, b: Arm, registration: Registration | None = None) -> Verdict:
    """ToolError with every refusal, and when the registration names other arms or was not kept to."""
    if reasons := refusals(a, b):
        raise ToolError("these arms cannot be compared: " + "; ".join(reasons))
    notes = []
    if registration is None:
        notes.append("post hoc: not registered before the data were seen; a hypothesis to test, not a result")
    else:
        _kept(a, b, registration)
        notes += [
            f"{x.name} has {x.generations:,} of the registered {registration.size:,}: stopped early"
            for x in (a, b)
            if x.generations < registration.size
        ]
    if a.run is not None and not (_caches(a) and _caches(b)):
        notes.append("no compile_cache is recorded for an arm: that they had one each is not proved")
    seeds = [{meta.plan.get("seed") for meta in x.metas} for x in (a, b)]
    if seeds[0] != seeds[1]:
        notes.append("the arms had different seeds, and so other prompts: a confounder, if a small one")
    found = stats.compare(a.events, a.generations, b.events, b.generations)
    base = (a.events + b.events) / (a.generations + b.generations)
    smaller = min(a.generations, b.generations)
    if 0 < base < 0.5 and (power := stats.power_of(smaller, base, 1.5)) < 0.8:
        need = stats.sample_size(base, 1.5)
        notes.append(
            f"{smaller:,} generations an arm find a factor of 1.5 at {percent(base, 3)} with a chance of {power:.0%}; "
            f"80 % needs {need:,}"
        )
    return Verdict(a, b, found, registration, tuple(notes))


def _kept(a: Arm, b: Arm, registration: Registration) -> None:
    for x, wanted in ((a, registration.a), (b, registration.b)):
        if x.name.split(" on ")[0] != wanted:
            raise ToolError(f"the registration is of {registration.a} against {registration.b}, found {x.name}")
        for meta in x.metas:
            if (meta.registration or {}).get("digest") != registration.digest:
                raise ToolError(
                    f"{x.name} was not run under this registration (run it with `run --registration FILE`); compare "
                    "without "
                    "it, as post hoc"
                )


def lines(verdict: Verdict) -> list[str]:
    """The comparison in words, the effect before the p-value."""
    found = verdict.found
    told = []
    for x in (verdict.a, verdict.b):
        exact = stats.clopper_pearson(x.events, x.generations)
        told.append(
            f"{x.name}: {x.events:,}/{x.generations:,} = {percent(x.events / x.generations, 3)} "
            f"(95 % {percent(exact.low)} to {percent(exact.high)})"
        )
        if x.run and len(x.run.cards) > 1:
            told += [f"  {part.card}: {part.collapses.words()}" for part in x.run.cards if part.collapses]
    low, high = (100 * value for value in (found.difference_interval.low, found.difference_interval.high))
    told.append(f"difference B - A: {100 * found.difference:+.3f} points (95 % {low:+.3f} to {high:+.3f}, Newcombe)")
    if found.ratio is not None and found.ratio_interval is not None:
        told.append(
            f"ratio B / A: {found.ratio:.2f} (95 % {found.ratio_interval.low:.2f} to {found.ratio_interval.high:.2f})"
        )
    told.append(f"two-proportion z = {found.z:.2f}, p = {found.p:.2g}; Fisher exact p = {found.fisher:.2g}")
    told += [f"note: {note}" for note in verdict.notes]
    told.append("different" if verdict.different else "no difference shown (which is not: no difference)")
    return told
