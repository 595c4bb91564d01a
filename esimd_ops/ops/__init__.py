"""The operators as typed Python functions, one module a family. Load the extension first: `esimd_ops.native.load()`.

Every function writes into buffers that its caller made, as its docstring says, and returns the buffer that the original
library returns (or nothing, where that returns nothing), although the operators themselves return nothing: that is what
torch.compile can trace. All tensors are dense and on one device unless said otherwise, and outputs share no memory with
other arguments. What an operator cannot do right it refuses: RuntimeError, with the operator, the argument, what was
expected and what was found.

`inverse_rms(x)` is `1 / sqrt(mean(x^2) + eps)` over the last dimension. Sums are made in fp32 and rounded once.
Formulas: docs/operators.md, by name.
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
from .quant import q4_0_quantize
from .rope import esimd_qkv_split_norm_rope, esimd_qkv_split_norm_rope_v

__all__ = [
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
    "q4_0_quantize",
    "topk_v2",
]
