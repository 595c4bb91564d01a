"""Is an output right? Values in, words out; the operator is not run here."""

from __future__ import annotations

import torch
from torch import Tensor

from esimd_ops.samples import POISON
from esimd_ops.table import Operator, Tolerance

from .memory import bits
from .messages import Observation

SMALLEST = 2.0**-24  # the smallest half-precision number above zero
GROUP = 128  # elements among which a few may stray


def outputs(
    operator: Operator,
    before: dict[str, Tensor],
    got: dict[str, Tensor],
    truth: dict[str, Tensor],
    half: dict[str, Tensor],
) -> list[Observation]:
    """What is wrong with the written arguments. `truth` is the fp64 reference, `half` PyTorch's own half precision."""
    told = []
    for name in truth:
        if name in operator.overwritten and (missing := _unwritten(before[name], got[name], truth[name])):
            told.append(Observation("PA105", f"'{name}': {missing} of {truth[name].numel()} elements left unwritten"))
        if kept := _kept_rows_changed(before[name], got[name], truth[name]):
            told.append(Observation("PA102", f"'{name}': {kept} rows changed that keep what they hold"))
    if told:
        return told
    comparable = operator.comparable
    found, expected, rounded = comparable(got), comparable(truth), comparable(half)
    for name, value in expected.items():
        problem = _difference(found[name], value, rounded[name], operator.tolerance(name))
        if problem:
            told.append(Observation(problem[0], f"'{name}': {problem[1]}"))
    return told


def shares(
    operator: Operator, got: dict[str, Tensor], truth: dict[str, Tensor], half: dict[str, Tensor]
) -> dict[str, float]:
    """Output -> the share of its elements that are further from the truth than its tolerance."""
    found, expected, rounded = (operator.comparable(tensors) for tensors in (got, truth, half))
    told = {}
    for name, right in expected.items():
        tolerance = operator.tolerance(name)
        if tolerance.strays:
            off = (found[name].int() - right.int()).abs() > 1
        elif tolerance.exact or not right.is_floating_point():
            off = bits(found[name]) != bits(right)
        else:
            off = _error(found[name], right) > _allowed(right, rounded[name], tolerance)
        told[name] = float(off.double().mean()) if off.numel() else 0.0
    return told


def _unwritten(before: Tensor, got: Tensor, truth: Tensor) -> int:
    """Elements that still hold their poison and should not."""
    poisoned = before.isnan() & ~truth.isnan() if before.is_floating_point() else (before == POISON) & (truth != POISON)
    return int((poisoned & (bits(got) == bits(before))).sum())


def _kept_rows_changed(before: Tensor, got: Tensor, truth: Tensor) -> int:
    """Rows that the reference leaves as they are, to the bit, and the operator did not."""
    if not truth.dim() or not truth.numel():
        return 0
    old, new, right = (bits(tensor).reshape(len(tensor), -1) for tensor in (before, got, truth))
    kept = (old == right).all(1)
    return int((kept & (old != new).any(1)).sum())


def _difference(got: Tensor, truth: Tensor, half: Tensor, tolerance: Tolerance) -> tuple[str, str] | None:
    """A code and words, or None where all is well."""
    if tolerance.strays:
        return _strays(got, truth, tolerance.strays)
    if tolerance.exact or not truth.is_floating_point():
        wrong = bits(got) != bits(truth)
        return ("PA102", f"{_at(wrong, got, truth)}; {_share(wrong)}, exact by contract") if wrong.any() else None
    error, allowed = _error(got, truth), _allowed(truth, half, tolerance)
    wrong = error > allowed
    if not wrong.any():
        return None
    worst = (error - allowed).nan_to_num(posinf=torch.inf) >= (error - allowed).nan_to_num(posinf=torch.inf).max()
    most = f"error {float(error[worst][0]):.3g}, allowed {float(allowed[worst][0]):.3g}"
    return "PA101", f"{_at(worst, got, truth)}: {most}; {_share(wrong)}"


def _strays(got: Tensor, truth: Tensor, most: int) -> tuple[str, str] | None:
    off = (got.int() - truth.int()).abs()
    crowd = (off != 0).unflatten(-1, (-1, GROUP)).sum(-1)
    if int(off.max()) <= 1 and int(crowd.max()) <= most:
        return None
    return (
        "PA101",
        f"{_share(off != 0)} differ, by up to {int(off.max())} units and up to {int(crowd.max())} in {GROUP}",
    )


def _error(got: Tensor, truth: Tensor) -> Tensor:
    """Distances from the truth, infinite for what is no number; 0 where the truth is none."""
    distance = (got.double() - truth.double()).abs().nan_to_num(nan=torch.inf, posinf=torch.inf)
    return torch.where(truth.isnan() | (got == truth), 0.0, distance)


def _allowed(truth: Tensor, half: Tensor, tolerance: Tolerance) -> Tensor:
    right = truth.double().nan_to_num()
    theirs = (half.double() - truth.double()).abs()
    theirs = theirs[theirs.isfinite()]  # an overflow of PyTorch's own is no excuse
    largest = theirs.max() if len(theirs) else torch.zeros(())
    return tolerance.half_errors * largest + tolerance.steps * (torch.finfo(truth.dtype).eps * right.abs() + SMALLEST)


def _at(wrong: Tensor, got: Tensor, truth: Tensor) -> str:
    """The first place that is wrong, what is there and what should be."""
    place = [int(i) for i in wrong.nonzero()[0]]
    return f"{got[tuple(place)].item():.6g} at {place}, expected {truth[tuple(place)].item():.6g}"


def _share(wrong: Tensor) -> str:
    return f"{int(wrong.sum())} of {wrong.numel()} elements"
