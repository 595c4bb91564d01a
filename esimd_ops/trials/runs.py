"""Operators tried one after the other in a process that may die of them: what comes back. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import msgspec

from schema_patch.model import Checked, Location, ToolError, Verdict

from . import child
from .messages import Failed, Roster, TrialRequest

D = TypeVar("D")  # the last message of one operator
R = TypeVar("R", bound="TrialRun[Any]")


@dataclass
class TrialRun(Generic[D]):
    """All that is known so far.

    there   the operators that are registered, and which of them are run
    done    by operator, those that are through
    ends    operator -> how the process ended in it; "" where it ended in none
    failed  why nothing could be started
    """

    there: Roster = field(default_factory=lambda: Roster({}, ()))
    done: dict[str, D] = field(default_factory=dict)
    ends: dict[str, child.Ended] = field(default_factory=dict)
    failed: str = ""

    def hear(self, message: Any) -> None:
        if isinstance(message, Roster):
            self.there = message
        elif isinstance(message, Failed):
            self.failed = message.message
        else:
            self.done[message.op] = message

    def go(
        self: R, program: child.ChildProgram, request: TrialRequest, step: Callable[[str], None], step_s: float
    ) -> R:
        """To the end of the request. A child that dies is started again without the operator that it died of."""

        def without(died: tuple[str, ...]) -> TrialRequest:
            return msgspec.structs.replace(request, skip=(*self.done, *died))

        self.ends = child.run(replace(program, step_s=step_s), without, self.hear, step)
        return self

    def errors(self, place: Location, asked: tuple[str, ...]) -> Iterator[ToolError]:
        """Where an operator that was asked for is not there, that is an error, not a clean result."""
        if self.failed:
            yield ToolError(self.failed, place)
            return
        for op in asked:
            if op not in self.there.run:
                yield ToolError(f"{op} is {self.why_not(op)}", place)

    def unknown(self, place: Location, asked: tuple[str, ...]) -> Iterator[Checked]:
        """Operators that are there, where none was asked for by name, and that nobody said how to try."""
        for op, schema in self.there.schemas.items():
            if op not in self.there.run and not asked:
                yield Checked(op, place, schema, Verdict.UNKNOWN, self.why_not(op))

    def why_not(self, op: str) -> str:
        if op in self.there.schemas:
            return "registered, but nobody said what to try it with: neither the operator table nor --samples"
        return "not registered"
