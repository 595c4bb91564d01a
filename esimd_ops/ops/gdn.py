"""Gated delta net, one decoding step: causal convolution and gated delta rule. The kernels are `csrc/gdn`."""

from torch import Tensor

from .derived import like, operator


@operator
def esimd_gdn_conv_fused(
    qkvz: Tensor,
    conv_state: Tensor,
    conv_weight: Tensor,
    conv_bias: Tensor,
    conv_state_indices: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    ba: Tensor,
    ssm_state: Tensor,
    ssm_state_indices: Tensor,
    output: Tensor,
    z_out: Tensor,
    N: int,
    H: int,
    HV: int,
    K: int,
    V: int,
    scale: float,
) -> Tensor:
    """Advance N sequences by one token; rows hold a group for each key head. Formula: docs/operators.md.

    Channels: `dim = (2 H + HV) * 128`, the heads of q, k, v. Rows and slots may lie apart, each of them dense.

    qkvz: [N, (2 H + 2 HV) * 128] fp16, for each key head `q, k, its v, its z`
    conv_state: [slots, 3, dim] fp16, the last three tokens of each slot, oldest first, updated in place
    conv_weight: [dim, 4] fp16, the last tap for the new token
    conv_bias: [dim] fp16
    conv_state_indices: [N] int32 slots of conv_state, negative for none
    A_log, dt_bias: [HV] fp16
    ba: [N, 2 HV] fp16, for each key head `its b, its a`
    ssm_state: [slots, HV, 128, 128] fp16, updated in place
    ssm_state_indices: [N] int32 slots of ssm_state; a negative one gives a row of zeros
    output, z_out: [N, HV, 128] fp16, overwritten
    N: sequences
    H, HV: key heads and value heads, HV a multiple of H; K, V: 128
    scale: of q, usually 128 ** -0.5
    """


@like(esimd_gdn_conv_fused)
def esimd_gdn_conv_fused_seq() -> Tensor:
    """As esimd_gdn_conv_fused for rows in sequence: all of `q, k, v, z` in qkvz, all of `b, a` in ba."""


@operator
def esimd_gdn_conv_fused_seq_spec(
    qkvz: Tensor,
    conv_state: Tensor,
    conv_weight: Tensor,
    conv_bias: Tensor,
    spec_state_indices: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    ba: Tensor,
    ssm_state: Tensor,
    output: Tensor,
    z_out: Tensor,
    token_indx: Tensor,
    num_accepted_tokens: Tensor,
    num_spec_decodes: int,
    num_spec_tokens: int,
    H: int,
    HV: int,
    K: int,
    V: int,
    scale: float,
) -> Tensor:
    """As esimd_gdn_conv_fused_seq for several tokens of each sequence, keeping the state after every one.

    A sequence starts from the slot of its last accepted token. A negative slot is none, nor is 0, vLLM's null block:
    nothing is saved there, and what starts there starts from zeros. The state is rounded where it is saved alone.

    spec_state_indices: [num_spec_decodes, num_spec_tokens] int32 slots of both states, 0 or negative for none
    output, z_out: [rows, HV, 128] fp16, overwritten in the rows that token_indx names
    token_indx: [num_spec_decodes * num_spec_tokens] int32 rows
    num_accepted_tokens: [num_spec_decodes] int32, at most num_spec_tokens
    """
