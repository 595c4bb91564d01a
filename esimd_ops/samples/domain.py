"""Which arguments the published library handles right: outside, it reads past the end, drops tails or races in silence.

The domains of docs/operators.md. A check of somebody else's build keeps to this domain; the kernels of this kit compute
the formula outside it too, or refuse with the argument's name.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from .build import Arguments


def _split_k(N: int, K: int, wide: int, narrow: int, otherwise: int, odd_parts: bool) -> bool:
    """One token, N rows, K split over threads: K % `wide` for few rows, % `narrow` for some, % `otherwise` for many.

    With `odd_parts` a K that is no multiple of 128 takes a path of its own, right for multiples of 32.
    """
    if K < 2048 or N > 512:
        return K % otherwise == 0
    return K % (wide if N <= 128 else narrow) == 0 or (odd_parts and K % 32 == 0 and K % 128 != 0)


_table_p = partial(_split_k, wide=1024, narrow=512, otherwise=128, odd_parts=False)
_table_q = partial(_split_k, wide=1024, narrow=256, otherwise=32, odd_parts=True)
_table_r = partial(_split_k, wide=1024, narrow=512, otherwise=32, odd_parts=True)


def _table_b(N: int, K: int) -> bool:
    if N > 320:
        return K % 32 == 0
    if N <= 80:
        return K == 1024
    if N <= 160:
        return K in (256, 512) or (K <= 8192 and K % 1024 in (0, 576))
    return K in (128, 256) or (K <= 8192 and K % 512 in (0, 320))


def _pert(N: int, K: int) -> bool:
    redirected = K % 64 != 0 or (K < 512 and K % 256 != 0) or (1024 <= K < 2048 and K % 256 != 0)
    return _table_b(N, K) if redirected else _table_q(N, K)


def _gemm_fp8(M: int, weight: torch.Tensor) -> bool:
    N, K = weight.shape
    e5m2 = weight.dtype == torch.float8_e5m2
    engine = K % 64 == 0 and (not e5m2 or N >= 1024) and 1 < M <= 64 and N > 16
    bits = weight.view(torch.uint8)
    subnormal = (bits & 0x78 == 0) & (bits & 0x07 != 0)
    if not engine and not e5m2 and bool(subnormal.any()):
        return False  # read as zero there, exactly on the matrix engine
    if M == 1:
        return _table_r(N, K)
    if N <= 16:
        return K % 128 == 0
    return engine or (M > 3 and K >= 128) or (M <= 3 and _table_r(N, K))


def _per_thread(K: int) -> bool:
    """K elements held by one thread: K % 512 or K % 256 up to 8192, K % 128 up to 4096."""
    return (K % 256 == 0 and K <= 8192) or (K % 128 == 0 and K <= 4096)


def _blocks_of_64(K: int) -> bool:
    return (K % 256 == 0 and K <= 8192) or (K % 64 == 0 and K <= 4096)


def _resadd_int4(N: int, K: int) -> bool:
    if K % 128 != 0:
        return False
    split = 8 if N <= 128 and K >= 2048 else 4 if N <= 512 and K >= 2048 else 2 if N <= 512 and K >= 512 else 1
    while K % (128 * split) != 0:
        split //= 2
    return split > 1 or K < 512 or (K % 512 == 0 and K <= 8192)


def _scaled(N: int, K: int) -> bool:
    if (N >= 2048 and K % 2048 == 0) or (N >= 1024 and K % 1024 == 0):
        return False  # the residual is read while another group writes it
    return _blocks_of_64(K)


def _heads_int4(N: int, HV: int) -> bool:
    split = 1 if N > 512 else 8 if HV >= 8 else 4 if HV >= 4 else 2 if HV >= 2 else 1
    return HV % split == 0


def _row(tensor: torch.Tensor) -> bool:
    return tensor.numel() == tensor.shape[-1]


def _gdn_slots(a: Any) -> bool:
    return bool(((a["conv_state_indices"] >= 0) | (a["ssm_state_indices"] < 0)).all())


def _spec_slots(a: Any) -> bool:
    """Every sequence has a slot to start from; what one without gives is nobody's."""
    last = (a["num_accepted_tokens"].long() - 1).clamp(min=0)
    return bool((a["spec_state_indices"].gather(1, last[:, None]) > 0).all())


def _total(a: Any) -> int:
    return sum(tensor.shape[0] for name, tensor in a.items() if name in ("w0", "w1", "w2"))


