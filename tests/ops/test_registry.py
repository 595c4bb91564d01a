"""The registered schemas are true: they match the operator table, and torch's own checks find nothing."""

import pytest
import torch

from esimd_ops import fakes, samples
from schema_patch import table


def test_every_operator_is_registered_sampled_and_faked(ops):
    registered = {
        name.removeprefix("esimd_ops::")
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("esimd_ops::")
    }
    assert registered == set(samples.SIZES) == set(fakes.OPERATORS)
    assert all(hasattr(ops, name) for name in registered)


@pytest.mark.parametrize("operator", samples.SIZES)
def test_schema_matches_the_operator_table(ops, operator):
    schema = getattr(ops, operator).default._schema
    entry = table.load().entries[operator]
    assert tuple(argument.name for argument in schema.arguments) == entry.arguments
    writes = {argument.name for argument in schema.arguments if argument.alias_info and argument.alias_info.is_write}
    assert writes == {*entry.writes, *entry.inplace}
    assert not schema.returns


@pytest.mark.parametrize("operator", samples.SIZES)
def test_opcheck(ops, operator):
    # The outputs are poisoned: a buffer that already held the result would hide an undeclared write.
    arguments = samples.make(operator).arguments
    torch.library.opcheck(getattr(ops, operator).default, tuple(arguments.values()))
