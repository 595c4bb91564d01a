"""Is an output right? Values in, words out; the operator is not run here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from esimd_ops.reference import Tensors
from esimd_ops.reference.parts import absolute_values
from esimd_ops.samples.build import POISON, Arguments
from esimd_ops.table import Operator, Tolerance
from esimd_ops.tensors import bits
from schema_patch.model import Severity

from .messages import Observation

HALF = torch.finfo(torch.float16)
EPS = torch.finfo(torch.float32).eps
GROUP = 128  # elements among which a few may stray


class Truth(ABC):
    """What the outputs of one call should be."""

    @abstractmethod
    def told(self, before: Tensors, got: Tensors) -> list[Observation]:
        """What is wrong with them; `before` is what they held."""

    @abstractmethod
    def shares(self, got: Tensors) -> dict[str, float]:
        """Output -> the share of its elements that are wrong."""


@dataclass(frozen=True)
class ByReference(Truth):
    """What a call should give. `truth`: the fp64 reference, unrounded. `size`: the sums of absolute values behind each
    element. `half`: what PyTorch's own half precision makes of it, to be shown beside an error."""

    operator: Operator
    arguments: Arguments

    @cached_property
    def truth(self) -> Tensors:
        return self.operator.reference(**self.arguments, compute=torch.float64)

    @cached_property
    def size(self) -> Tensors:
        with absolute_values():
            return self.operator.reference(**self.arguments, compute=torch.float64)

    @cached_property
    def half(self) -> Tensors:
        return self.operator.reference(**self.arguments, compute=torch.float16)

    def told(self, before: Tensors, got: Tensors) -> list[Observation]:
        told, operator, truth = [], self.operator, self.truth
        for name in truth:
            left = _unwritten(before[name], got[name], truth[name])
            if name in operator.overwritten and left.any():
                told.append(Observation("PA105", f"'{name}': {share(left)} left unwritten"))
            if kept := _kept_rows_changed(before[name], got[name], truth[name]):
                told.append(Observation("PA102", f"'{name}': {kept} rows changed that keep what they hold"))
        if told:
            return told
        comparable = operator.comparable
        found, right, size = comparable(got), comparable(truth), comparable(self.size)
        for name, value in right.items():
            if problem := _difference(found[name], value, size[name], operator.tolerance(name)):
                code, words, worst = problem
                if code == "PA101" and not operator.tolerance(name).strays:
                    theirs = _error(comparable(self.half)[name], value)
                    words += f"; PyTorch's half precision errs by {float(theirs[worst][0]):.3g} there"
                    if operator.loose and _as_half(found[name], value, size[name]):
                        words += f"; the published kernel {operator.loose}"
                        told.append(Observation(code, f"'{name}': {words}", Severity.WARNING.value))
                        continue
                told.append(Observation(code, f"'{name}': {words}"))
        return told

    def shares(self, got: Tensors) -> dict[str, float]:
        operator = self.operator
        found, right, size = (operator.comparable(tensors) for tensors in (got, self.truth, self.size))
        off = {n: _off(found[n], value, size[n], operator.tolerance(n)) for n, value in right.items()}
        return {name: fraction(wrong) for name, wrong in off.items()}


def poisoned(tensor: Tensor) -> Tensor:
    return tensor.isnan() if tensor.is_floating_point() else tensor == POISON


def _unwritten(before: Tensor, got: Tensor, truth: Tensor) -> Tensor:
    """Elements that still hold their poison and should not."""
    return poisoned(before) & ~poisoned(truth) & (bits(got) == bits(before))


def _kept_rows_changed(before: Tensor, got: Tensor, truth: Tensor) -> int:
    """Rows that the reference leaves as they are, to the bit, and the operator did not."""
    if not truth.dim() or not truth.numel():
        return 0
    truth = truth.to(before.dtype)
    old, new, right = (bits(tensor).reshape(len(tensor), -1) for tensor in (before, got, truth))
    kept = (old == right).all(1)
    return int((kept & (old != new).any(1)).sum())


