"""Builds the test kernels once, with checks; most tests here run them by name."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from esimd_ops.host import build
from esimd_ops.races.watch import AccessSeen, HostRuntime

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # for `generated`
EXAMPLES = HERE.parent.parent / "examples" / "esimd"


@pytest.fixture(scope="session")
def built(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """A host build with checks of the test kernels and of the examples, as one tree."""
    return once("host-build", _build) / "out"


def _build(root: Path) -> None:
    import generated

    shutil.copytree(HERE / "tree", root / "tree" / "pieces")
    (root / "tree" / "pieces" / "generated.sycl").write_text(generated.source())
    shutil.copytree(EXAMPLES, root / "tree" / "examples")
    made = build.build(build.HostBuild(tree=root / "tree", out=root / "out", checks=True))
    assert made.failed == {}
    assert sorted(made.namespaces) == ["esimd_pieces", "esimd_race", "esimd_right"]
    assert len(made.libraries) == 2  # sources that need each other's symbols, and no others


@pytest.fixture(scope="session")
def runtime(built: Path) -> HostRuntime:
    sys.path.insert(0, str(built))
    import esimd_pieces  # type: ignore[import-not-found]  # noqa: F401

    return HostRuntime.loaded()


Judge = Callable[..., tuple[torch.Tensor, list[AccessSeen]]]


@pytest.fixture
def run(runtime: HostRuntime) -> Callable[..., torch.Tensor]:
    """Runs a kernel by name; gives its output, which held zeros."""

    def call(name: str, given: torch.Tensor, size: int, schedule: str = "descending,lockstep") -> torch.Tensor:
        runtime.schedule(schedule)
        output = torch.zeros(size)
        torch.ops.esimd_pieces.run(name, given, output)
        return output

    return call


@pytest.fixture
def judge(runtime: HostRuntime) -> Judge:
    """Runs a kernel by name with every access judged: what it wrote, and what was seen."""

    def call(
        name: str, schedule: str = "descending,lockstep", given: torch.Tensor | None = None, *, unwritten: bool = False
    ) -> tuple[torch.Tensor, list[AccessSeen]]:
        runtime.schedule(schedule)
        around = torch.full((3, 2048), 7.5)  # room on both sides, so that a stray access meets no other memory
        source, output = around[0, 512:1536], around[2, 512:1536]
        source.copy_(torch.arange(1024.0) if given is None else given)
        output.zero_()
        for key, tensor in (("input", source), ("output", output)):
            runtime.watch(key, tensor.data_ptr(), 4096, 4, read_only=False, unwritten=unwritten and key == "output")
        with runtime.watching() as seen:
            torch.ops.esimd_pieces.run(name, source, output)
        return output.clone(), seen

    return call
