"""A lying operator with the guard is what the same operator with a true schema is without it.

Equal results or equal refusals, in every program and every way to run it; right, where torch refuses the true schema.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import matrix
import matrix_generated
import pytest
import torch
from matrix_operators import WRITES, OfTorch, Operators

from esimd_ops import guard

TRUE = Operators("true")
LIARS = {kind: Operators(kind) for kind in ("lying", "handing")}
# What torch refuses of true schemas, too: a guard that refused everything would not pass.
REFUSED = {"conditional", "a_while_loop", "nested_region", "subclass_is_written", "the_imaginary_part", "vmapped"}


@pytest.fixture(scope="module", autouse=True)
def liars_are_guarded() -> Iterator[None]:
    for ops in LIARS.values():
        guard.enable(ops.namespace, writes=WRITES, returns=ops.returns)
    yield
    guard.disable()
    torch._dynamo.reset()


@functools.cache
def truth(name: str, way: str) -> tuple[str, str]:
    return matrix.outcome(TRUE, name, way)


@pytest.mark.parametrize("kind", LIARS)
@pytest.mark.parametrize(("name", "way"), matrix.CELLS)
def test_as_with_a_true_schema(name: str, way: str, kind: str) -> None:
    expected, values = truth(name, way)
    if (name, way, kind) == ("custom_gradient", "with_gradient", "handing"):
        # On torch 2.11 a result that is the buffer takes the buffer's gradient, of torch's own copy_ too.
        expected, values = matrix.outcome(OfTorch(), name, way)
    found, others = matrix.outcome(LIARS[kind], name, way)
    if (expected, found) == ("refused", "right"):
        return  # torch has no batching rule for a declared write, and slices what looks functional
    if (expected, found) == ("right", "refused") and (name, way) == ("differentiated", "as_it_is"):
        # An eager call on what requires grad: a true schema alone gives a gradient without the operator's part.
        assert "expected a tensor that does not require grad" in others
        return
    assert found == expected, f"true schema: {values}; guard: {others}"
    assert expected == "refused" or others == values


@pytest.mark.parametrize("seed", range(24))
def test_generated_programs(seed: int) -> None:
    """Torch itself makes some of them wrong, where an argument that is read overlaps one that is written."""
    text, program = matrix_generated.program(seed)
    way = ("as_it_is", "with_gradient", "exported")[seed % 3]
    expected = matrix.outcome_of(TRUE, program, way, matrix_generated.ROWS, matrix_generated.COLUMNS)
    for ops in LIARS.values():
        found = matrix.outcome_of(ops, program, way, matrix_generated.ROWS, matrix_generated.COLUMNS)
        assert found[0] == expected[0], text
        assert expected[0] == "refused" or found == expected, text


def test_the_matrix_is_not_empty() -> None:
    assert {name for name, way in matrix.CELLS if way == "as_it_is" and truth(name, way)[0] == "refused"} <= REFUSED
