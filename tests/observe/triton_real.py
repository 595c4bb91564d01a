"""Operators whose kernels are Triton's, observed: `make test-triton`, which fetches Triton; not collected by pytest.

On an NVIDIA device they are compiled; elsewhere Triton's own interpreter runs them (TRITON_INTERPRET=1).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from esimd_ops.observe import observe
from schema_patch.model import Severity, Verdict

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def _twice(x, out, n, block: tl.constexpr):
    place = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + place, tl.load(x + place, mask=place < n) * 2, mask=place < n)


def twice(x: Tensor, out: Tensor) -> None:
    torch.library.wrap_triton(_twice)[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), block=64)


@torch.library.triton_op("observed_triton::liar", mutates_args=())
def liar(x: Tensor, out: Tensor) -> None:
    twice(x, out)


@torch.library.triton_op("observed_triton::partly", mutates_args={"out"})
def partly(x: Tensor, out: Tensor, scale: Tensor) -> None:
    twice(x, out)
    twice(scale, scale)


@torch.library.triton_op("observed_triton::honest", mutates_args={"out"})
def honest(x: Tensor, out: Tensor) -> None:
    twice(x, out)


@torch.library.triton_op("observed_triton::fresh", mutates_args=())
def fresh(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    twice(x, out)
    return out


def test_the_liars_are_found_and_nobody_else() -> None:
    with observe("observed_triton") as seen:
        for size in (6, 1000, 1000):
            x, out = torch.arange(1.0, size + 1, device=DEVICE), torch.zeros(size, device=DEVICE)
            liar(x, out)
            assert torch.equal(out, 2 * x)
            partly(x, torch.zeros_like(x), torch.ones(2, device=DEVICE))
            honest(x, torch.zeros_like(x))
            assert torch.equal(fresh(x), 2 * x)
    report = seen.report()
    found = {(finding.op, finding.code) for finding in report.findings if finding.severity is Severity.ERROR}
    assert found == {("observed_triton::liar", "SP101"), ("observed_triton::partly", "SP102")}
    right = {row.op for row in report.checked if row.verdict is Verdict.RIGHT}
    assert right == {"observed_triton::honest", "observed_triton::fresh"}
