"""Loads the extension once. Where it was not built these tests fail and say how: a skip proves nothing.

A test with an argument `operator` runs for every operator that the extension registers, one with `operator` and `sizes`
for each of its samples.
"""

import sys
from pathlib import Path

import pytest
import torch

from esimd_ops import fakes, native, registry, samples
from esimd_ops.samples import build

sys.path.append(str(Path(__file__).parent))  # for `misuse`; last, since others are called `planted` too


def registered():
    """The operators to test; all that should be there where nothing is, so that their tests fail."""
    try:
        native.load()
    except native.NotBuiltError:
        return tuple(samples.SIZES)
    return registry.names("esimd_ops")


def pytest_generate_tests(metafunc):
    given = {word for mark in metafunc.definition.iter_markers("parametrize") for word in str(mark.args[0]).split()}
    if "operator" not in metafunc.fixturenames or any("operator" in word for word in given):
        return
    if "sizes" in metafunc.fixturenames:
        cases = [(operator, sizes) for operator, sizes in samples.every() if operator in registered()]
        ids = [f"{operator}-{build.label(sizes)}" for operator, sizes in cases]
        metafunc.parametrize(("operator", "sizes"), cases, ids=ids)
    else:
        metafunc.parametrize("operator", registered())


@pytest.fixture(scope="session")
def extension():
    try:
        return native.load()
    except native.NotBuiltError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def ops(extension):
    fakes.register()
    return torch.ops.esimd_ops
