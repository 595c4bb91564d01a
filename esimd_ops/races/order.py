"""What to run, and what came back: values that travel between the processes. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from esimd_ops.trials.child import Ended
from esimd_ops.trials.messages import Failed

from .watch import Seen


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to run: torch.ops.<namespace>, operators (empty for all), "decode" or "all" shapes, schedules by name.

    replay  a file of `reproduce`, whose inputs are used instead of samples; "" for none
    skip    operators that an earlier process has done or died of
    """

    namespace: str
    libraries: tuple[str, ...]
    operators: tuple[str, ...]
    shapes: str
    schedules: dict[str, str]
    beyond: bool = False
    replay: str = ""
    skip: tuple[str, ...] = ()


class Row(msgspec.Struct, frozen=True, tag="row"):
    """One sample. `wrong`: schedule -> the largest share of wrong elements of an output, and that output."""

    op: str
    label: str
    wrong: dict[str, tuple[float, str]]
    seen: list[Seen]
    judged: bool


class Ran(msgspec.Struct, frozen=True, tag="ran"):
    """An operator is through; `error` where it refused."""

    op: str
    schema: str
    error: str = ""


Message = Row | Ran | Failed


@dataclass
class Outcome:
    """All that came back. `ends`: operator -> how the process ended in it; "" where it ended in none."""

    rows: list[Row] = field(default_factory=list)
    ran: dict[str, Ran] = field(default_factory=dict)
    ends: dict[str, Ended] = field(default_factory=dict)
    failed: str = ""
