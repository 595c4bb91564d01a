"""What one operator is put through, in the process that loaded it. Everything is told as values; nothing is printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from esimd_ops import registry
from esimd_ops.host import absent
from esimd_ops.reference import Tensors
from esimd_ops.samples import build
from esimd_ops.tensors import bits, digest, same_bits
from esimd_ops.trials.memory import Guarded, guarded, values
from esimd_ops.trials.messages import Observation, OperatorDone, Request
from esimd_ops.trials.roster import Hear
from esimd_ops.trials.subject import TrialSubject
from schema_patch.model import Severity, Verdict
from schema_patch.schemas import rules
from schema_patch.schemas.grammar import Schema

from .load import load

RESULTS_HELD = 8  # more than the four buffers of the largest ring seen
WARM = 2  # calls more, after which a cache has filled
REFUSAL = (RuntimeError, ValueError, TypeError, IndexError, AssertionError)


class CallRefused(Exception):
    """The operator raised an error."""


class ParityTrial:
    """One operator of one namespace. `run` gives everything that was found; `step` hears what comes next."""

    def __init__(self, operator: TrialSubject, schema: Schema, request: Request) -> None:
        self.operator, self.schema = operator, schema
        self.device, self.repeat, self.beyond = request.device, request.repeat, request.beyond
        self.effort = request.effort
        self.shapes = "decode" if self.effort == "quick" else request.shapes
        self.call = registry.overload(schema)
        self.told: dict[tuple[str, str], Observation] = {}
        self.more: dict[tuple[str, str], int] = {}
        self.digests: dict[str, dict[str, str]] = {}
        self.refused: list[str] = []
        self.foreign = ""  # the first sample whose result was not the buffer handed back

    def run(self, step: Hear) -> OperatorDone:
        verdict = self._schema()
        run: list[str] = []
        with torch.no_grad():
            for label in self.operator.chosen(self.shapes, beyond=self.beyond):
                step(label)
                if self._numbers(label):
                    run.append(label)
                    # At once: later samples may lie where this one lay.
                    if self.effort != "quick" and not self._found("PA101", "PA102", "PA105", "PA107"):
                        self._attempt("other values", self._others, label, step)
                if self._found("PA114"):
                    break  # what such an operator gives from now on is an accident of addresses
            if run and self.effort != "quick" and not self._found("PA114"):
                self._more(run, step)
        told = [self._with_count(key) for key in self.told]
        if any(found.severity == Severity.ERROR.value for found in told):
            verdict = Verdict.WRONG
        return OperatorDone(self.operator.name, verdict.value, len(run), tuple(told), tuple(self.refused), self.digests)

    def _found(self, *codes: str) -> bool:
        return any(code in codes for code, _ in self.told)

    def _more(self, run: list[str], step: Hear) -> None:
        """The checks that take several calls, on arguments that one call was fine with."""
        severe = self.effort == "severe"
        for label in dict.fromkeys((run[0], max(run, key=self._weight))) if severe else run[:1]:
            self._attempt("again under load", self._repeat, label, step)
        # What is wrong or does not repeat by itself says nothing of addresses.
        if not self._found("PA101", "PA102", "PA105", "PA107"):
            for label in run if severe else run[:1]:
                if self.beyond:
                    self._attempt("unaligned", self._unaligned, label, step)
                if self.operator.over:
                    self._attempt("in place", self._in_place, label, step)
        self._attempt("results held at once", self._returns, run[0], step)
        # torch's own buffers have no sentinels around them, and what does not repeat compares with nothing.
        if not self._found("PA106", "PA107"):
            dense = next((label for label in run if _dense(self.operator.make(label))), run[0])
            self._attempt("compiled", self._compiled, dense, step)

    def _attempt(self, kind: str, check: Callable[[str], None], label: str, step: Hear) -> None:
        step(f"{label}, {kind}")
        try:
            check(label)
        except CallRefused as error:
            self._tell("PA111", "", f"{label}, {kind}: {error}")

    def _tell(self, code: str, subject: str, message: str, severity: Severity = Severity.ERROR) -> None:
        """Once a kind and subject; that it happened again is only counted."""
        key = (code, subject)
        if key in self.told:
            self.more[key] = self.more.get(key, 0) + 1
        else:
            self.told[key] = Observation(code, message, severity.value)

    def _with_count(self, key: tuple[str, str]) -> Observation:
        told, more = self.told[key], self.more.get(key)
        return Observation(told.code, f"{told.message} (and {more} more samples)", told.severity) if more else told

    def _weight(self, label: str) -> int:
        return sum(value.numel() for value in self.operator.make(label).values() if isinstance(value, Tensor))

    def _guard(self, arguments: build.Arguments, shift: int = 0) -> dict[str, Guarded]:
        return guarded(arguments, self.device, shift)

    def _invoke(self, arguments: build.Arguments, guards: dict[str, Guarded]) -> Any:
        try:
            returned = self.call(**values(arguments, guards))
            if self.device == "xpu":
                torch.xpu.synchronize()
        except REFUSAL as error:
            raise CallRefused(_first_line(error)) from error
        return returned

    def _written(self, guards: dict[str, Guarded]) -> Tensors:
        return {name: guards[name].tensor.to("cpu", copy=True) for name in self.operator.writes}

    def _schema(self) -> Verdict:
        """Declared = table. What is declared too little is told where it is seen."""
        anonymous = _without_namespace(self.schema)
        judgement = rules.judge(anonymous, self.operator.effect(anonymous))
        if judgement.code and judgement.code not in ("SP101", "SP102"):
            self._tell(judgement.code, "schema", judgement.reason, judgement.severity)
        return judgement.verdict

    def _numbers(self, label: str) -> bool:
        """Numbers, exactly the arguments of the table, and nothing around them; False where the operator refused."""
        operator = self.operator
        arguments = self.operator.make(label)
        guards = self._guard(arguments)
        try:
            returned = self._invoke(arguments, guards)
        except CallRefused as error:
            beyond = "argument '" in str(error) and not operator.published(arguments)
            if beyond or absent.WHY in str(error):
                self.refused.append(f"{label}: {error}")
            else:
                self._tell("PA111", "", f"{label}: {error}")
            return False
        written = self._judge(label, arguments, guards)
        for name, guard in guards.items():
            if trespass := guard.trespass():
                self._tell("PA106", name, f"{label}: '{name}': wrote {trespass}")
            if not guard.changed:
                continue
            if name not in operator.writes and operator.certain:
                self._tell("PA104", name, f"{label}: '{name}' was written, and must only be read")
            elif name not in self.schema.writes:
                self._tell("PA103", name, f"{label}: '{name}' was written, and the schema does not say so")
        if operator.returned and isinstance(returned, Tensor) and not guards[operator.returned].is_held_by(returned):
            self.foreign = self.foreign or label
        self.digests[label] = {name: digest(value) for name, value in operator.comparable(written).items()}
        return True

    def _unaligned(self, label: str) -> None:
        """The numbers again, of tensors that begin where no vector load is aligned."""
        arguments = self.operator.make(label)
        guards = self._guard(arguments, shift=1)
        self._invoke(arguments, guards)
        self._judge(f"{label}, unaligned", arguments, guards)

    def _in_place(self, label: str) -> None:
        """The numbers again, where outputs are the inputs that they may be."""
        arguments = self.operator.make(label)
        guards = self._guard(arguments)
        guards |= {output: guards[source] for output, source in self.operator.over.items()}
        self._invoke(arguments, guards)
        self._judge(f"{label}, in place", arguments, guards)

    def _judge(self, label: str, arguments: build.Arguments, guards: dict[str, Guarded]) -> Tensors:
        """What the call has written; whether it is right, and stays as it is while that is found out."""
        before = {name: guards[name].before.cpu() for name in self.operator.writes}
        written = self._written(guards)
        truth = self.operator.truth(arguments)
        for told in truth.told(before, written) if truth else ():
            self._tell(told.code, told.message.split(":")[0], f"{label}: {told.message}")
        for name, value in self._written(guards).items():
            if not same_bits(value, written[name]):
                self._tell("PA107", name, f"{label}: '{name}' was still written after the call had returned")
        return written

    def _others(self, label: str) -> None:
        """Other values where the first ones lay, then these again over what those gave: what was kept shows."""
        arguments, others = self.operator.make(label), self.operator.others(label)
        truth = self.operator.truth(others) if others else None
        if others is None or truth is None:
            return
        guards = self._guard(arguments)
        again = self._steady(arguments, guards)
        for _ in range(WARM):
            for name in again():
                self._tell("PA107", name, f"{label}: '{name}' differs when called again")
                return
        first = self._written(guards)
        for name, guard in guards.items():
            guard.tensor.copy_(others[name])
        before = {name: guards[name].tensor.to("cpu", copy=True) for name in self.operator.writes}
        self._invoke(others, guards)
        for told in truth.told(before, self._written(guards)):
            self._tell("PA114", "", f"{label}: with other values at the same addresses, {told.message}")
        for name, guard in guards.items():
            if name not in self.operator.overwritten:
                guard.reset()
        left = self._written(guards)
        self._invoke(arguments, guards)
        for name in self.operator.overwritten:  # what the operator left alone holds what the others gave
            alone = bits(first[name]) == bits(guards[name].before.cpu())
            first[name] = torch.where(alone, left[name], first[name])
        for name in self._differing(first, self._written(guards)):
            self._tell("PA114", "", f"{label}: '{name}' differs after a call with other values")

    def _repeat(self, label: str) -> None:
        """The bits of an undisturbed run, again and again, while another thread runs it on other memory and values."""
        arguments = self.operator.make(label)
        others = self.operator.others(label) or arguments
        mine = self._guard(arguments)
        run = self._steady(arguments, mine)
        held = self._written(mine)
        elsewhere = self._steady(others, self._guard(others))
        for name, value in self._written(mine).items():
            if not same_bits(value, held[name]):
                self._tell(
                    "PA106", name, f"{label}: '{name}' was written by a later call, which was given other memory"
                )
        differing: list[str] = []
        with load(self.device, lambda: differing.extend(elsewhere())):
            for turn in range(1, self.repeat):
                for name in run():
                    self._tell("PA107", name, f"{label}: '{name}' differs in run {turn + 1} of {self.repeat}")
                    return
        for name in differing[:1]:
            self._tell("PA107", name, f"{label}: '{name}' differs when another thread calls too")

    def _steady(self, arguments: build.Arguments, guards: dict[str, Guarded]) -> Callable[[], list[str]]:
        """Runs the operator, now and then again: the outputs that have other bits than now."""

        def run() -> Tensors:
            for guard in guards.values():
                guard.reset()
            self._invoke(arguments, guards)
            return self._written(guards)

        first = run()
        return lambda: self._differing(first, run())

    def _differing(self, one: Tensors, other: Tensors) -> list[str]:
        """Outputs that have other bits, as they are compared."""
        expected, found = self.operator.comparable(one), self.operator.comparable(other)
        return [name for name, value in expected.items() if not same_bits(found[name], value)]

    def _returns(self, label: str) -> None:
        """Hold several results at once: each is the caller's buffer, or at least none is another's."""
        if not self.schema.returns:
            return
        arguments = self.operator.make(label)
        calls = [self._guard(arguments) for _ in range(RESULTS_HELD)]
        results = [self._invoke(arguments, guards) for guards in calls]
        if not all(isinstance(result, Tensor) for result in results):
            return
        storages = {result.untyped_storage().data_ptr() for result in results}
        if len(storages) < len(results):
            message = f"{len(results)} results held at once share {len(storages)} buffers"
            self._tell("PA108", "", message)
            return
        buffer = self.operator.returned
        if buffer and not all(guards[buffer].is_held_by(result) for result, guards in zip(results, calls, strict=True)):
            self.foreign = self.foreign or f"{label}, called again"
        if self.foreign:
            self._tell("PA109", "", f"{self.foreign}: the result is not '{buffer}'")

    def _compiled(self, label: str) -> None:
        """A program that makes its buffers, calls the operator and uses them, eager and compiled."""
        if self.schema.returns_alias:
            return  # torch.compile refuses it: told as such by the schema's judgement
        if not registry.has_fake(self.call.name()):
            fake = self.operator.fake(_without_namespace(self.schema))
            if fake is None:
                return  # nobody said what shape its result has
            torch.library.register_fake(self.schema.name, fake)
        arguments = self.operator.make(label)
        fixed = {name: value for name, value in arguments.items() if not isinstance(value, Tensor)}
        names = [name for name in arguments if name not in fixed]

        def tensors() -> list[Tensor]:
            return [guard.before for guard in self._guard(arguments).values()]

        call, written, overwritten = self.call, self.operator.writes, self.operator.overwritten

        def program(*tensors: Tensor) -> tuple[Tensor, ...]:
            values = dict(zip(names, tensors, strict=True))
            for name in written:
                if name not in overwritten:
                    values[name] = values[name].clone()
                elif values[name].is_floating_point():
                    values[name] = torch.full_like(values[name], torch.nan)
                else:
                    values[name] = torch.full_like(values[name], build.POISON)
            call(**fixed, **values)
            return tuple(values[name] for name in written)

        torch._dynamo.reset()
        try:
            eager = program(*tensors())
        except REFUSAL as error:
            raise CallRefused(_first_line(error)) from error
        try:
            compiled = torch.compile(program, backend="aot_eager", fullgraph=True)(*tensors())
        except REFUSAL as error:
            self._tell("PA110", "", f"{label}: cannot be compiled: {_first_line(error)}")
            return
        ours, theirs = (dict(zip(written, (t.cpu() for t in made), strict=True)) for made in (eager, compiled))
        if wrong := self._differing(ours, theirs):
            names_ = ", ".join(f"'{name}'" for name in wrong)
            self._tell("PA110", "", f"{label}: {names_} compiled differs from eager")


def _without_namespace(schema: Schema) -> Schema:
    """The table knows an operator by its name and arguments, under whatever namespace a build registers it."""
    return replace(schema, name=schema.name.rpartition("::")[2])


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _dense(arguments: build.Arguments) -> bool:
    return all(value.is_contiguous() for value in arguments.values() if isinstance(value, Tensor))
