"""Loads the extension once. Where it was not built these tests fail and say how: a skip proves nothing."""

import pytest
import torch

from esimd_ops import fakes, native


@pytest.fixture(scope="session")
def extension():
    try:
        return native.load()
    except native.NotBuiltError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def ops(extension):  # noqa: ARG001
    fakes.register()
    return torch.ops.esimd_ops
