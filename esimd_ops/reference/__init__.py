"""The plain PyTorch meaning of each operator, from its published contract; no device code, no knowledge of kernels.

Every function takes its operator's arguments in order and returns the expected value of each argument that the operator
writes, by name. Arguments are only read, so an in-place operand means its value before the call, and what an operator
leaves unwritten keeps its old contents. All arithmetic is in `compute` (fp32, as the operators do it); `half(...)`
marks the roundings that are part of the contract. With `compute=torch.float64` the same text is the truth that kernels
are judged by, with `torch.float16` it is PyTorch's own half-precision answer.

Shapes: T rows of K elements, N outputs. All tensors are fp16 unless said otherwise. One module a family.
"""

from .gdn import esimd_gdn_conv_fused, esimd_gdn_conv_fused_seq, esimd_gdn_conv_fused_seq_spec
from .gemm import esimd_gemm_fp8_blockscale, esimd_gemm_fp8_pert, esimd_gemm_int4_pgrp
from .gemv import (
    esimd_gemv_fp8_blockscale_fp16_fused2,
    esimd_gemv_fp8_blockscale_fused2,
    esimd_gemv_fp8_pern,
    esimd_gemv_fp8_pern_fused2,
    esimd_gemv_fp8_pern_fused3,
    esimd_gemv_fp8_pert,
    esimd_gemv_fp8_pert_bmg,
    esimd_gemv_fp8_pert_fused2,
    esimd_gemv_fp8_pert_fused3,
    esimd_gemv_fp16,
    esimd_gemv_fp16_gelu_mul,
    esimd_gemv_int4,
    esimd_gemv_int4_fused2,
)
from .moe import (
    esimd_moe_gather,
    esimd_moe_gelu_tanh_mul,
    esimd_moe_gemm_fp8,
    esimd_moe_gemm_fp8_blockscale,
    esimd_moe_gemm_fp8_pert,
    esimd_moe_scatter,
    esimd_moe_scatter_fused,
    esimd_moe_silu_mul,
    esimd_moe_topk,
    topk_v2,
)
from .norm import (
    esimd_accum_norm_add_norm,
    esimd_fused_add_rms_norm,
    esimd_fused_add_rms_norm_batched,
    esimd_fused_scaled_add_rms_norm,
    esimd_norm_add_norm,
    esimd_rms_norm,
    esimd_rms_norm_gated,
)
from .norm_gemv import (
    esimd_norm_gemv_fp8_blockscale,
    esimd_norm_gemv_fp8_pert,
    esimd_norm_gemv_int4_pert,
    esimd_norm_gemv_norm_fp16,
    esimd_resadd_norm_gemv2_fp8_pert,
    esimd_resadd_norm_gemv_fp8_pert,
    esimd_resadd_norm_gemv_int4_pert,
    esimd_scaled_resadd_norm_gemv_fp8_pert,
)
from .parts import Decoder, Expected, fp8, int4_weight, inverse_rms
from .quant import q4_0_quantize
from .rope import esimd_qkv_split_norm_rope, esimd_qkv_split_norm_rope_v

__all__ = [
    "Decoder",
    "Expected",
    "esimd_accum_norm_add_norm",
    "esimd_fused_add_rms_norm",
    "esimd_fused_add_rms_norm_batched",
    "esimd_fused_scaled_add_rms_norm",
    "esimd_gdn_conv_fused",
    "esimd_gdn_conv_fused_seq",
    "esimd_gdn_conv_fused_seq_spec",
    "esimd_gemm_fp8_blockscale",
    "esimd_gemm_fp8_pert",
    "esimd_gemm_int4_pgrp",
    "esimd_gemv_fp8_blockscale_fp16_fused2",
    "esimd_gemv_fp8_blockscale_fused2",
    "esimd_gemv_fp8_pern",
    "esimd_gemv_fp8_pern_fused2",
    "esimd_gemv_fp8_pern_fused3",
    "esimd_gemv_fp8_pert",
    "esimd_gemv_fp8_pert_bmg",
    "esimd_gemv_fp8_pert_fused2",
    "esimd_gemv_fp8_pert_fused3",
    "esimd_gemv_fp16",
    "esimd_gemv_fp16_gelu_mul",
    "esimd_gemv_int4",
    "esimd_gemv_int4_fused2",
    "esimd_moe_gather",
    "esimd_moe_gelu_tanh_mul",
    "esimd_moe_gemm_fp8",
    "esimd_moe_gemm_fp8_blockscale",
    "esimd_moe_gemm_fp8_pert",
    "esimd_moe_scatter",
    "esimd_moe_scatter_fused",
    "esimd_moe_silu_mul",
    "esimd_moe_topk",
    "esimd_norm_add_norm",
    "esimd_norm_gemv_fp8_blockscale",
    "esimd_norm_gemv_fp8_pert",
    "esimd_norm_gemv_int4_pert",
    "esimd_norm_gemv_norm_fp16",
    "esimd_qkv_split_norm_rope",
    "esimd_qkv_split_norm_rope_v",
    "esimd_resadd_norm_gemv2_fp8_pert",
    "esimd_resadd_norm_gemv_fp8_pert",
    "esimd_resadd_norm_gemv_int4_pert",
    "esimd_rms_norm",
    "esimd_rms_norm_gated",
    "esimd_scaled_resadd_norm_gemv_fp8_pert",
    "fp8",
    "int4_weight",
    "inverse_rms",
    "q4_0_quantize",
    "topk_v2",
]