# What is not named here has no limits that the samples reach.
RULES: dict[str, Callable[[Any], bool]] = {
    "esimd_gemv_fp8_pern": lambda a: _table_p(a["N"], a["K"]),
    "esimd_gemv_fp8_pern_fused2": lambda a: _table_p(_total(a), a["K"]),
    "esimd_gemv_fp8_pern_fused3": lambda a: _table_p(_total(a), a["K"]),
    "esimd_gemv_fp8_pert": lambda a: _pert(*a["weight"].shape),
    "esimd_gemv_fp8_pert_fused2": lambda a: _table_p(_total(a), a["w0"].shape[1]),
    "esimd_gemv_fp8_pert_fused3": lambda a: _table_p(_total(a), a["w0"].shape[1]),
    "esimd_gemv_fp8_pert_bmg": lambda a: _table_b(*a["weight"].shape),
    "esimd_gemv_fp16": lambda a: a["weight"].shape[1] % 32 == 0,
    "esimd_gemv_fp16_gelu_mul": lambda a: a["weight"].shape[1] % 32 == 0,
    "esimd_resadd_norm_gemv_fp8_pert": lambda a: _per_thread(a["gemv_weight"].shape[1]),
    "esimd_resadd_norm_gemv2_fp8_pert": lambda a: a["w0"].shape[1] % 512 == 0,
    "esimd_resadd_norm_gemv_int4_pert": lambda a: _resadd_int4(len(a["gemv_weight"]), a["hidden_states"].shape[-1]),
    "esimd_scaled_resadd_norm_gemv_fp8_pert": lambda a: _scaled(*a["qkv_weight"].shape),
    "esimd_norm_gemv_int4_pert": lambda a: _heads_int4(len(a["gemv_weight"]), a["HV"]),
    "esimd_rms_norm": lambda a: _row(a["input"]) and a["input"].shape[-1] >= 64,
    "esimd_fused_add_rms_norm": lambda a: _row(a["residual"]) and a["residual"].shape[-1] % 64 == 0,
    "esimd_fused_scaled_add_rms_norm": lambda a: _row(a["residual"]) and a["residual"].shape[-1] % 64 == 0,
    "esimd_fused_add_rms_norm_batched": lambda a: a["residual"].shape[-1] % 512 == 0,
    "esimd_rms_norm_gated": lambda a: a["x"].shape[-1] == 128,
    "esimd_norm_add_norm": lambda a: _row(a["h1"]) and a["h1"].shape[-1] % 64 == 0,
    "esimd_accum_norm_add_norm": lambda a: _blocks_of_64(a["h1"].shape[-1]),
    "esimd_norm_gemv_norm_fp16": lambda a: _blocks_of_64(a["residual"].shape[-1]),
    "esimd_qkv_split_norm_rope": lambda a: a["rotary_dim"] in (64, 256),
    "esimd_qkv_split_norm_rope_v": lambda a: a["rotary_dim"] in (64, 256),
    "esimd_gemm_fp8_pert": lambda a: _gemm_fp8(len(a["input"]), a["weight"]),
    "esimd_gemm_int4_pgrp": lambda a: len(a["input"]) <= 64 and len(a["weight"]) % 16 == 0,
    "esimd_gdn_conv_fused": lambda a: 4 * a["H"] + a["HV"] <= 32 and _gdn_slots(a),
    "esimd_gdn_conv_fused_seq": _gdn_slots,
    "esimd_gdn_conv_fused_seq_spec": lambda a: a["H"] == 8 and a["HV"] in (16, 24) and _spec_slots(a),
    "esimd_moe_scatter": lambda a: a["K"] % 128 == 0,
    "esimd_moe_scatter_fused": lambda a: a["K"] % 128 == 0 and a["num_experts"] % 32 == 0,
    "esimd_moe_gather": lambda a: a["K"] % 128 == 0 and a["topk"] <= 32,
    "esimd_moe_silu_mul": lambda a: a["N_half"] % 64 == 0,
    "esimd_moe_gelu_tanh_mul": lambda a: a["N_half"] % 64 == 0,
    "esimd_moe_gemm_fp8": lambda a: a["K"] % 16 == 0 and a["K"] >= 64,
    "esimd_moe_gemm_fp8_pert": lambda a: a["K"] % 16 == 0 and a["K"] >= 64,
}


def published(operator: str, arguments: Arguments) -> bool:
    """The published library computes the operator's formula for these arguments."""
    rule = RULES.get(operator)
    return rule is None or rule(arguments)