def _off(got: Tensor, truth: Tensor, size: Tensor, tolerance: Tolerance) -> Tensor:
    """Elements that are wrong, each for itself."""
    if tolerance.strays:
        return (got.int() - truth.int()).abs() > 1
    if tolerance.exact or not got.is_floating_point():
        return bits(got) != bits(truth.to(got.dtype))
    return _error(got, truth) > _allowed(truth, size, tolerance)


def _difference(got: Tensor, truth: Tensor, size: Tensor, tolerance: Tolerance) -> tuple[str, str, Tensor] | None:
    """A code, words and what is meant, the worst; None where all is well."""
    if tolerance.strays:
        return _strays(got, truth, tolerance.strays)
    wrong = _off(got, truth, size, tolerance)
    if not wrong.any():
        return None
    if tolerance.exact or not got.is_floating_point():
        return "PA102", f"{at(wrong, got, truth.to(got.dtype))}; {share(wrong)}, exact by contract", wrong
    error, allowed = _error(got, truth), _allowed(truth, size, tolerance)
    few = wrong.sum() <= max(1, tolerance.flips * wrong.numel())
    if tolerance.flips and few and not (error > allowed + 2 * _step(truth)).any():
        return None
    excess = (error - allowed).nan_to_num(posinf=torch.inf)
    worst = excess >= excess.max()
    most = f"error {float(error[worst][0]):.3g}, allowed {float(allowed[worst][0]):.3g}"
    return "PA101", f"{at(worst, got, truth)}: {most}; {share(wrong)}", worst


def _strays(got: Tensor, truth: Tensor, most: int) -> tuple[str, str, Tensor] | None:
    off = (got.int() - truth.int()).abs()
    crowd = (off != 0).unflatten(-1, (-1, GROUP)).sum(-1)
    if int(off.max()) <= 1 and int(crowd.max()) <= most:
        return None
    return (
        "PA101",
        f"{share(off != 0)} differ, by up to {int(off.max())} units and up to {int(crowd.max())} in {GROUP}",
        off != 0,
    )


def _error(got: Tensor, truth: Tensor) -> Tensor:
    """Distances from the truth, infinite for what is no number; 0 where the truth is none."""
    distance = (got.double() - truth).abs().nan_to_num(nan=torch.inf, posinf=torch.inf)
    overflow = (truth.abs() >= HALF.max) & got.isinf() & (got.sign() == truth.sign())
    return torch.where(truth.isnan() | (got == truth) | overflow, 0.0, distance)


def _step(truth: Tensor) -> Tensor:
    """The distance of neighbouring half-precision numbers there."""
    exponent = torch.frexp(truth.nan_to_num().abs().clamp(HALF.tiny, HALF.max)).exponent - 1
    return HALF.eps * torch.exp2(exponent.double())


def _allowed(truth: Tensor, size: Tensor, tolerance: Tolerance) -> Tensor:
    """Half a step for the last rounding, and the rounding errors of fp32 on the way."""
    return tolerance.steps * _step(truth) + tolerance.sums * EPS * size.nan_to_num().abs()


def _as_half(got: Tensor, truth: Tensor, size: Tensor) -> bool:
    """Two roundings to half of each term of the sums behind it, and a step of its own."""
    return bool((_error(got, truth) <= 2 * HALF.eps * size.abs() + _step(truth)).all())


def at(wrong: Tensor, got: Tensor, truth: Tensor) -> str:
    """The first place that is wrong, what is there and what should be."""
    place = [int(i) for i in wrong.nonzero()[0]]
    return f"{got[tuple(place)].item():.6g} at {place}, expected {truth[tuple(place)].item():.6g}"


def share(wrong: Tensor) -> str:
    return f"{int(wrong.sum())} of {wrong.numel()} elements"


def fraction(wrong: Tensor) -> float:
    return float(wrong.double().mean()) if wrong.numel() else 0.0
