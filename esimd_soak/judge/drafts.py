"""Speculative decoding: counters, bench results, console blocks or log lines -> Counts -> what they say. Pure.

vLLM's definitions: rate = accepted / draft tokens; length = 1 + accepted / drafts (tokens a step, the target's own
included); per position = accepted at that position / all drafts. Conditional: of the drafts accepted up to the position
before, how many here; flat where the drafter is well, which the plain series never is.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from esimd_soak.load import watch
from esimd_soak.load.reading import decode
from esimd_soak.model import ToolError

PREFIX = "vllm:spec_decode_num_"
RATE, LENGTH = "sglang:spec_accept_rate", "sglang:spec_accept_length"
LONGEST = 16
"""Tokens of a draft where it is not told how many drafts there were: llama.cpp's longest by default."""
ROUNDED = 0.0005
"""What a rate of three digits may be off by."""


@dataclass(frozen=True, slots=True)
class Counts:
    drafts: int
    """0: not told, as by llama.cpp."""
    draft_tokens: int
    accepted: int
    per_position: tuple[float, ...] = ()
    """Accepted drafts at each position; not always whole numbers, as some sources print rounded rates."""
    engine: str = ""
    """Whose these are, where several engines are told apart; a sum is nobody's."""
    load: int = 0
    """Requests in flight, where several loads were tried."""
    when: int = 0
    """The number of the interval; what several engines drafted in it has the same."""

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

    @property
    def reached(self) -> tuple[tuple[float, float], ...]:
        """(accepted, of how many drafts that got so far) at each position.

        Of drafts of unlike length it is not told how many are long enough for a position; at least so many as would be
        if all that are short ended right before it. Without positions: the tokens of a draft as one trial.
        """
        most, before, found = len(self.per_position), float(self.drafts), list[tuple[float, float]]()
        if not most:
            trials = self.drafts or self.draft_tokens / LONGEST
            return ((self.accepted * trials / self.draft_tokens, trials),)
        for i, accepted in enumerate(self.per_position):
            short = (most - self.draft_tokens / self.drafts) / (most - i) if i else 0.0
            found.append((accepted, max(accepted, before * (1 - min(1.0, short)))))
            before = accepted
        return tuple(found)

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


def of_counters(values: dict[str, float]) -> list[Counts]:
    """Counter values or, rather, their deltas around a workload, as `watch.counters` names them: of each engine that
    drafted, where there are several."""
    whole, each = _counts(values), watch.engines(values).items()
    drafted = [(name, own) for name, own in each if own.get(f"{PREFIX}drafts") or own.get(LENGTH)]
    return [replace(_counts(own), engine=name) for name, own in drafted] or [whole]


def _counts(values: dict[str, float]) -> Counts:
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
    rate, length, counted = values[RATE], values[LENGTH], round(values.get(f"{PREFIX}drafts", 0))
    if rate == 0 and length == 1 and counted:  # drafted, and all of it rejected
        return Counts(counted, counted, 0)
    if not (0 < rate <= 1 and length >= 1):
        raise ToolError(
            f"expected a rate above 0 and a length from 1 on, found {rate:g} and {length:g}: nothing drafted"
        )
    drafts = counted or 1000
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

    found = dict(re.findall(r"^\s*([A-Z][\w ]*):\s+([\d.,]+)\s*$", block, re.MULTILINE))

    def number(name: str) -> float:
        if name not in found:
            raise ToolError(f"expected a line '{name}:' in the speculative decoding block, found none")
        try:
            return float(found[name].replace(",", ""))
        except ValueError:  # more than one figure in a number's place
            raise ToolError(f"expected a number after '{name}:', found {found[name]}") from None

    drafts, tokens, accepted = map(number, ("Drafts", "Draft tokens", "Accepted tokens"))
    rates = [number(name) / 100 for name in found if name.startswith("Position ")]
    return Counts(int(drafts), int(tokens), int(accepted), tuple(rate * drafts for rate in rates))


_LOG = re.compile(
    r"SpecDecoding metrics:.*?Accepted: (\d+) tokens, Drafted: (\d+) tokens, "
    r"Per-position acceptance rate: ([\d., nan]+?),? Avg"
)
_LLAMA = re.compile(
    r"draft acceptance(?: rate)? = [\d.]+ \(\s*(\d+) accepted /\s*(\d+) generated\)"
    r"(?:.*?per position = \(([\d., ]*)\))?"
)
_ENGINE = re.compile(r"\bEngine \d+:")
_VARYING = re.compile(r"\[\w+\.py:\d+\]|\b(?:INFO|DEBUG)\b|\d+(?:[-:/.,T]\d+)+\S*")  # of what a line begins with


def of_log(text: str, line: re.Pattern[str] = _LOG) -> list[Counts]:
    """One Counts a line in which something was drafted: an interval of vLLM, a request of llama.cpp (`_LLAMA`).

    The engine is what the line begins with, without what changes from line to line, and the engine that such a line
    named before (vLLM says `Engine 001:` in the line before). Where nearly every line has its own, none is told.
    """
    found, named = list[Counts](), dict[str, str]()
    for one in text.splitlines():
        told, engine = line.search(one), _ENGINE.search(one)
        if not (told or engine):
            continue
        source = " ".join(_VARYING.sub(" ", one[: min(m.start() for m in (told, engine) if m)]).split())
        if engine:
            named[source] = engine[0].rstrip(":")
        if told and (counts := _of_line(*told.groups(""))):
            whose = f"{source} {named.get(source, '')}".strip()
            found.append(replace(counts, engine=whose, when=len(found)))
    if 2 * len({one.engine for one in found}) > len(found):
        return [replace(one, engine="") for one in found]
    return found


def _of_line(accepted: str, drafted: str, rates: str) -> Counts | None:
    """How many drafts follows from the positions printed: as many as if all were of full length, unless their rates,
    which are rounded, tell of more."""
    positions = [_rate(rate) for rate in rates.split(",") if rate.strip()]
    if not int(drafted) or any(map(math.isnan, positions)):
        return None
    drafts = 0
    if positions:
        told = int(accepted) / (sum(positions) + len(positions) * ROUNDED) if any(positions) else 0.0
        full = int(drafted) / len(positions)
        drafts = round(full if told <= full else min(int(accepted) / sum(positions), int(drafted)))
    return Counts(drafts, int(drafted), int(accepted), tuple(rate * drafts for rate in positions))


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
        return of_counters(watch.deltas(watch.counters(before), after) if before else after)
    raise ToolError(
        "expected a `vllm bench serve` result or console output, a log of vLLM or llama.cpp, or a /metrics page of "
        "vLLM or sglang; found nothing about speculative decoding in it"
    )
