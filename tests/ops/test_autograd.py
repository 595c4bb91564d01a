"""Writes that autograd can see: a saved tensor that is overwritten is an error in backward(), as after torch's own."""

import pytest
import torch

from esimd_ops import samples
from esimd_ops.table import OPS


def versions(tensors):
    return {name: tensor._version for name, tensor in tensors.items()}


def test_what_is_written_has_a_new_version_and_nothing_else(ops, operator):
    for call in (getattr(ops, operator), OPS[operator].wrapper):
        arguments = samples.make(operator).arguments
        tensors = {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}
        before = versions(tensors)
        call(*arguments.values())
        risen = {name for name, version in versions(tensors).items() if version > before[name]}
        assert risen == set(OPS[operator].writes)


@pytest.mark.parametrize("mode", ["grad", "no_grad"])
def test_a_gradient_is_never_made_of_values_that_were_overwritten(ops, mode):
    x, saved = torch.ones(1, 64, requires_grad=True), torch.full((1, 64), 3.0).half()
    y = (x * saved).sum()
    with torch.set_grad_enabled(mode == "grad"):
        ops.esimd_rms_norm(torch.ones(1, 64).half(), saved, torch.ones(64).half(), 1e-6)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_view_and_its_base_have_one_version(ops):
    base = torch.zeros(2, 64).half()
    ops.esimd_rms_norm(torch.ones(1, 64).half(), base[1:], torch.ones(64).half(), 1e-6)
    assert base._version == 1


@pytest.mark.parametrize("name", ["input", "weight", "output"])
def test_a_tensor_that_requires_grad_is_refused_unless_no_gradient_is_asked_for(ops, name):
    arguments = samples.make("esimd_rms_norm").arguments
    arguments[name].requires_grad_()
    message = f"esimd_rms_norm: argument '{name}': expected a tensor that does not require grad, found one that does"
    with pytest.raises(RuntimeError, match=message):
        ops.esimd_rms_norm(*arguments.values())
    with torch.no_grad():
        ops.esimd_rms_norm(*arguments.values())
    assert arguments["output"].isfinite().all()


def test_under_inference_mode_nothing_is_counted(ops):
    with torch.inference_mode():
        arguments = samples.make("esimd_rms_norm").arguments
        ops.esimd_rms_norm(*arguments.values())
        assert arguments["output"].isfinite().all()
