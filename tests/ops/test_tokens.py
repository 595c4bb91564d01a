"""Products of any number of tokens: each number of them goes another way through the kernels (see csrc/gemm/gemm.cpp),
and every way has to give each token the result that it has alone."""

import pytest
import torch

from esimd_ops import reference, samples

HALF_STEP = 2.0**-10
TOKENS = (2, 8, 9, 16, 17, 32, 33, 64, 65, 130)


def products(operator, M, N, K):
    if operator == "esimd_gemv_fp16":
        return samples.gemv.gemv_fp16(M, N, K)
    if operator == "esimd_gemm_int4_pgrp":
        return samples.gemv.gemm_int4_pgrp(M, N, K)
    if operator == "esimd_gemm_fp8_blockscale":
        return samples.gemv.gemm_fp8_blockscale(M, N, K)
    return samples.gemv.gemv_fp8_pert(M, N, K, operator.rpartition(" ")[2])


@pytest.mark.long
@pytest.mark.parametrize(
    ("operator", "depths"),
    [
        ("esimd_gemv_fp16", (1, 77, 128, 4097)),
        ("esimd_gemm_fp8_pert e4m3", (5, 300, 8200)),
        ("esimd_gemm_fp8_pert e5m2", (129,)),
        ("esimd_gemm_fp8_blockscale", (128, 4224)),
        ("esimd_gemm_int4_pgrp", (128, 4224)),
    ],
)
def test_every_number_of_tokens(ops, operator, depths):
    name = operator.split()[0]
    for K in depths:
        for M in TOKENS:
            for N in (1, 37):
                arguments = products(operator, M, N, K)
                expected = reference.of(name)(**arguments)["output"]
                getattr(ops, name)(*arguments.values())
                scale = expected.abs().max().clamp(min=1e-3).item()
                torch.testing.assert_close(
                    arguments["output"], expected, rtol=2 * HALF_STEP, atol=scale * HALF_STEP, msg=f"{M} x {N} x {K}"
                )


@pytest.mark.parametrize("M", [8, 16, 32, 64])
def test_a_nan_stays_with_its_token(ops, M):
    arguments = samples.gemv.gemv_fp16(M, 37, 200)
    arguments["input"][M // 2, 5] = torch.nan
    ops.esimd_gemv_fp16(*arguments.values())
    spoilt = torch.arange(M) == M // 2
    assert torch.equal(arguments["output"].isnan().all(1), spoilt)
    assert torch.equal(arguments["output"].isnan().any(1), spoilt)
