"""What to run, and what came back: values that travel between the processes. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from esimd_ops.trials.messages import Failed, Roster, TrialRequest
from esimd_ops.trials.runs import TrialRun

from .cards import REGISTERS, Launched
from .watch import AccessSeen


class Order(TrialRequest, frozen=True, kw_only=True):
    """What to run under which schedules, by name.

    replay     a file of `reproduce`, whose inputs are used instead of samples; "" for none
    kernels    a report of compiled kernels, for schedules that name a card; "" for none
    registers  of a thread, of kernels that no report tells of
    """

    schedules: dict[str, str]
    replay: str = ""
    kernels: str = ""
    registers: int = REGISTERS


class SampleRow(msgspec.Struct, frozen=True, tag="row"):
    """One sample. `wrong`: schedule -> the largest share of wrong elements of an output, and that output.

    launched, resident  the kernels, and by schedule how many groups of the largest are alive at once; of cards alone
    """

    op: str
    label: str
    wrong: dict[str, tuple[float, str]]
    seen: list[AccessSeen]
    judged: bool
    launched: list[Launched] = []
    resident: dict[str, int] = {}


class Ran(msgspec.Struct, frozen=True, tag="ran"):
    """An operator is through; `error` where it refused."""

    op: str
    schema: str
    error: str = ""


RaceMessage = SampleRow | Ran | Roster | Failed


@dataclass
class RaceRun(TrialRun[Ran]):
    """All that came back, with a row for each sample."""

    rows: list[SampleRow] = field(default_factory=list)

    def hear(self, message: Any) -> None:
        if isinstance(message, SampleRow):
            self.rows.append(message)
        else:
            super().hear(message)
