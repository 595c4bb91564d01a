"""The kernels for a card (csrc/xmx), with the host side that launches them, under the emulation."""

from __future__ import annotations

import re
import runpy
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from esimd_ops import samples
from esimd_ops.host import build
from esimd_ops.races.watch import HostRuntime
from esimd_ops.samples.build import Arguments, Sizes
from esimd_ops.table import OPS
from esimd_ops.trials import judge

from .test_races import esimd_ops

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# What a kernel of xmx.sycl calls, with its own template arguments.
BODIES = {"on_xmx": "product", "experts_on_xmx": "experts", "gemv_wide": "matvecs", "mixed_wide": "mixed",
          "gelu_mul_wide": "gelu_mul"}  # fmt: skip
PRODUCTS = [op for op in OPS if re.search("gem[mv]", op)]
# Besides the samples: whole tiles and a part, of tokens and of rows; each thread with steps, and with none.
MORE: dict[str, tuple[Sizes, ...]] = {
    "esimd_gemv_fp16": ((8, 16, 1152), (9, 33, 1032), (33, 17, 136), (64, 8, 40)),
    "esimd_gemm_int4_pgrp": ((8, 1, 2176), (33, 47, 128)),
    "esimd_gemm_fp8_pert": ((8, 17, 64), (33, 47, 1104), (32, 16, 2176, "e5m2")),
    "esimd_gemm_fp8_blockscale": ((8, 130, 1152), (33, 256, 2176)),
}
CASES = [
    (op, sizes)
    for op in PRODUCTS
    for sizes in (*samples.SIZES[op][1], *MORE.get(op, ()))
    if max(size for size in sizes if isinstance(size, int)) < 10_000  # more rows take the emulation seconds
]
MATRIX = re.compile("input|weight|w[012]|gemv_weight|qkv_weight|proj_w|hidden_states|x|residual")


def fits(given: Arguments) -> bool:
    """Whether messages of two dimensions read its matrices: rows of 64 bytes or more, a multiple of 16."""
    read = [value for name, value in given.items() if isinstance(value, torch.Tensor) and MATRIX.fullmatch(name)]
    assert len(read) > 1
    rows = [value.shape[-1] * value.element_size() for value in read]
    return all(size >= 64 and size % 16 == 0 for size in rows) and all(value.data_ptr() % 64 == 0 for value in read)


@pytest.fixture(scope="session")
def on_host(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    return once("xmx", _build) / "out"


def _build(root: Path) -> None:
    tree = root / "tree"
    shutil.copytree(HERE / "xmx", tree)
    shutil.copy(ROOT / "schema_patch/source/drop_return.h", tree)
    listed = re.findall(r'^AHEAD_OF_TIME\("xmx/(\w+)<(.*)>",', (ROOT / "csrc/xmx/xmx.sycl").read_text(), re.MULTILINE)
    kernels = (f'{{"xmx/{name}<{kinds}>", run_kernel<&{BODIES[name]}<{kinds}>>}},\n' for name, kinds in listed)
    (tree / "kernels.inc").write_text("".join(kernels))
    registration = runpy.run_path(str(ROOT / "csrc/registration.py"))["text"](ROOT)
    chosen = "|".join(PRODUCTS)
    for name, pattern in (
        ("definitions", rf'  m\.def\("(?:{chosen})\(.*'),
        ("implementations", rf'  m\.impl\("(?:{chosen})", drop.*'),
    ):
        (tree / f"{name}.inc").write_text("\n".join(dict.fromkeys(re.findall(pattern, registration))) + "\n")
    made = build.build(build.HostBuild(tree=tree, out=root / "out", include=(ROOT / "csrc",), checks=True))
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


@pytest.mark.parametrize(("op", "sizes"), CASES, ids=str)
def test_products_are_what_the_table_says(runtime: HostRuntime, op: str, sizes: Sizes) -> None:
    runtime.schedule("descending,lockstep")
    given = samples.make(op, sizes).arguments
    if fits(given):
        assert told(op, given) == []
    else:
        with pytest.raises(RuntimeError, match=r"not on the matrix engines: (gem|moe)"):
            told(op, given)


def test_every_product_goes_to_the_card(runtime: HostRuntime) -> None:
    assert len(PRODUCTS) == 27
    assert all(fits(samples.make(op).arguments) for op in PRODUCTS)


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
