"""Gated delta net, one decoding step: causal convolution of width 4, then the gated delta rule.

H key heads and HV value heads of 128; channels are `dim = (2 H + HV) * 128`, in the order q heads, k heads, v heads.
States live in pools of slots; an index names the slot of a sequence, a negative one none.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn.functional import softplus

from .parts import CallArguments, Tensors, kept, rounded, silu, terms

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


def _outputs(call: CallArguments) -> Tensors:
    new = {name: kept(getattr(call, name), call.compute) for name in ("ssm_state", "output")}
    return {"conv_state": call.conv_state.clone(), "z_out": call.z_out.clone(), **new}


def _layer(call: CallArguments) -> _Layer:
    return _Layer(**{field.name: getattr(call, field.name) for field in fields(_Layer)})


def _one_token(call: CallArguments, split: Split) -> Tensors:
    """Row i advances slots conv_state_indices[i] and ssm_state_indices[i] by one token. A negative index leaves that
    state alone: without a conv slot the history is zeros, without an ssm slot the row of output. z_out is a copy of z.
    """
    layer, new, conv_state = _layer(call), _outputs(call), call.conv_state
    x, z, b, a = split(call.qkvz, call.ba, call.H, call.HV)
    slots = zip(call.conv_state_indices.tolist()[: call.N], call.ssm_state_indices.tolist()[: call.N], strict=True)
    for row, (conv_slot, ssm_slot) in enumerate(slots):
        new["z_out"][row] = z[row].reshape(call.z_out.shape[1:])
        if ssm_slot < 0:
            new["output"][row] = 0
        else:
            history = conv_state[conv_slot] if conv_slot >= 0 else torch.zeros_like(conv_state[0])
            out, S = layer.step(x[row], history, b[row], a[row], call.ssm_state[ssm_slot])
            new["output"][row] = rounded(out).reshape(call.output.shape[1:])
            new["ssm_state"][ssm_slot] = rounded(S)
        if conv_slot >= 0:
            new["conv_state"][conv_slot] = torch.cat((conv_state[conv_slot, 1:], x[row][None]))
    return new


def esimd_gdn_conv_fused(call: CallArguments) -> Tensors:
    return _one_token(call, _interleaved)


def esimd_gdn_conv_fused_seq(call: CallArguments) -> Tensors:
    return _one_token(call, _sequential)


def esimd_gdn_conv_fused_seq_spec(call: CallArguments) -> Tensors:
    """P tokens of each of D sequences, keeping the state after every token: spec_state_indices [D, P].

    A sequence starts from the slot of its last accepted token, and token t is saved in slot spec_state_indices[s, t],
    rounded; between tokens the state is not. Neither a negative index nor 0, vLLM's null block, is a slot: nothing is
    saved there, and what starts there starts from zeros. Rows that token_indx does not name keep what they hold.
    """
    layer, new, conv_state, ssm_state = _layer(call), _outputs(call), call.conv_state, call.ssm_state
    x, z, b, a = _sequential(call.qkvz, call.ba, call.H, call.HV)
    for s in range(call.num_spec_decodes):
        slots = call.spec_state_indices[s].tolist()
        before = slots[max(int(call.num_accepted_tokens[s]) - 1, 0)]
        history = conv_state[before] if before > 0 else torch.zeros_like(conv_state[0])
        S = ssm_state[before] if before > 0 else torch.zeros_like(ssm_state[0])
        for t, save in enumerate(slots):
            row = int(call.token_indx[s * call.num_spec_tokens + t])
            out, S = layer.step(x[row], history, b[row], a[row], S)
            history = torch.cat((history[1:], x[row][None]))
            if save > 0:
                new["conv_state"][save], new["ssm_state"][save] = history, rounded(S)
            new["output"][row] = rounded(out).reshape(call.output.shape[1:])
            new["z_out"][row] = z[row].reshape(call.z_out.shape[1:])
    return new
