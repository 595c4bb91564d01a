"""The registered schemas are true: they match the operator table, and torch's own checks find nothing."""

import pytest
import torch

from esimd_ops import fakes, registry, samples
from esimd_ops.table import OPS
from esimd_ops.trials.memory import same_bits
from schema_patch.model import Verdict
from schema_patch.schemas import rules, table

FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def test_every_operator_is_built_sampled_and_has_a_reference(ops):
    """Tests run for what is registered: this one sees to it that nothing is missing there."""
    assert set(registry.names("esimd_ops")) == set(OPS) == set(samples.SIZES) == set(table.load().entries)
    assert all(hasattr(ops, name) for name in OPS)


def test_schema_matches_the_operator_table(ops, operator):
    found = registry.schemas("esimd_ops")[operator]
    assert rules.judge(found, table.load().effect(found)).verdict is Verdict.RIGHT
    assert found.writes == OPS[operator].writes
    assert not found.returns


def test_the_typed_function_writes_as_the_operator_does_and_returns_the_buffer_of_the_table(ops, operator):
    theirs, ours, named = (samples.make(operator).arguments for _ in range(3))
    getattr(ops, operator)(*theirs.values())
    returned = OPS[operator].wrapper(*ours.values())
    assert returned is (ours[OPS[operator].returned] if OPS[operator].returned else None)
    assert OPS[operator].wrapper(**named) is (named[OPS[operator].returned] if OPS[operator].returned else None)
    if operator != "esimd_moe_scatter_fused":  # whose order of rows is its own choice
        assert all(same_bits(ours[name], theirs[name]) for name in OPS[operator].writes)
    assert OPS[operator].wrapper.__doc__


def test_a_fake_writes_nothing_and_sees_devices(ops, operator):
    assert registry.has_fake(registry.schemas("esimd_ops")[operator])
    arguments = samples.make(operator).arguments
    meta = [value.to("meta") if isinstance(value, torch.Tensor) else value for value in arguments.values()]
    assert getattr(ops, operator)(*meta) is None
    mixed = [arguments[OPS[operator].arguments[0]], *meta[1:]]
    with pytest.raises(
        RuntimeError, match=rf"{operator}: argument '\w+': expected a tensor on (cpu|meta), found one on"
    ):
        getattr(ops, operator)(*mixed)


def test_registering_fakes_again_changes_nothing(ops):
    assert fakes.register() == ()


def test_opcheck(ops, operator):
    # The outputs are poisoned: a buffer that already held the result would hide an undeclared write.
    arguments = samples.make(operator).arguments
    call, kinds = getattr(ops, operator).default, ["test_schema", "test_faketensor", "test_aot_dispatch_dynamic"]
    if any(value.dtype in FP8 for value in arguments.values() if isinstance(value, torch.Tensor)):
        # It compares with allclose, which torch has not for fp8; test_parity.py sees the same by bits.
        kinds.remove("test_schema")
    torch.library.opcheck(call, tuple(arguments.values()), test_utils=kinds)
