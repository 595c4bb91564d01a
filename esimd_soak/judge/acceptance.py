"""Speculative decoding: counters, bench results, console blocks or log lines -> Counts -> what they say. Pure.

vLLM's definitions: rate = accepted / draft tokens; length = 1 + accepted / drafts (tokens a step, the target's own
included); per position = accepted at that position / all drafts. Conditional: of the drafts accepted up to the position
before, how many here; flat where the drafter is well, which the plain series never is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from esimd_soak.load import watch
from esimd_soak.load.reading import decode
from esimd_soak.model import Finding, ToolError

from . import stats

PREFIX = "vllm:spec_decode_num_"
RATE, LENGTH = "sglang:spec_accept_rate", "sglang:spec_accept_length"
NONE, WELL = 0.05, 0.30
"""Acceptance at a position under the first is as good as none, from the second on is fine."""


@dataclass(frozen=True, slots=True)
class Counts:
    drafts: int
    """0: not told, as by llama.cpp."""
    draft_tokens: int
    accepted: int
    per_position: tuple[float, ...] = ()
    """Accepted drafts at each position; not always whole numbers, as some sources print rounded rates."""

    def __post_init__(self) -> None:
        if not 0 <= self.accepted <= self.draft_tokens or not 0 <= self.drafts <= self.draft_tokens > 0:
            raise ToolError(
                f"expected 0 <= accepted <= draft tokens and at least one draft, found {self.accepted} of "
                f"{self.draft_tokens} in {self.drafts}: was speculative decoding on, and was there a workload?"
            )

    @property
    def rate(self) -> float:
        return self.accepted / self.draft_tokens

    @property
    def length(self) -> float:
        """nan where the number of drafts is not told."""
        return 1 + self.accepted / self.drafts if self.drafts else math.nan

    @property
    def positions(self) -> tuple[float, ...]:
        return tuple(count / self.drafts for count in self.per_position) if self.drafts else ()

    @property
    def conditional(self) -> tuple[float, ...]:
        """nan where the position before accepted nothing."""
        before = (float(self.drafts), *self.per_position)
        return tuple(a / b if b else math.nan for a, b in zip(self.per_position, before, strict=False))

    def __add__(self, other: Counts) -> Counts:
        mine, theirs = len(self.per_position), len(other.per_position)
        if mine != theirs or bool(self.drafts) != bool(other.drafts):
            raise ToolError(f"{mine} positions and {theirs}: not of one configuration")
        return Counts(
            self.drafts + other.drafts,
            self.draft_tokens + other.draft_tokens,
            self.accepted + other.accepted,
            tuple(a + b for a, b in zip(self.per_position, other.per_position, strict=True)),
        )


def of_counters(values: dict[str, float]) -> Counts:
    """Counter values or, rather, their deltas around a workload, as `watch.counters` names them."""
    if RATE in values and LENGTH in values:
        return _of_averages(values)
    names = [f"{PREFIX}{name}" for name in ("drafts", "draft_tokens", "accepted_tokens")]
    if names[0] not in values:
        raise ToolError(f"no counter {names[0]}: the server runs without speculative decoding")
    if missing := [name for name in names if name not in values]:
        raise ToolError(f"expected the counters {', '.join(names)}, found no number under {', '.join(missing)}")
    prefix = f"{PREFIX}accepted_tokens_per_pos["
    places = {key[len(prefix) : -1]: value for key, value in values.items() if key.startswith(prefix)}
    found = sorted((int(place), value) for place, value in places.items() if place.isdecimal())
    drafts, tokens, accepted = (round(values[name]) for name in names)
    return Counts(drafts, tokens, accepted, tuple(value for _, value in found))


def _of_averages(values: dict[str, float]) -> Counts:
    """sglang counts its verify calls, and of drafts tells averages: the accepted length, with the target's own token,
    and the rate. Where it does not count the calls, the proportions are those of a thousand drafts."""
    rate, length = values[RATE], values[LENGTH]
    if not (0 < rate <= 1 and length >= 1):
        raise ToolError(
            f"expected a rate above 0 and a length from 1 on, found {rate:g} and {length:g}: nothing drafted"
        )
    drafts = round(values.get(f"{PREFIX}drafts", 0)) or 1000
    accepted = round((length - 1) * drafts)
    return Counts(drafts, max(drafts, accepted, round(accepted / rate)), accepted)


def of_replies(accepted: int, drafted: int) -> Counts:
    """What the answers themselves tell of their drafts (llama.cpp: `timings.draft_n`); drafts are not counted there."""
    return Counts(0, drafted, min(accepted, drafted))


def of_bench(text: str) -> Counts:
    """The JSON result of `vllm bench serve`."""
    try:
        result, _ = decode(text.encode("utf-8", "replace"))
        drafts = int(result["spec_decode_num_drafts"])
        rates = result.get("spec_decode_per_position_acceptance_rates") or []
        return Counts(
            drafts,
            int(result["spec_decode_draft_tokens"]),
            int(result["spec_decode_accepted_tokens"]),
            tuple(round(float(rate) * drafts, 6) for rate in rates),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        expected = "expected a bench result with spec_decode_* keys (absent when no token was drafted)"
        raise ToolError(f"{expected}: {error}") from None


def of_console(text: str) -> Counts:
    """The block that `vllm bench serve` prints."""
    block = text[text.index("Speculative Decoding") :]

    def number(name: str) -> float:
        match = re.search(rf"^{re.escape(name)}:\s+([\d.,]+)\s*$", block, re.MULTILINE)
        if not match:
            raise ToolError(f"expected a line {name!r} in the speculative decoding block, found none")
        try:
            return float(match[1].replace(",", ""))
        except ValueError:
            raise ToolError(f"expected a number after {name!r}, found {match[1]}") from None

    drafts = number("Drafts")  # more than one figure in a number's place is no number
    positions = re.findall(r"^\s*Position (\d+):\s+([\d.]+)\s*$", block, re.MULTILINE)
    return Counts(
        int(drafts),
        int(number("Draft tokens")),
        int(number("Accepted tokens")),
        tuple(_rate(rate) / 100 * drafts for _, rate in positions),
    )


_LOG = re.compile(
    r"SpecDecoding metrics:.*?Accepted: (\d+) tokens, Drafted: (\d+) tokens, "
    r"Per-position acceptance rate: ([\d., nan]+?),? Avg"
)


_LLAMA = re.compile(
    r"draft acceptance(?: rate)? = [\d.]+ \(\s*(\d+) accepted /\s*(\d+) generated\)"
    r"(?:[^\n]*?per position = \(([\d., ]*)\))?"
)


def of_log(text: str, lines: re.Pattern[str] = _LOG) -> list[Counts]:
    """One Counts a line in which something was drafted: an interval of vLLM, a request of llama.cpp (`_LLAMA`). How
    many drafts follows from the positions printed."""
    found = []
    for accepted, drafted, rates in lines.findall(text):
        positions = [_rate(rate) for rate in rates.split(",") if rate.strip()]
        if int(drafted) and not any(map(math.isnan, positions)):
            drafts = round(int(drafted) / len(positions)) if positions else 0
            found.append(Counts(drafts, int(drafted), int(accepted), tuple(rate * drafts for rate in positions)))
    return found


def _rate(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def read(text: str, before: str = "") -> list[Counts]:
    """Whatever it is: bench result, console block, server log, or metrics page (a delta with the page `before`)."""
    if text.lstrip().startswith("{"):
        return [of_bench(text)]
    if "SpecDecoding metrics:" in text:
        if found := of_log(text):
            return found
        raise ToolError("the log has SpecDecoding lines, but nothing was drafted in any interval: nothing measured")
    if found := of_log(text, _LLAMA):
        return found
    if "Speculative Decoding" in text:
        return [of_console(text)]
    if PREFIX in text or RATE in text:
        after = watch.counters(text)
        return [of_counters(watch.deltas(watch.counters(before), after) if before else after)]
    raise ToolError(
        "expected a `vllm bench serve` result or console output, a log of vLLM or llama.cpp, or a /metrics page of "
        "vLLM or sglang; found nothing about speculative decoding in it"
    )


def total(parts: Sequence[Counts]) -> Counts:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole


def diagnose(found: Counts, loads: Sequence[tuple[int, Counts]] = ()) -> tuple[str, str]:
    """(kind, what it means). `loads`: the same at several concurrencies, to tell a fall with load from a collapse."""
    positions = found.positions or (found.rate,)
    if loads:
        (few, alone), (many, crowd) = min(loads, key=lambda x: x[0]), max(loads, key=lambda x: x[0])
        if alone.rate >= WELL / 2 and crowd.rate < alone.rate / 2:
            return (
                "falls with load",
                f"{alone.rate:.1%} at {few} in flight, {crowd.rate:.1%} at {many}: right alone, wrong or useless in "
                "company. Likely: buffers or metadata sized or indexed by batch, a prefill taken for a decode, padding "
                "rows; or a drafter that only guesses well for one sequence (n-gram). No sign of a replay defect",
            )
    if max(positions) < NONE:
        return (
            "collapse",
            f"every position is rejected from the first step on (position 0 at {positions[0]:.2%}): the drafter reads "
            "stale or wrong inputs. Likely: its graph replays with the inputs of the capture, an operator was not "
            "recorded into the graph, or a write was removed. The text stays right, since the target model checks "
            "every token; only speed is lost",
        )
    if len(positions) > 1 and positions[0] >= WELL and max(positions[1:]) < NONE:
        return (
            "later positions collapse",
            f"position 0 is fine ({positions[0]:.1%}), the later ones are rejected: the first draft step reads the "
            "target's state, the next ones the drafter's own. Likely: hidden state, positions or cache slots are not "
            "advanced between draft steps",
        )
    if found.rate < WELL / 2:
        return (
            "low",
            "few drafts are accepted, yet more than in a collapse: a weak drafter, or drafts for unlike text",
        )
    return ("healthy", "no sign of a collapse")


def since(parts: Sequence[Counts]) -> str:
    """For a log: whether it was dead from the first interval, or died later; empty when it did not end dead."""
    dead = [part.rate < NONE for part in parts]
    if len(parts) < 2 or not dead[-1]:
        return ""
    if all(dead):
        return f"dead in all {len(parts)} intervals, from the first on"
    first = len(dead) - dead[::-1].index(False)
    return f"died at interval {first + 1} of {len(parts)}: alive before, so state went wrong in service, not at capture"


def compare(baseline: Counts, candidate: Counts, max_drop: float, where: str) -> list[Finding]:
    """Findings where the candidate falls below the baseline by more than `max_drop` (a fraction, absolute)."""
    found = []
    if baseline.rate - candidate.rate > max_drop:
        z, p = stats.two_proportions(
            baseline.accepted, baseline.draft_tokens, candidate.accepted, candidate.draft_tokens
        )
        words = f"acceptance fell from {baseline.rate:.2%} to {candidate.rate:.2%}, limit {max_drop:.1%}"
        found.append(Finding("acceptance-rate", where, f"{words} (z = {z:.1f}, p = {p:.2g})"))
    kind, meaning = diagnose(candidate)
    if kind != "healthy" and diagnose(baseline)[0] == "healthy":
        found.append(Finding("acceptance-collapse", where, f"{kind}: {meaning}"))
    for i, (a, b) in enumerate(zip(baseline.positions, candidate.positions, strict=False)):
        if a - b > max_drop:
            found.append(Finding("acceptance-position", where, f"position {i} fell from {a:.2%} to {b:.2%}"))
    return found


def lines(name: str, found: Counts) -> list[str]:
    """The numbers as `vllm bench serve` names them, and the conditional series."""
    told = [
        f"{name}: {found.accepted:,} of {found.draft_tokens:,} draft tokens{in_drafts(found)} = "
        f"{percent(found.rate)}, length {length(found)}"
    ]
    for i, (plain, given) in enumerate(zip(found.positions, found.conditional, strict=False)):
        conditional = "-" if math.isnan(given) else percent(given)
        told.append(f"  position {i}: {percent(plain)}, given the one before {conditional}")
    return told


def in_drafts(found: Counts) -> str:
    return f" in {found.drafts:,} drafts" if found.drafts else ""


def length(found: Counts) -> str:
    return f"{found.length:.2f}" if found.drafts else "not told"


def percent(value: float) -> str:
    return f"{100 * value:.2f} %"


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A line of the origin table; None where the workload did not measure it."""

    run: str
    mode: str
    itl_ms: float | None
    tokens_per_second: float | None
    counts: Counts | None


def table(rows: Sequence[MatrixRow]) -> list[str]:
    """The origin report's table, as Markdown."""
    told = [
        "| run | mode | mean ITL | output tok/s | acceptance rate | length | position |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        itl = f"{row.itl_ms:.1f} ms" if row.itl_ms is not None else "-"
        speed = f"{row.tokens_per_second:.1f}" if row.tokens_per_second is not None else "-"
        rate, size, positions = "nothing drafted", "-", "-"
        if c := row.counts:
            rate = f"{percent(c.rate)} ({c.accepted:,} of {c.draft_tokens:,}{in_drafts(c)})"
            size = length(c)
            positions = " / ".join(f"{100 * p:.2f}" for p in c.positions)
        told.append(f"| {row.run} | {row.mode} | {itl} | {speed} | {rate} | {size} | {positions} |")
    return told
