"""A plugin that brings the operators and their lying fakes into every process of a server, as a serving image does.

Every RMSNorm of a model calls them as a served model does: into buffers, whose results it reads there.
"""

import os

import torch


def register() -> None:
    torch.ops.load_library(os.environ["PUBLISHED_OPS"])
    import esimd_fake_ops  # noqa: F401
    from vllm.model_executor.layers.layernorm import RMSNorm

    RMSNorm.forward_native = _forward


def _forward(self, x, residual=None):
    kernels = torch.ops.custom_esimd_kernels_vllm
    if residual is not None:
        kernels.esimd_fused_add_rms_norm(x, residual, self.weight, self.variance_epsilon)
        return x, residual
    output = torch.zeros_like(x)
    kernels.esimd_rms_norm(x, output, self.weight, self.variance_epsilon)
    return output
