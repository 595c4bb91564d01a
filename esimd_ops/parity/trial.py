"""What one operator is put through, in the process that loaded it. Everything is told as values; nothing is printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from esimd_ops import registry, samples
from esimd_ops.trials.memory import Guarded, digest, same_bits
from esimd_ops.trials.messages import Done, Observation
from esimd_ops.trials.subject import Subject
from schema_patch.model import Severity, Verdict
from schema_patch.schemas import rules
from schema_patch.schemas.grammar import Schema

from .load import Load

RESULTS_HELD = 8  # more than the four buffers of the largest ring seen
REFUSAL = (RuntimeError, ValueError, TypeError, IndexError)


class Refused(Exception):
    """The operator raised an error."""


Step = Callable[[str], None]


class Trial:
    """One operator of one namespace. `run` gives everything that was found; `step` hears what comes next."""

    def __init__(
        self,
        operator: Subject,
        schema: Schema,
        *,
        device: str,
        repeat: int,
        beyond: bool,
        shapes: str = "all",
        effort: str = "usual",
    ) -> None:
        self.operator, self.schema = operator, schema
        self.device, self.repeat, self.beyond, self.shapes = device, repeat, beyond, shapes
        self.effort = effort
        self.call = registry.by_position(schema)
        self.told: dict[tuple[str, str], Observation] = {}
        self.more: dict[tuple[str, str], int] = {}
        self.digests: dict[str, dict[str, str]] = {}
        self.refused: list[str] = []

    def run(self, step: Step) -> Done:
        verdict = self._schema()
        run: list[str] = []
        with torch.no_grad():
            for label in self.operator.chosen(self.shapes, beyond=self.beyond):
                step(label)
                if self._numbers(label):
                    run.append(label)
            if run and self.effort != "quick":
                self._more(run, step)
        told = [self._with_count(key) for key in self.told]
        if any(found.severity == Severity.ERROR.value for found in told):
            verdict = Verdict.WRONG
        return Done(self.operator.name, verdict.value, len(run), tuple(told), tuple(self.refused), self.digests)

    def _more(self, run: list[str], step: Step) -> None:
        """The checks that take several calls, on arguments that one call was fine with."""
        severe = self.effort == "severe"
        for label in dict.fromkeys((run[0], max(run, key=self._weight))) if severe else run[:1]:
            self._attempt("again under load", self._repeat, label, step)
        # What is wrong or does not repeat by itself says nothing of earlier calls and addresses.
        if not any(code in ("PA101", "PA102", "PA105", "PA107") for code, _ in self.told):
            for label in run if severe else run[:1]:
                self._attempt("other values", self._others, label, step)
                if self.beyond:
                    self._attempt("unaligned", self._unaligned, label, step)
        self._attempt("results held at once", self._returns, run[0], step)
        # torch's own buffers have no sentinels around them, and what does not repeat compares with nothing.
        if not any(code in ("PA106", "PA107") for code, _ in self.told):
            dense = next((label for label in run if _dense(self._arguments(label))), run[0])
            self._attempt("compiled", self._compiled, dense, step)

    def _attempt(self, kind: str, check: Callable[[str], None], label: str, step: Step) -> None:
        step(f"{label}, {kind}")
        try:
            check(label)
        except Refused as error:
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

    def _arguments(self, label: str) -> samples.Arguments:
        return self.operator.make(label)

    def _weight(self, label: str) -> int:
        return sum(value.numel() for value in self._arguments(label).values() if isinstance(value, Tensor))

    def _guard(self, arguments: samples.Arguments, shift: int = 0) -> dict[str, Guarded]:
        """Each tensor between sentinels; those of half precision `shift` elements past an aligned address."""
        return {
            name: Guarded(value, self.device, shift if value.dtype is torch.float16 else 0)
            for name, value in arguments.items()
            if isinstance(value, Tensor)
        }

    def _invoke(self, arguments: samples.Arguments, guards: dict[str, Guarded]) -> Any:
        values = [guards[name].tensor if name in guards else value for name, value in arguments.items()]
        try:
            returned = self.call(*values)
            if self.device == "xpu":
                torch.xpu.synchronize()
        except REFUSAL as error:
            raise Refused(_first_line(error)) from error
        return returned

    def _written(self, guards: dict[str, Guarded]) -> dict[str, Tensor]:
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
        arguments = self._arguments(label)
        guards = self._guard(arguments)
        try:
            self._invoke(arguments, guards)
        except Refused as error:
            if "argument '" in str(error) and not operator.published(arguments):
                self.refused.append(f"{label}: {error}")
            else:
                self._tell("PA111", "", f"{label}: {error}")
            return False
        for name, guard in guards.items():
            if trespass := guard.trespass():
                self._tell("PA106", name, f"{label}: '{name}': wrote {trespass}")
            if not guard.changed:
                continue
            if name not in operator.writes and operator.certain:
                self._tell("PA104", name, f"{label}: '{name}' was written, and must only be read")
            elif name not in self.schema.writes:
                self._tell("PA103", name, f"{label}: '{name}' was written, and the schema does not say so")
        self._judge(label, arguments, guards)
        got = operator.comparable(self._written(guards))
        self.digests[label] = {name: digest(value) for name, value in got.items()}
        return True

    def _unaligned(self, label: str) -> None:
        """The numbers again, of tensors that begin where no vector load is aligned."""
        arguments = self._arguments(label)
        guards = self._guard(arguments, shift=1)
        self._invoke(arguments, guards)
        self._judge(f"{label}, unaligned", arguments, guards)

    def _judge(self, label: str, arguments: samples.Arguments, guards: dict[str, Guarded]) -> None:
        before = {name: guards[name].before.cpu() for name in self.operator.writes}
        truth = self.operator.truth(arguments)
        for told in truth.told(before, self._written(guards)) if truth else ():
            self._tell(told.code, told.message.split(":")[0], f"{label}: {told.message}")

    def _others(self, label: str) -> None:
        """Other values where the first ones lay, and these again: what was kept from an earlier call shows."""
        arguments, others = self._arguments(label), self.operator.others(label)
        truth = self.operator.truth(others) if others else None
        if others is None or truth is None:
            return
        guards = self._guard(arguments)
        self._invoke(arguments, guards)
        first = self.operator.comparable(self._written(guards))
        for name, guard in guards.items():
            guard.tensor.copy_(others[name])
        before = {name: guards[name].tensor.to("cpu", copy=True) for name in self.operator.writes}
        self._invoke(others, guards)
        for told in truth.told(before, self._written(guards)):
            self._tell("PA114", "", f"{label}: with other values at the same addresses, {told.message}")
        for guard in guards.values():
            guard.reset()
        self._invoke(arguments, guards)
        again = self.operator.comparable(self._written(guards))
        for name, value in first.items():
            if not same_bits(again[name], value):
                self._tell("PA114", "", f"{label}: '{name}' differs after a call with other values")

    def _repeat(self, label: str) -> None:
        """The bits of an undisturbed run, again and again, while the operator also runs elsewhere on other memory."""
        arguments = self._arguments(label)
        guards, others = self._guard(arguments), self._guard(arguments)

        def run() -> dict[str, Tensor]:
            for guard in guards.values():
                guard.reset()
            self._invoke(arguments, guards)
            return self.operator.comparable(self._written(guards))

        def elsewhere() -> None:
            for guard in others.values():
                guard.reset()
            self._invoke(arguments, others)

        first = run()
        with Load(self.device, elsewhere):
            for turn in range(1, self.repeat):
                again = run()
                for name, value in first.items():
                    if not same_bits(again[name], value):
                        self._tell("PA107", name, f"{label}: '{name}' differs in run {turn + 1} of {self.repeat}")
                        return

    def _returns(self, label: str) -> None:
        """Hold several results at once: each is the caller's buffer, or at least none is another's."""
        if not self.schema.returns:
            return
        arguments = self._arguments(label)
        calls = [self._guard(arguments) for _ in range(RESULTS_HELD)]
        results = [self._invoke(arguments, guards) for guards in calls]
        if not all(isinstance(result, Tensor) for result in results):
            return
        buffer = self.operator.returned
        storages = {result.untyped_storage().data_ptr() for result in results}
        if len(storages) < len(results):
            message = f"{len(results)} results held at once share {len(storages)} buffers"
            self._tell("PA108", "", message)
        elif buffer and any(
            result.data_ptr() != guards[buffer].tensor.data_ptr() for result, guards in zip(results, calls, strict=True)
        ):
            self._tell("PA109", "", f"the result is not '{buffer}'")

    def _compiled(self, label: str) -> None:
        """A program that makes its buffers, calls the operator and uses them, eager and compiled."""
        if self.schema.returns_alias:
            return  # torch.compile refuses it: told as such by the schema's judgement
        if not registry.has_fake(self.schema):
            fake = self.operator.fake(_without_namespace(self.schema))
            if fake is None:
                return  # nobody said what shape its result has
            torch.library.register_fake(self.schema.name, fake)
        arguments = self._arguments(label)
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
                    values[name] = torch.full_like(values[name], samples.POISON)
            call(*[fixed[name] if name in fixed else values[name] for name in arguments])
            return tuple(values[name] for name in written)

        torch._dynamo.reset()
        try:
            eager = program(*tensors())
        except REFUSAL as error:
            raise Refused(_first_line(error)) from error
        try:
            compiled = torch.compile(program, backend="aot_eager", fullgraph=True)(*tensors())
        except REFUSAL as error:
            self._tell("PA110", "", f"{label}: cannot be compiled: {_first_line(error)}")
            return
        ours = self.operator.comparable(dict(zip(written, (t.cpu() for t in eager), strict=True)))
        theirs = self.operator.comparable(dict(zip(written, (t.cpu() for t in compiled), strict=True)))
        wrong = [name for name, value in ours.items() if not same_bits(value, theirs[name])]
        if wrong:
            names_ = ", ".join(f"'{name}'" for name in wrong)
            self._tell("PA110", "", f"{label}: {names_} compiled differs from eager")


def _without_namespace(schema: Schema) -> Schema:
    """The table knows an operator by its name and arguments, under whatever namespace a build registers it."""
    return replace(schema, name=schema.name.rpartition("::")[2])


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _dense(arguments: samples.Arguments) -> bool:
    return all(value.is_contiguous() for value in arguments.values() if isinstance(value, Tensor))
