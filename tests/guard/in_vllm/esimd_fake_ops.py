"""Fakes as the served vLLM registers them when a model is imported: each says that the result is a new tensor."""

import torch

NAMESPACE = "custom_esimd_kernels_vllm"


@torch.library.register_fake(f"{NAMESPACE}::esimd_rms_norm")
def _(input: torch.Tensor, output: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.empty_like(input)


@torch.library.register_fake(f"{NAMESPACE}::esimd_fused_add_rms_norm")
def _(hidden_states: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.empty_like(hidden_states)
