"""One operator of a host build under several schedules, and once with every access judged. Values in, values out.

Runs in the process that loaded the libraries. Knows samples and references; reads no report.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from esimd_ops import registry, samples
from esimd_ops.samples import domain
from esimd_ops.table import Operator, Tensors
from esimd_ops.trials import judge
from esimd_ops.trials.memory import Guarded, bits
from schema_patch.schemas.grammar import Schema

from .order import Row
from .watch import Runtime, Seen


def cases(operator: Operator, shapes: str, *, beyond: bool) -> dict[str, samples.Arguments]:
    """Label -> arguments: all samples in the domain of the published library, or the first of them ("decode")."""
    made = {samples.label(sizes): samples.make(operator.name, sizes).arguments for sizes in operator.samples}
    chosen = [label for label, arguments in made.items() if beyond or domain.published(operator.name, arguments)]
    return {label: made[label] for label in (chosen if shapes == "all" else chosen[:1])}


def run(
    operator: Operator,
    schema: Schema,
    label: str,
    arguments: samples.Arguments,
    runtime: Runtime,
    schedules: dict[str, str],
    step: Callable[[str], None],
) -> Row:
    """Raises what the operator raises."""
    call = registry.overload(schema)
    truth = operator.reference(**arguments, compute=torch.float64)
    half = operator.reference(**arguments, compute=torch.float16)

    def outcome(words: str) -> tuple[float, str]:
        runtime.schedule(words)
        guards = guard(arguments)
        call(*values(arguments, guards))
        got = {name: guards[name].tensor for name in operator.writes}
        shares = wrong_shares(operator, got, truth, half)
        return max(((share, name) for name, share in shares.items()), default=(0.0, ""))

    wrong = {}
    with torch.no_grad():
        for name, words in schedules.items():
            step(f"{label}, {name}")
            wrong[name] = outcome(words)
        seen: list[Seen] = []
        if runtime.checks:
            step(f"{label}, every access")
            runtime.schedule(next(iter(schedules.values())))
            guards = guard(arguments)
            for name, guarded in guards.items():
                watch(runtime, name, guarded.tensor, operator)
            with runtime.watching() as seen:
                call(*values(arguments, guards))
    return Row(operator.name, label, wrong, seen, runtime.checks)


def wrong_shares(operator: Operator, got: Tensors, truth: Tensors, half: Tensors) -> dict[str, float]:
    """Output -> the share of its elements that are further from the truth than its tolerance, as parity judges them."""
    found, expected, rounded = (operator.comparable(tensors) for tensors in (got, truth, half))
    shares = {}
    for name, right in expected.items():
        tolerance = operator.tolerance(name)
        if tolerance.strays:
            off = (found[name].int() - right.int()).abs() > 1
        elif tolerance.exact or not right.is_floating_point():
            off = bits(found[name]) != bits(right)
        else:
            off = judge._error(found[name], right) > judge._allowed(right, rounded[name], tolerance)
        shares[name] = float(off.double().mean()) if off.numel() else 0.0
    return shares


def guard(arguments: samples.Arguments) -> dict[str, Guarded]:
    """The tensors of a call, each a copy with room around it."""
    return {name: Guarded(value, "cpu") for name, value in arguments.items() if isinstance(value, Tensor)}


def values(arguments: samples.Arguments, guards: dict[str, Guarded]) -> list[object]:
    """What to call the operator with."""
    return [guards[name].tensor if name in guards else value for name, value in arguments.items()]


def watch(runtime: Runtime, name: str, tensor: Tensor, operator: Operator) -> None:
    """Tell the runtime of one argument: its bounds, whether it may be written, and whether it holds anything yet."""
    if not tensor.numel():
        return
    extent = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    size = tensor.element_size()
    written, inplace = name in operator.writes, name in operator.inplace
    runtime.watch(
        name, tensor.data_ptr(), extent * size, size, read_only=not written, unwritten=written and not inplace
    )
