"""rebuild --for bmg on a SYCL extension whose setup.py knows nothing of it: torch's own SyclExtension and ninja."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from .conftest import DEVICE, UNTOUCHED

TREE = Path(__file__).with_name("tree")
USE = """\
import sys, torch
torch.ops.load_library(sys.argv[1])
x = torch.arange(37, dtype=torch.float32)
torch.ops.small.double_it(x)
assert torch.equal(x, 2 * torch.arange(37, dtype=torch.float32)), x
try:
    torch.ops.small.of_torch()
except RuntimeError as error:
    assert "built beside a torch without XPU" in str(error), error
else:
    raise AssertionError("a queue of a card, where there is none")
print(torch.ops.esimd_topk_v2.topk_v2.default._schema)
sys.stdout.flush()
import os; os._exit(0)
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bmg")
    shutil.copytree(TREE, folder / "tree")
    argv = [sys.executable, "-m", "schema_patch", "rebuild", folder / "tree", "--for", "bmg", "--out", folder / "out"]
    done = subprocess.run(argv, env=UNTOUCHED, capture_output=True, text=True, check=False, timeout=580)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "out"


def test_the_wheel_is_for_the_card(out: Path) -> None:
    (wheel,) = out.glob("*.whl")
    verify = [Path(sys.executable).with_name("verify-schemas"), wheel, "--target", "bmg-g21", "--require", "topk_v2"]
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "libsycl.so.8, 1 kernel for bmg-g21 (20.1.0), SPIR-V" in done.stdout + done.stderr


def test_the_record_says_what_made_it(out: Path) -> None:
    record = json.loads((out / "build.json").read_text())
    (link,) = record["device_code"]
    assert record["toolchain"]["for"] == "bmg"
    assert (link["runtime"], link["kernels"], link["modules"], link["spills"]) == ("libsycl.so.8", 1, 1, {})
    assert link["devices"] == ["bmg"]
    assert link["front_end"].startswith("2025.3")
    assert link["offline"]
    assert not Path(link["output"]).is_absolute()


def test_it_loads_in_this_torch_and_runs(out: Path, tmp_path: Path) -> None:
    """The SPIR-V image of the same library, on the CPU device; what asks for a card says that it was not built for one."""
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
        for name in archive.namelist():
            assert str(out.parent).encode() not in archive.read(name)
    (library,) = tmp_path.glob("small/*.so")
    env = {**UNTOUCHED, "OCL_ICD_FILENAMES": str(DEVICE), "LD_LIBRARY_PATH": str(Path(sys.prefix) / "lib")}
    done = subprocess.run([sys.executable, "-c", USE, library], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Tensor(a!) top_values" in done.stdout
