"""Samples of the gated delta net: pools of states with holes between slots, sequences without a slot.

Slot 0 belongs to no sequence: it is the null block of vLLM's pools, which stands for "no slot".
"""

import torch
from torch import Tensor

from .build import Arguments, Choices, activations, normal, padded_rows, poison, sizes

HEAD = 128
FAR = 300  # slots of a pool whose numbers take more than a byte
SPARE = 3  # slots of the pools, the null block among them, and rows of the outputs that no sequence uses


def _layer(rows: int, slots: int, H: int, HV: int, variant: str) -> Arguments:
    dim = (2 * H + HV) * HEAD
    tensors = {
        "qkvz": activations(rows, dim + HV * HEAD, variant=variant, spread=0.3),
        "conv_state": activations(slots, 3, dim, variant=variant, spread=0.3),
        "conv_weight": normal(dim, 4, spread=0.5),
        "conv_bias": normal(dim, spread=0.1),
        "A_log": normal(HV, spread=0.5),
        "dt_bias": normal(HV, spread=0.5),
        "ba": normal(rows, 2 * HV),
        "ssm_state": normal(slots, HV, HEAD, HEAD, spread=0.1),
    }
    if variant == "faint":  # so that the epsilon of the unit vectors counts
        tensors["conv_bias"] *= 1e-3
    # Past 20, log(1 + exp(x)) is x, also where exp(x) is infinite; a small A_log lets the decay show it.
    tensors["ba"][0, -1], tensors["A_log"][-1] = 100.0, -6.0
    if variant == "strided":
        for name, pad in (("qkvz", 64), ("conv_state", 192), ("ba", 16), ("ssm_state", 320)):
            tensors[name] = padded_rows(tensors[name], pad)
    outputs = {name: poison(rows, HV, HEAD) for name in ("output", "z_out")}
    scale = 0.1 if variant == "outliers" else HEAD**-0.5
    return {**tensors, **outputs, "H": H, "HV": HV, "K": HEAD, "V": HEAD, "scale": scale}


def _slots(count: int, pool: int, variant: str) -> Tensor:
    """Distinct slots in no order; "negative" leaves every second sequence without one, "far" has the last one."""
    slots = torch.randperm(pool - 1)[:count].int() + 1
    if variant == "negative":
        slots[::2] = -1 - torch.arange(len(slots[::2]))
    if variant == "far" and (slots != pool - 1).all():
        slots[0] = pool - 1
    return slots


def gdn_conv_fused(N: int, H: int, HV: int, variant: str = "") -> Arguments:
    rows = N + 2 * (variant == "more-rows")
    pool = FAR if variant == "far" else rows + SPARE
    return {
        **_layer(rows, pool, H, HV, variant),
        "conv_state_indices": _slots(rows, pool, "negative" if variant == "no-history" else variant),
        "ssm_state_indices": _slots(rows, pool, variant),
        "N": N,
    }


def gdn_conv_fused_seq_spec(D: int, P: int, H: int, HV: int, variant: str = "") -> Arguments:
    rows = D * P + SPARE
    pool = FAR if variant == "far" else rows
    layer = _layer(rows, pool, H, HV, variant)
    slots = _slots(D * P, pool, "").reshape(D, P)
    accepted = torch.randint(0, P + 1, (D,), dtype=torch.int32)
    if variant == "negative":  # every second sequence has no slots at all
        slots[::2] = -1
    elif variant == "null-block":  # the last token has none
        slots[:, -1] = 0
        accepted = accepted.clamp(max=P - 1)
    elif variant == "null-start":  # the first sequence has none at all, the second starts from the first there is
        slots[0], slots[1], accepted = 0, torch.arange(1, P + 1), torch.ones(D, dtype=torch.int32)
    return {
        **layer,
        "spec_state_indices": slots,
        "token_indx": torch.randperm(rows)[: D * P].int(),
        "num_accepted_tokens": accepted,
        "num_spec_decodes": D,
        "num_spec_tokens": P,
    }


# Sequences, key heads, value heads. The third has more heads than the original's kernel for interleaved rows can take;
# the last two are those of a tensor-parallel part of a model: more groups than 32, and threads without a head.
ONE_TOKEN = sizes(
    "4x4x8 1x2x4 3x4x20 2x3x9 5x4x8xstrided 4x2x4xnegative 9x1x1 3x2x4xno-history 5x4x8 3x4x12 "
    "2x2x4xfaint 3x1x2xmore-rows 128x1x1 3x1x2xoutliers 3x1x1xfar"
)

SIZES: Choices = {
    "esimd_gdn_conv_fused": (gdn_conv_fused, ONE_TOKEN),
    "esimd_gdn_conv_fused_seq": (gdn_conv_fused, (*ONE_TOKEN, *sizes("2x16x48"))),
    # Sequences, tokens of each, key heads, value heads.
    "esimd_gdn_conv_fused_seq_spec": (
        gdn_conv_fused_seq_spec,
        sizes(
            "2x3x8x16 1x1x8x24 3x2x8x16xstrided 2x3x8x16xnegative 2x2x2x6 2x3x8x16xnull-block 1x2x8x16xfaint "
            "2x2x2x4xnull-start 1x2x8x16xoutliers 2x2x1x1xfar"
        ),
    ),
}
