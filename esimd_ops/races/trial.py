"""One operator of a host build under several schedules, and once with every access judged. Values in, values out.

Runs in the process that loaded the libraries. Knows what a subject says of itself; reads no report.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from esimd_ops import registry
from esimd_ops.reference import Tensors
from esimd_ops.samples import build
from esimd_ops.tensors import bits, reach
from esimd_ops.trials.judge import fraction
from esimd_ops.trials.memory import guarded, values
from esimd_ops.trials.subject import TrialSubject
from schema_patch.schemas.grammar import Schema

from .cards import Launched
from .order import SampleRow
from .residency import Residency
from .watch import AccessSeen, HostRuntime


class RaceTrial:
    """One operator. `run` raises what the operator raises; `step` hears what comes next."""

    def __init__(
        self, subject: TrialSubject, schema: Schema, residency: Residency, step: Callable[[str], None]
    ) -> None:
        self.subject, self.runtime, self.residency, self.step = subject, residency.runtime, residency, step
        self._call = registry.overload(schema)

    def run(self, label: str, arguments: build.Arguments, schedules: dict[str, str]) -> SampleRow:
        """The operator with these arguments under each schedule, and what the runtime saw."""
        wrong: dict[str, tuple[float, str]] = {}
        launched: list[Launched] = []
        with torch.no_grad():
            truth = self.subject.truth(arguments)
            shares = truth.shares if truth else None
            if shares is None or self.residency.asked(schedules):
                self.step(f"{label}, as a first run")
                outputs, launched = self._first(arguments)
                shares = shares or partial(_differing, outputs)
            for name, words in schedules.items():
                self.step(f"{label}, {name}")
                self.residency.schedule(words, launched)
                off = shares(self._outputs(arguments))
                wrong[name] = max(((share, output) for output, share in off.items()), default=(0.0, ""))
            seen = self._seen(label, arguments, next(iter(schedules.values())), launched) if self.runtime.checks else []
        resident = {name: held for name, words in schedules.items() if (held := self.residency.of(words, launched))}
        return SampleRow(self.subject.name, label, wrong, seen, self.runtime.checks, launched, resident)

    def _first(self, arguments: build.Arguments) -> tuple[Tensors, list[Launched]]:
        """Groups one after the other: the outputs, and the kernels that were launched."""
        self.runtime.schedule("ascending,lockstep")
        self.runtime.launches()
        return self._outputs(arguments), self.runtime.launches()

    def _outputs(self, arguments: build.Arguments) -> Tensors:
        guards = guarded(arguments, "cpu")
        self._call(**values(arguments, guards))
        return {name: guards[name].tensor for name in self.subject.writes if name in guards}

    def _seen(self, label: str, arguments: build.Arguments, words: str, launched: list[Launched]) -> list[AccessSeen]:
        self.step(f"{label}, every access")
        self.residency.schedule(words, launched)
        guards = guarded(arguments, "cpu")
        for name, each in guards.items():
            watch(self.runtime, name, each.tensor, self.subject)
        with self.runtime.watching() as seen:
            self._call(**values(arguments, guards))
        return seen


def _differing(first: Tensors, got: Tensors) -> dict[str, float]:
    """Output -> the share of its elements that have other bits than in the first run."""
    return {name: fraction(bits(got[name]) != bits(value)) for name, value in first.items()}


def watch(runtime: HostRuntime, name: str, tensor: Tensor, subject: TrialSubject) -> None:
    """Tell the runtime of one argument: its bounds, whether it may be written, and whether it holds anything yet."""
    if not tensor.numel():
        return
    size = tensor.element_size()
    read_only = name not in subject.writes and subject.certain
    runtime.watch(
        name, tensor.data_ptr(), reach(tensor) * size, size, read_only=read_only, unwritten=name in subject.overwritten
    )
