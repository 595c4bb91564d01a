"""Two arms -> one comparison, or a refusal that says why they cannot be compared. Pure.

The refusals are the mistakes of the origin reports: an aggregate of two cards against one card, arms under different
load, arms that shared a compile cache (the second then ran the first one's code). Runs are compared by blocks, so that
a burst counts once; bare counts have no order and are taken as independent. A comparison is registered before its data
exist; any other is marked as found afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from esimd_soak.load.identity import differences
from esimd_soak.model import ToolError
from esimd_soak.store.folder import Meta

from . import clusters, looks, stats
from .analysis import Analysis
from .clusters import Contrast
from .part import ServerPart, percent
from .registration import Preregistration
from .stats import Comparison

ALIKE = ("max_tokens", "temperature", "prompts", "prompt_lengths", "logprobs", "body", "count", "limits", "rate")
"""Keys of a plan that must not differ between arms."""


MANY = 12


@dataclass(frozen=True, slots=True)
class Arm:
    name: str
    events: int
    generations: int
    run: Analysis | None = None
    metas: tuple[Meta, ...] = ()
    sequences: dict[str, Any] = field(default_factory=dict)
    """Card -> one truth value a judged generation, in order."""
    card: str = ""
    """The one card that was asked for; empty for all."""

    @property
    def sent(self) -> int:
        return sum(part.sent for part in self.parts) if self.run else self.generations

    @property
    def parts(self) -> list[ServerPart]:
        return self.run.cards if self.run else []


@dataclass(frozen=True, slots=True)
class ComparisonVerdict:
    a: Arm
    b: Arm
    found: Comparison
    blocks: Contrast | None
    """None for bare counts."""
    registration: Preregistration | None
    level: float
    departed: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def p(self) -> float:
        """Of the registered test; where collapses have an order, never below that of the blocks."""
        test = self.registration.test if self.registration else "blocks"
        alone = self.found.fisher if test == "fisher" else self.found.p
        if self.blocks is None:
            return alone
        return self.blocks.p if test == "blocks" else max(alone, self.blocks.p)

    @property
    def different(self) -> bool:
        return self.p < self.level

    @property
    def exit_code(self) -> int:
        """A registered comparison that was not kept to has no verdict."""
        return 2 if self.departed else int(self.different)

    @property
    def summary(self) -> str:
        if self.departed:
            return "NOT AS REGISTERED, so no verdict; compare without the registration for one found afterwards"
        return "different" if self.different else "no difference shown (which is not: no difference)"


def counts(text: str) -> tuple[Arm, Arm]:
    """`42/12960 32/13056` -> two arms."""
    arms = []
    for name, part in zip("AB", text.split(), strict=False):
        events, _, generations = part.replace(",", "").partition("/")
        plain = events.isdecimal() and generations.isdecimal() and len(generations) < 16
        if not (plain and 0 <= int(events) <= int(generations) > 0):
            raise ToolError(f"expected counts such as 42/12960, found {part}")
        arms.append(Arm(name, int(events), int(generations)))
    if len(arms) != 2 or len(text.split()) != 2:
        raise ToolError(f"expected two counts such as 42/12960 32/13056, found {text!r}")
    return arms[0], arms[1]


def arm(metas: Sequence[Meta], run: Analysis, sequences: dict[str, Any], card: str = "") -> Arm:
    """A run as an arm; `card` takes one card of it. ToolError when nothing, or not enough, was measured."""
    parts = [part for part in run.cards if not card or part.card == card]
    if card and not parts:
        raise ToolError(f"no card {card} in {metas[0].name}; it has {', '.join(part.card for part in run.cards)}")
    measured = [part.collapses for part in parts if part.collapses]
    if not measured:
        raise ToolError(f"nothing was scored in {metas[0].name}: there is nothing to compare")
    if run.troubles:
        raise ToolError(f"{metas[0].name} is not to be trusted: {run.troubles[0]}")
    if run.missing:
        raise ToolError(f"not enough was seen of {metas[0].name}: {run.missing[0]}")
    name = metas[0].name + (f" on {card}" if card else "")
    cards = {part.card for part in parts}
    only = replace(run, cards=parts, servers=[server for server in run.servers if server.card in cards])
    kept = {of: values for of, values in sequences.items() if of in cards}
    events, generations = sum(r.events for r in measured), sum(r.generations for r in measured)
    return Arm(name, events, generations, only, tuple(metas), kept, card)


def first(x: Arm, generations: int) -> Arm:
    """The arm as it was when so many generations had ended: what a look before the end may see."""
    if generations >= x.generations or x.run is None:
        return x
    share = generations / x.generations
    kept = {card: values[: round(len(values) * share)] for card, values in x.sequences.items()}
    events, number = (sum(int(f(v)) for v in kept.values()) for f in (sum, len))
    return replace(x, sequences=kept, events=events, generations=number)


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
    for key in ALIKE:
        values = [{_told(meta.plan, key) for meta in x.metas} for x in (a, b)]
        if values[0] != values[1]:
            found.append(f"different {key}: {' and '.join(', '.join(sorted(v)) for v in values)}. Run both alike")
    apis = [_of_servers(x, "api") | _of_servers(x, "stream") for x in (a, b)]
    if apis[0] != apis[1]:
        found.append("one arm used another API than the other (completions or chat, streamed or not). Run both alike")
    if len(servers := {len(x.run.servers) for x in (a, b) if x.run}) > 1:
        found.append(f"{min(servers)} and {max(servers)} servers: the load of a card differs. Run both alike")
    if shared := _of_servers(a, "compile_cache") & _of_servers(b, "compile_cache"):
        found.append(
            f"the arms shared a compile cache ({', '.join(sorted(shared))}): the second may have run the first "
            "one's code. Give each arm a cache of its own and repeat"
        )
    return found


def _told(plan: dict[str, Any], key: str) -> str:
    if key == "prompts" and plan.get("prompts_sha256"):
        return f"content {plan['prompts_sha256'][:12]}"
    return str(plan.get(key))


def _of_servers(x: Arm, key: str) -> set[str]:
    servers = [server for meta in x.metas for server in meta.plan.get("server", [])]
    return {str(server[key]) for server in servers if server.get(key, "") != ""}


def judge(a: Arm, b: Arm, registered: Preregistration | None = None, *, burst: float = 1.0) -> ComparisonVerdict:
    """ToolError with every refusal, and when the registration names other arms.

    `burst`: the mean size of the bursts in which the collapses of bare counts come.
    """
    if reasons := refusals(a, b):
        raise ToolError("these arms cannot be compared: " + "; ".join(reasons))
    departed, level, notes = [], 0.05, list[str]()
    if registered is None:
        notes.append("post hoc: not registered before the data were seen; a hypothesis to test, not a result")
        if any(meta.registration for x in (a, b) for meta in x.metas):
            notes.append("these runs belong to a registration, by which this comparison is not made")
    else:
        departed = _kept(a, b, registered)
        look = registered.look(min(a.sent, b.sent))
        level = looks.levels(registered.alpha, registered.looks)[max(look, 1) - 1]
        if registered.looks > 1 and look:
            step = registered.steps[look - 1]
            a, b = (first(x, round(x.generations * min(1.0, step / x.sent))) for x in (a, b))
            notes.append(f"look {look} of {registered.looks}, at {step:,} an arm: different below p = {level:.2g}")
    notes += _confounders(a, b)
    effect = clusters.burst_effect(burst)
    blocks = clusters.contrast(a.sequences, b.sequences) if a.sequences and b.sequences else None
    found = stats.compare(
        round(a.events / effect), round(a.generations / effect), round(b.events / effect), round(b.generations / effect)
    )
    if blocks is None:
        bursts = f"bursts of {burst:g}" if burst > 1 else "one by one"
        notes.append(f"bare counts have no order: the collapses are taken to come {bursts} (--burst says otherwise)")
    notes += _power(a, b, blocks.effect if blocks else effect)
    return ComparisonVerdict(a, b, found, blocks, registered, level, tuple(departed), tuple(notes))


def _confounders(a: Arm, b: Arm) -> list[str]:
    notes: list[str] = []
    if a.run is None or b.run is None:
        return notes
    if not (_of_servers(a, "compile_cache") and _of_servers(b, "compile_cache")):
        notes.append("no compile_cache is recorded for an arm: that they had one each is not proved")
    seeds = [{meta.plan.get("seed") for meta in x.metas} for x in (a, b)]
    if seeds[0] != seeds[1]:
        notes.append("the arms had different seeds, and so other prompts: a confounder, if a small one")
    told = [list(x.run.served.values()) for x in (a, b) if x.run]
    if all(told):
        pairs = zip(told[0], told[1], strict=False)
        unlike = list(dict.fromkeys(one for x, y in pairs for one in differences(x, y)))
        notes += [f"the arms differ in what they serve: {one}" for one in unlike[:MANY]]
        if len(unlike) > MANY:
            notes.append(f"the arms differ in {len(unlike) - MANY} more facts of what they serve")
    else:
        notes.append("what an arm served was not recorded: that both served one model is not proved")
    return notes


def _power(a: Arm, b: Arm, effect: float) -> list[str]:
    base = (a.events + b.events) / (a.generations + b.generations)
    smaller = min(a.generations, b.generations)
    if not 0 < base < 0.5 or (power := stats.power_of(smaller / effect, base, 1.5)) >= 0.8:
        return []
    need = stats.sample_size(base, 1.5) * effect
    bursts = f", at a design effect of {effect:.1f}" if effect > 1.05 else ""
    return [
        f"{smaller:,} generations an arm find a factor of 1.5 at {percent(base, 3)} with a chance of {power:.0%}; "
        f"80 % needs {need:,.0f}{bursts}"
    ]


def _kept(a: Arm, b: Arm, registered: Preregistration) -> list[str]:
    """Where the arms depart from the registration. ToolError when they are not its arms."""
    found = []
    for x, wanted in ((a, registered.a), (b, registered.b)):
        if x.run is None or {meta.name for meta in x.metas} != {wanted}:
            raise ToolError(f"the registration is of {registered.a} against {registered.b}, found {x.name}")
        for meta in x.metas:
            if (meta.registration or {}).get("digest") != registered.digest:
                raise ToolError(
                    f"{x.name} was not run under this registration (run it with `run --registration FILE`); compare "
                    "without it, as post hoc"
                )
        found += x.run.departed
        if x.card:
            found.append(f"only card {x.card} of {wanted} is compared")
    if not found and not registered.look(min(a.sent, b.sent)):
        found.append("no look is due yet")
    return found
