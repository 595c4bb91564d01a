"""The registered schemas are true: they match the operator table, and torch's own checks find nothing."""

from functools import partial

import misuse
import pytest
import torch

from esimd_ops import fakes, registry, samples
from esimd_ops.samples import gdn, gemv, moe, norm, norm_gemv, quant, rope
from esimd_ops.table import OPS
from esimd_ops.tensors import same_bits
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


def test_the_typed_function_writes_as_operator_and_reference_do_and_returns_the_buffer_of_the_table(ops, operator):
    theirs, ours, named = (samples.make(operator).arguments for _ in range(3))
    getattr(ops, operator)(*theirs.values())
    returned = OPS[operator].wrapper(*ours.values())
    assert returned is (ours[OPS[operator].returned] if OPS[operator].returned else None)
    assert OPS[operator].wrapper(**named) is (named[OPS[operator].returned] if OPS[operator].returned else None)
    if operator != "esimd_moe_scatter_fused":  # whose order of rows is its own choice
        assert all(same_bits(ours[name], theirs[name]) for name in OPS[operator].writes)
    comparable = OPS[operator].comparable
    found = comparable({name: ours[name] for name in OPS[operator].writes})
    for name, value in comparable(OPS[operator].reference(**samples.make(operator).arguments)).items():
        torch.testing.assert_close(found[name].float(), value.float(), rtol=8e-3, atol=8e-3, equal_nan=True)
    assert OPS[operator].wrapper.__doc__


def test_a_fake_writes_nothing_and_sees_devices(ops, operator):
    assert registry.has_fake(f"esimd_ops::{operator}")
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


@pytest.mark.parametrize("kind", ["dtype", "gaps", "one column more"])
def test_a_fake_refuses_what_the_operator_refuses(ops, operator, kind):
    """In the same words, whether the sizes are known while it is traced or not."""
    for spoilt in misuse.of(samples.make(operator).arguments):
        if spoilt.kind == kind:
            told = refusal(ops, operator, spoilt.arguments)
            assert refusal(ops, operator, {k: meta(v) for k, v in spoilt.arguments.items()}) == told
            assert told is not None


def test_a_call_that_would_be_refused_is_refused_while_it_is_traced(ops):
    def program(x, output):
        ops.esimd_rms_norm(x, output, torch.ones(64).half(), 1e-6)
        return output + 1

    compiled = torch.compile(program, backend="aot_eager", dynamic=True, fullgraph=True)
    assert compiled(torch.ones(3, 64).half(), torch.zeros(3, 64).half()).shape == (3, 64)
    with pytest.raises(Exception, match=r"argument 'output': expected shape \[3, 64\], found \[4, 64\]"):
        compiled(torch.ones(3, 64).half(), torch.zeros(4, 64).half())


@pytest.mark.parametrize("name", ["input", "output", "weight"])
def test_none_for_a_tensor(ops, name):
    arguments = {**samples.make("esimd_rms_norm").arguments, name: None}
    assert (
        refusal(ops, "esimd_rms_norm", arguments) == f"esimd_rms_norm: argument '{name}': expected a tensor, found None"
    )


@pytest.mark.parametrize("left", [0, 64])
def test_memory_that_was_taken_away(ops, left):
    arguments = samples.make("esimd_rms_norm").arguments
    arguments["input"].untyped_storage().resize_(left)
    assert f"bytes of memory, found {left}" in refusal(ops, "esimd_rms_norm", arguments)


def meta(value):
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")


def refusal(ops, operator, arguments):
    """The first line of what the operator says, None where it takes the arguments."""
    try:
        getattr(ops, operator)(*arguments.values())
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return None


def test_opcheck(ops, operator, monkeypatch):
    # The outputs are poisoned: a buffer that already held the result would hide an undeclared write.
    arguments = samples.make(operator).arguments
    monkeypatch.setattr(torch, "allclose", partial(close, torch.allclose))
    torch.library.opcheck(getattr(ops, operator).default, tuple(arguments.values()))


def close(allclose, one, other, **words):
    """What opcheck compares with, by bytes for fp8, of which torch can make no difference."""
    return same_bits(one, other) if one.dtype in FP8 else allclose(one, other, **words)


@pytest.mark.parametrize("family", [norm, gemv, norm_gemv, rope, gdn, moe, quant], ids=lambda module: module.__name__)
def test_inductor_calls_each_operator_as_it_stands(ops, family):
    """All operators of a family in one program: what Inductor makes of it has the bits of the eager run."""
    entries = [OPS[name] for name in family.SIZES]
    calls = [(entry.wrapper, entry.arguments, entry.writes) for entry in entries]
    given = [samples.make(entry.name).arguments for entry in entries]
    fixed = [{k: v for k, v in each.items() if not isinstance(v, torch.Tensor)} for each in given]
    tensors = [{k: v for k, v in each.items() if isinstance(v, torch.Tensor)} for each in given]

    def program(tensors):
        results = []
        for (call, names, writes), numbers, theirs in zip(calls, fixed, tensors, strict=True):
            mine = {k: v.clone() if k in writes else v for k, v in theirs.items()}
            call(*[numbers[k] if k in numbers else mine[k] for k in names])
            results += [mine[k] for k in writes]
        return results

    torch._dynamo.reset()
    with torch._inductor.config.patch(force_disable_caches=True):
        compiled = torch.compile(program, fullgraph=True)(tensors)
    for eager, found in zip(program(tensors), compiled, strict=True):
        assert same_bits(eager, found)
