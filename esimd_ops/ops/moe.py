"""Mixture of experts: routing, moving rows to their experts and back, grouped products. Kernels: `csrc/moe`."""

from torch import Tensor

from .derived import like, operator


@operator
def esimd_moe_topk(router_logits: Tensor, top_values: Tensor, top_indices: Tensor, T: int) -> Tensor:
    """The 8 largest of `softmax(router_logits)`, descending, ties to the lowest index, divided by their sum.
    Returns top_values.

    router_logits: [at least T, 128] fp16
    top_values: [at least T, 8] fp16, the first T rows overwritten
    top_indices: like top_values, int32, the first T rows overwritten
    """


@operator
def topk_v2(
    router_logits: Tensor, top_values: Tensor, top_indices: Tensor, T: int, num_experts: int, topk: int
) -> Tensor:
    """As esimd_moe_topk for num_experts 128, 256 or 512, topk 8 or 10. Returns top_values."""


@operator
def esimd_moe_scatter(
    hidden_states: Tensor,
    router_top_value: Tensor,
    sorted_token_ids: Tensor,
    scattered_hidden: Tensor,
    scattered_weights: Tensor,
    K: int,
    topk: int,
    total_expanded: int,
) -> Tensor:
    """Copy each token to the rows that are sorted by expert. Returns scattered_hidden.

    hidden_states: [T, K] fp16
    router_top_value: [T, topk] fp16
    sorted_token_ids: [total_expanded] int32, `t * topk + slot`
    scattered_hidden: [at least total_expanded, K] fp16, the first total_expanded rows overwritten
    scattered_weights: [at least total_expanded] fp16, likewise
    """


@operator
def esimd_moe_scatter_fused(
    hidden_states: Tensor,
    top_values: Tensor,
    top_indices: Tensor,
    scattered_hidden: Tensor,
    scattered_weights: Tensor,
    topk_ids: Tensor,
    expert_start: Tensor,
    max_tokens_out: Tensor,
    K: int,
    topk: int,
    T: int,
    num_experts: int,
) -> Tensor:
    """Sort by expert and copy each token to its rows. Returns scattered_hidden.

    hidden_states: [T, K] fp16
    top_values: [T, topk] fp16
    top_indices: [T, topk] int32, experts from 0 to num_experts - 1
    scattered_hidden: [T * topk, K] fp16, overwritten; the order within an expert is the operator's choice
    scattered_weights: [T * topk] fp16, overwritten
    topk_ids: [T * topk] int32, overwritten with the row of each (token, slot)
    expert_start: [num_experts + 1] int32, overwritten with where each expert's rows start
    max_tokens_out: [1] int32, overwritten with the largest number of rows of an expert
    """


@operator
def esimd_moe_gather(
    moe_output: Tensor, topk_ids: Tensor, scattered_weights: Tensor, final_hidden: Tensor, K: int, topk: int, T: int
) -> Tensor:
    """`final_hidden[t] = sum of moe_output[r] * scattered_weights[r] for r in topk_ids[t]`, rounded once.

    moe_output: [rows, K] fp16
    topk_ids: [T, topk] int32 rows
    scattered_weights: [rows] fp16
    final_hidden: [at least T, K] fp16, the first T rows overwritten
    """


@operator
def esimd_moe_silu_mul(input: Tensor, output: Tensor, N_gate_up: int, N_half: int, total_rows: int) -> Tensor:
    """`output = silu(gate) * up`.

    input: [at least total_rows, N_gate_up] fp16, the first N_half columns gate, the next N_half up
    output: [at least total_rows, N_half] fp16, the first total_rows rows overwritten
    """


@like(esimd_moe_silu_mul)
def esimd_moe_gelu_tanh_mul() -> Tensor:
    """As esimd_moe_silu_mul with gelu_tanh."""


@operator
def esimd_moe_gemm_fp8(
    input: Tensor,
    weight: Tensor,
    scale: Tensor,
    output: Tensor,
    expert_idx: Tensor,
    N: int,
    K: int,
    num_experts: int,
    max_tokens_per_expert: int,
) -> Tensor:
    """`output[r] = scale[e] * (input[r] @ weight[e].T)` for the rows of each expert e.

    input: [total, K] fp16
    weight: [num_experts, N, K] of bytes, taken as E5M2 whatever their dtype
    scale: [num_experts, N] fp32
    output: [total, N] fp16; rows that no expert owns keep what they hold
    expert_idx: [num_experts + 1] int32, expert e owns rows expert_idx[e] to expert_idx[e + 1]
    max_tokens_per_expert: at least the largest number of rows of an expert
    """


@like(esimd_moe_gemm_fp8)
def esimd_moe_gemm_fp8_pert() -> Tensor:
    """As esimd_moe_gemm_fp8 with one scale an expert.

    scale: [num_experts] fp32
    """


@operator
def esimd_moe_gemm_fp8_blockscale(
    input: Tensor,
    weight: Tensor,
    weight_scale: Tensor,
    output: Tensor,
    expert_idx: Tensor,
    N: int,
    K: int,
    num_experts: int,
    block_n: int,
    block_k: int,
) -> Tensor:
    """As esimd_moe_gemm_fp8 with one scale for 128 x 128 weights, every code exact.

    input: [total, K] fp16, K a multiple of 128
    weight: [num_experts, N, K] float8_e4m3fn, or uint8 holding such bits
    weight_scale: [num_experts, ceil(N/128), K/128] fp32
    block_n, block_k: 128
    """
