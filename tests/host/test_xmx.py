"""The kernels for a card's matrix engines (csrc/xmx), with the host side that launches them, under the emulation."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from esimd_ops import samples
from esimd_ops.host import build
from esimd_ops.races.watch import HostRuntime
from esimd_ops.samples import Arguments
from esimd_ops.table import OPS
from esimd_ops.trials import judge

from .test_races import esimd_ops

HERE = Path(__file__).resolve().parent
CSRC = HERE.parents[1] / "csrc"
# Besides the samples: whole tiles and a part, of tokens and of rows; each thread with steps, and with none.
MORE = {
    "esimd_gemv_fp16": ((8, 16, 1152), (9, 33, 1032), (33, 17, 136), (64, 8, 40)),
    "esimd_gemm_int4_pgrp": ((8, 1, 2176), (33, 47, 128)),
    "esimd_gemm_fp8_pert": ((8, 17, 64), (33, 47, 1104), (32, 16, 2176, "e5m2")),
    "esimd_gemm_fp8_blockscale": ((8, 130, 1152), (33, 256, 2176)),
}
CASES = [
    (op, sizes)
    for op, more in MORE.items()
    for sizes in (*samples.SIZES[op][1], *more)
    if op != "esimd_gemv_fp16" or sizes[0] != 1  # of one token it is a GEMV
]


def unfit(op: str, sizes: tuple[object, ...]) -> bool:
    """Rows of less than 64 bytes, or of no multiple of 16, are not for messages of two dimensions."""
    K = int(sizes[2])  # type: ignore[call-overload]
    bits = {"esimd_gemv_fp16": 16, "esimd_gemm_int4_pgrp": 4}.get(op, 8)
    return K * bits // 8 < 64 or K * bits // 8 % 16 != 0


@pytest.fixture(scope="session")
def on_host(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    return once("xmx", _build) / "out"


def _build(root: Path) -> None:
    (root / "tree").mkdir()
    shutil.copy(HERE / "xmx/on_host.cpp", root / "tree")
    made = build.build(build.HostBuild(tree=root / "tree", out=root / "out", include=(CSRC,), checks=True))
    assert made.failed == {}
    assert made.namespaces == ("esimd_xmx",)


@pytest.fixture(scope="session")
def runtime(on_host: Path) -> HostRuntime:
    sys.path.insert(0, str(on_host))
    import esimd_xmx  # type: ignore[import-not-found]  # noqa: F401

    return HostRuntime.loaded()


def told(op: str, given: Arguments) -> list[str]:
    before = {name: value.clone() for name, value in given.items() if isinstance(value, torch.Tensor)}
    getattr(torch.ops.esimd_xmx, op)(*given.values())
    got = {name: value for name, value in given.items() if isinstance(value, torch.Tensor)}
    expected = judge.ByReference(OPS[op], {**given, **before})
    return [observation.message for observation in expected.told(before, got)]


@pytest.mark.parametrize(("op", "sizes"), [case for case in CASES if not unfit(*case)], ids=str)
def test_products_are_what_the_table_says(runtime: HostRuntime, op: str, sizes: tuple[object, ...]) -> None:
    runtime.schedule("descending,lockstep")
    assert told(op, samples.make(op, sizes).arguments) == []


@pytest.mark.parametrize(("op", "sizes"), [case for case in CASES if unfit(*case)], ids=str)
def test_what_a_message_cannot_read_goes_another_way(runtime: HostRuntime, op: str, sizes: tuple[object, ...]) -> None:
    with pytest.raises(RuntimeError, match="not on the matrix engines: gem"):
        getattr(torch.ops.esimd_xmx, op)(*samples.make(op, sizes).arguments.values())


def test_an_address_that_is_not_aligned_goes_another_way(runtime: HostRuntime) -> None:
    given = samples.make("esimd_gemm_int4_pgrp", (8, 64, 1024)).arguments
    room = torch.empty(8 * 1024 + 16).half()
    given["input"] = room[16:].view(8, 1024).copy_(given["input"])
    assert given["input"].data_ptr() % 64 == 32
    with pytest.raises(RuntimeError, match="not on the matrix engines: gemm/"):
        told("esimd_gemm_int4_pgrp", given)


def test_no_thread_races(on_host: Path) -> None:
    ops = "esimd_gemm_int4_pgrp,esimd_gemm_fp8_blockscale"  # any sample of these fits
    done = esimd_ops(on_host, "races", "--namespace", "esimd_xmx", "--schedules", "descending,lockstep", "--ops", ops)
    assert done.returncode == 0, done.stdout + done.stderr
