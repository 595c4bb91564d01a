"""OPS: the 47 operators. Start here: what an operator writes, means, is tried with and may deviate by.

Which there are, and what each writes and returns, is read from `schema_patch/schemas/policies/esimd.toml`, its meaning
from `reference`, its arguments from `samples`, its callable form from `ops`; this table says how closely a kernel has
to follow. Numbers follow one rule (`HALF`); SPECIAL names what is stricter or of another kind.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from schema_patch.schemas import table as policies

from . import ops, reference, samples
from .reference.parts import Tensors, nibbles
from .samples.build import Sizes


@dataclass(frozen=True)
class Tolerance:
    """How far an output may be from the fp64 truth, which is not rounded.

    steps   half-precision steps of the element itself: half of one for rounding it
    sums    plus so many fp32 roundings of the sums of absolute values behind it
    flips   such a share of elements may be off by two steps more: a rounding on the way, which the contract has, may
            fall to the other side
    strays  instead: so many elements in 128 may be off by one unit
    """

    steps: float = 0.5
    sums: float = 8.0
    flips: float = 0.0
    strays: int = 0

    @property
    def exact(self) -> bool:
        return not (self.steps or self.sums or self.strays)


HALF = Tolerance()
EXACT = Tolerance(steps=0, sums=0)
FLIPS = Tolerance(flips=0.002)  # what is rounded on the way was not exact
STEEP = Tolerance(sums=64.0)  # an error of the exponent is one of the power: exp(-exp(A) * dt)
NIBBLES = Tolerance(steps=0, sums=0, strays=2)


def as_written(tensors: Tensors) -> Tensors:
    """The outputs are compared as they are."""
    return tensors


def quantised(tensors: Tensors) -> Tensors:
    """Nibbles one by one, since the last bit of a division may move one across its border."""
    return {"out_scale": tensors["out_scale"], "out_qweight": nibbles(tensors["out_qweight"])}


def by_destination(tensors: Tensors) -> Tensors:
    """Rows as their tokens find them: where in its expert's interval a row goes is the operator's choice."""
    ids = tensors["topk_ids"].long()
    rows = ids.clamp(0, len(tensors["scattered_weights"]) - 1)
    starts = tensors["expert_start"].long()
    return {
        "scattered_hidden": tensors["scattered_hidden"][rows],
        "scattered_weights": tensors["scattered_weights"][rows],
        "topk_ids": torch.sort(ids).values,  # every row once
        "expert_start": starts,
        "max_tokens_out": tensors["max_tokens_out"],
        "expert of topk_ids": torch.searchsorted(starts[1:].contiguous(), ids, right=True),
    }


@dataclass(frozen=True)
class Operator:
    """One operator, described in docs/operators.md. Outputs not named in `tolerances` follow HALF."""

    name: str
    tolerances: dict[str, Tolerance] = field(default_factory=dict)
    comparable: Callable[[Tensors], Tensors] = as_written
    over: dict[str, str] = field(default_factory=dict)  # an output that may be the very tensor of an input
    loose: str = ""  # what the published kernel is known to round that the contract does not; a warning, not an error

    @property
    def reference(self) -> Callable[..., Tensors]:
        """The plain PyTorch meaning: arguments by name -> the expected value of each argument written."""
        return reference.of(self.name)

    @property
    def wrapper(self) -> Callable[..., object]:
        """The typed Python function that calls the kernel."""
        function: Callable[..., object] = getattr(ops, self.name)
        return function

    @property
    def samples(self) -> tuple[Sizes, ...]:
        """The sizes to try it with, for `samples.make`; the first is the ordinary one."""
        return samples.SIZES[self.name][1]

    @property
    def _entry(self) -> policies.Entry:
        return policies.load().entries[self.name]

    @property
    def arguments(self) -> tuple[str, ...]:
        return self._entry.arguments

    @property
    def overwritten(self) -> tuple[str, ...]:
        """Arguments whose old contents do not matter, where they are written at all."""
        return self._entry.writes

    @property
    def inplace(self) -> tuple[str, ...]:
        """Arguments that are read and written."""
        return self._entry.inplace

    @property
    def writes(self) -> tuple[str, ...]:
        written = {*self.overwritten, *self.inplace}
        return tuple(name for name in self.arguments if name in written)

    @property
    def returned(self) -> str | None:
        """The argument that the published form hands back."""
        returns = self._entry.returns
        return returns if returns in self.arguments else None

    def tolerance(self, output: str) -> Tolerance:
        return self.tolerances.get(output, HALF)


GDN = {"conv_state": EXACT, "z_out": EXACT, "ssm_state": STEEP, "output": STEEP}
TOPK = {"top_indices": EXACT}
SCATTER = {"scattered_hidden": EXACT, "scattered_weights": EXACT}

SPECIAL: dict[str, dict[str, Any]] = {
    "esimd_rms_norm": {"over": {"output": "input"}},
    "esimd_fused_scaled_add_rms_norm": {"tolerances": {"hidden_states": FLIPS}},
    "esimd_norm_add_norm": {"tolerances": {"out": FLIPS}, "over": {"out": "h2_raw"}},
    "esimd_accum_norm_add_norm": {"tolerances": {"out": FLIPS}},
    "esimd_qkv_split_norm_rope": {"tolerances": {"v_out": EXACT}},
    "esimd_gemm_int4_pgrp": {"loose": "makes its weights in half precision throughout"},
    "esimd_gdn_conv_fused": {"tolerances": GDN},
    "esimd_gdn_conv_fused_seq": {"tolerances": GDN},
    "esimd_gdn_conv_fused_seq_spec": {"tolerances": GDN},
    "esimd_moe_topk": {"tolerances": TOPK},
    "topk_v2": {"tolerances": TOPK},
    "esimd_moe_scatter": {"tolerances": SCATTER},
    "esimd_moe_scatter_fused": {"tolerances": SCATTER, "comparable": by_destination},
    "q4_0_quantize": {"tolerances": {"out_qweight": NIBBLES}, "comparable": quantised},
}
OPS = {name: Operator(name, **SPECIAL.get(name, {})) for name in policies.load().entries}
