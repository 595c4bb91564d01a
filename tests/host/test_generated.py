"""Registers, views, masks and lanes with drawn parameters, bit for bit against numpy."""

from __future__ import annotations

from collections.abc import Callable

import generated
import numpy as np
import pytest
import torch

Run = Callable[..., torch.Tensor]


@pytest.mark.parametrize("case", list(generated.cases()), ids=lambda case: case.name)
def test_as_numpy_computes_it(run: Run, case: generated.Case) -> None:
    draw = np.random.default_rng(len(case.name))
    given = draw.normal(size=64).astype(np.float32)
    if case.name.startswith(("bits", "lanes")):
        words = draw.integers(0, 2**32, 64, dtype=np.uint32) >> draw.integers(0, 32, 64, dtype=np.uint32)
        words[:4], words[4:20] = (0, 1, 0x80000000, 0xFFFFFFFF), ~words[4:20]
        given = words.view(np.float32)
    expected = case.expected(given.view(np.uint32))
    padded = torch.zeros(1024)
    padded.view(torch.int32)[:64] = torch.from_numpy(given.view(np.int32).copy())
    made = run(case.name, padded, 64).numpy().view(np.uint32)
    assert made[: len(expected)].tolist() == expected.tolist(), case.body


def test_each_family_is_drawn_differently() -> None:
    bodies = [case.body for case in generated.cases()]
    assert len(set(bodies)) > len(bodies) * 0.8
    assert len(bodies) == 6 * len(generated.FAMILIES)
