"""Gated delta net, one decoding step: causal convolution of width 4, then the gated delta rule.

H key heads and HV value heads of 128; channels are `dim = (2 H + HV) * 128`, in the order q heads, k heads, v heads.
States live in pools of slots; an index names the slot of a sequence, a negative one none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from .parts import Expected, asked, kept, rounded, silu, terms

HEAD = 128
EPS = 1e-6


@dataclass(frozen=True)
class _Layer:
    """What is the same for every token."""

    H: int
    HV: int
    scale: float
    conv_weight: Tensor  # [dim, 4]
    conv_bias: Tensor  # [dim]
    A_log: Tensor  # [HV]
    dt_bias: Tensor  # [HV]
    compute: torch.dtype

    def step(self, x: Tensor, history: Tensor, b: Tensor, a: Tensor, S: Tensor) -> tuple[Tensor, Tensor]:
        """x [dim] and the 3 tokens before it [3, dim], b, a [HV], S [HV, V, K] -> output [HV, V], new S; unrounded."""
        compute, H, HV = self.compute, self.H, self.HV
        window = torch.cat((history, x[None])).to(compute)
        y = silu(terms(window * self.conv_weight.to(compute).T).sum(0) + terms(self.conv_bias.to(compute)))
        q, k, v = (part.reshape(-1, HEAD) for part in y.split((H * HEAD, H * HEAD, HV * HEAD)))
        # Every value head works with the key head of its group.
        q = (_unit(q) * self.scale).repeat_interleave(HV // H, 0)
        k = _unit(k).repeat_interleave(HV // H, 0)
        dt = softplus(a.to(compute) + self.dt_bias.to(compute), threshold=20.0)
        decay = torch.exp(-torch.exp(self.A_log.to(compute)) * dt)
        S = S.to(compute) * decay[:, None, None]
        d = (terms(v) + terms(-torch.einsum("hvk,hk->hv", terms(S), terms(k)))) * torch.sigmoid(b.to(compute))[:, None]
        S = terms(S) + terms(d[:, :, None] * k[:, None, :])
        return torch.einsum("hvk,hk->hv", terms(S), terms(q)), S


def _unit(heads: Tensor) -> Tensor:
    return heads * torch.rsqrt((heads * heads).sum(-1, keepdim=True) + EPS)


def _sequential(qkvz: Tensor, ba: Tensor, H: int, HV: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows `q | k | v | z` and `b | a` -> channels, z, b, a."""
    x, z = qkvz.split(((2 * H + HV) * HEAD, HV * HEAD), -1)
    b, a = ba.split(HV, -1)
    return x, z, b, a


def _interleaved(qkvz: Tensor, ba: Tensor, H: int, HV: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """As _sequential, of rows that hold such a group for each key head."""
    g = HV // H
    q, k, v, z = qkvz.unflatten(-1, (H, -1)).split((HEAD, HEAD, g * HEAD, g * HEAD), -1)
    b, a = ba.unflatten(-1, (H, -1)).split(g, -1)
    x = torch.cat([part.flatten(-2) for part in (q, k, v)], -1)
    return x, z.flatten(-2), b.flatten(-2), a.flatten(-2)


Split = Callable[[Tensor, Tensor, int, int], tuple[Tensor, Tensor, Tensor, Tensor]]


def _one_token(
    split: Split,
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
    scale: float,
    compute: torch.dtype = torch.float32,
) -> Expected:
    layer = _Layer(H, HV, scale, conv_weight, conv_bias, A_log, dt_bias, compute)
    x, z, b, a = split(qkvz, ba, H, HV)
    new = {"conv_state": conv_state.clone(), "ssm_state": kept(ssm_state, compute)}
    new |= {"output": kept(output, compute), "z_out": z_out.clone()}
    slots = zip(conv_state_indices.tolist()[:N], ssm_state_indices.tolist()[:N], strict=True)
    for row, (conv_slot, ssm_slot) in enumerate(slots):
        new["z_out"][row] = z[row].reshape(z_out.shape[1:])
        if ssm_slot < 0:
            new["output"][row] = 0
        else:
            history = conv_state[conv_slot] if conv_slot >= 0 else torch.zeros_like(conv_state[0])
            out, S = layer.step(x[row], history, b[row], a[row], ssm_state[ssm_slot])
            new["output"][row] = rounded(out).reshape(output.shape[1:])
            new["ssm_state"][ssm_slot] = rounded(S)
        if conv_slot >= 0:
            new["conv_state"][conv_slot] = torch.cat((conv_state[conv_slot, 1:], x[row][None]))
    return new


def esimd_gdn_conv_fused(**call: Any) -> Expected:
    """qkvz [N, (2 H + 2 HV) * 128] and ba [N, 2 HV], a group for each key head; conv_state [slots, 3, dim],
    conv_weight [dim, 4], conv_bias [dim], ssm_state [slots, HV, 128, 128], A_log, dt_bias [HV], indices [N] int32,
    output, z_out [N, HV, 128].

    Row i advances slots conv_state_indices[i] and ssm_state_indices[i] by one token. A negative index leaves that
    state alone: without a conv slot the history is zeros, without an ssm slot the row of output. z_out is a copy of z.
    """
    return asked(_one_token)(split=_interleaved, **call)


def esimd_gdn_conv_fused_seq(**call: Any) -> Expected:
    """As esimd_gdn_conv_fused with rows `q | k | v | z` in qkvz and `b | a` in ba."""
    return asked(_one_token)(split=_sequential, **call)


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
    scale: float,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """As esimd_gdn_conv_fused_seq for P tokens of each of D sequences, keeping the state after every token:
    spec_state_indices [D, P], token_indx [D * P] the rows of qkvz, ba, output, z_out, num_accepted_tokens [D].

    A sequence starts from the slot of its last accepted token, and token t is saved in slot spec_state_indices[s, t],
    rounded; between tokens the state is not. Neither a negative index nor 0, vLLM's null block, is a slot: nothing is
    saved there, and what starts there starts from zeros. Rows that token_indx does not name keep what they hold.
    """
    layer = _Layer(H, HV, scale, conv_weight, conv_bias, A_log, dt_bias, compute)
    x, z, b, a = _sequential(qkvz, ba, H, HV)
    new = {"conv_state": conv_state.clone(), "ssm_state": kept(ssm_state, compute)}
    new |= {"output": kept(output, compute), "z_out": z_out.clone()}
    for s in range(num_spec_decodes):
        slots = spec_state_indices[s].tolist()
        before = slots[max(int(num_accepted_tokens[s]) - 1, 0)]
        history = conv_state[before] if before > 0 else torch.zeros_like(conv_state[0])
        S = ssm_state[before] if before > 0 else torch.zeros_like(ssm_state[0])
        for t, save in enumerate(slots):
            row = int(token_indx[s * num_spec_tokens + t])
            out, S = layer.step(x[row], history, b[row], a[row], S)
            history = torch.cat((history[1:], x[row][None]))
            if save > 0:
                new["conv_state"][save], new["ssm_state"][save] = history, rounded(S)
            new["output"][row] = rounded(out).reshape(output.shape[1:])
            new["z_out"][row] = z[row].reshape(z_out.shape[1:])
    return new
