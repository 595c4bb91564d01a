"""What to run, and what came back: values that travel between the processes. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from esimd_ops.trials.child import Ended
from esimd_ops.trials.messages import Failed, Roster

from .cards import REGISTERS, Launched
from .watch import Seen


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to run: torch.ops.<namespace>, operators (empty for all), schedules by name.

    shapes     "decode", "all", "models", or sizes such as "8x4x8"
    samples    a file or function that describes operators (`trials.given`); "" for none
    replay     a file of `reproduce`, whose inputs are used instead of samples; "" for none
    kernels    a report of compiled kernels, for schedules that name a card; "" for none
    registers  of a thread, of kernels that no report tells of
    skip       operators that an earlier process has done or died of
    """

    namespace: str
    libraries: tuple[str, ...]
    operators: tuple[str, ...]
    shapes: str
    schedules: dict[str, str]
    beyond: bool = False
    samples: str = ""
    replay: str = ""
    kernels: str = ""
    registers: int = REGISTERS
    skip: tuple[str, ...] = ()


class Row(msgspec.Struct, frozen=True, tag="row"):
    """One sample. `wrong`: schedule -> the largest share of wrong elements of an output, and that output.

    launched, resident  the kernels, and by schedule how many groups of the largest are alive at once; of cards alone
    """

    op: str
    label: str
    wrong: dict[str, tuple[float, str]]
    seen: list[Seen]
    judged: bool
    launched: list[Launched] = []
    resident: dict[str, int] = {}


class Ran(msgspec.Struct, frozen=True, tag="ran"):
    """An operator is through; `error` where it refused."""

    op: str
    schema: str
    error: str = ""


Message = Row | Ran | Roster | Failed


@dataclass
class RaceRun:
    """All that came back. `there`: the operators that are registered, of which those known were run.

    ends  operator -> how the process ended in it; "" where it ended in none
    """

    there: Roster = field(default_factory=lambda: Roster({}, ()))

    rows: list[Row] = field(default_factory=list)
    ran: dict[str, Ran] = field(default_factory=dict)
    ends: dict[str, Ended] = field(default_factory=dict)
    failed: str = ""
