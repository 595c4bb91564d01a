"""rebuild --for bmg on a SYCL extension whose setup.py knows nothing of it: torch's own SyclExtension and ninja."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from schema_patch.build.driver import offline

from .conftest import DEVICE, UNTOUCHED

TREE = Path(__file__).with_name("tree")
EXAMPLES = Path(__file__).parents[2] / "examples"
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
def outs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """What two builds of one tree at once have left: the command, and `make run SOURCE=`."""
    folder = tmp_path_factory.mktemp("bmg")
    shutil.copytree(TREE, folder / "tree")
    made = folder / "out", folder / "second"
    process = rebuild(folder / "tree", made[0])
    with first_light(made[1]) as script:
        script.wheel(folder / "tree", "alias")
    said, _ = process.communicate(timeout=580)
    assert process.returncode == 0, said
    return made


@contextmanager
def first_light(rebuilt: Path) -> Iterator[ModuleType]:
    """The script of `make run`, with a folder of ours for what it builds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        script = importlib.import_module("first_light")
        patch.setattr(script, "REBUILT", rebuilt)
        patch.setattr(script, "LOG", rebuilt.with_suffix(".log"))
        yield script


def rebuild(tree: Path, out: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "schema_patch", "rebuild", tree, "--for", "bmg", "--out", out]
    return subprocess.Popen(argv, env=UNTOUCHED, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture(scope="module")
def out(outs: tuple[Path, Path]) -> Path:
    return outs[0]


def test_two_builds_at_once_in_one_tree_are_the_same_bytes(outs: tuple[Path, Path]) -> None:
    first, second = ({path.name: path.read_bytes() for path in out.glob("*.whl")} for out in outs)
    assert len(first) == 1
    assert first == second
    tree = outs[0].with_name("tree")
    assert {path.relative_to(tree) for path in tree.rglob("*")} == {path.relative_to(TREE) for path in TREE.rglob("*")}


def test_a_machine_without_the_compiler_is_told_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(offline.VARIABLE, "ocloc-no-such")
    with first_light(tmp_path / "rebuilt") as script:
        script.wheel(TREE, "void")
    said = " ".join(capsys.readouterr().out.split())
    assert "✗ ocloc: " in said
    assert "fix: " in said
    assert "clang" not in said
    assert f"$ schema-patch rebuild {TREE} --for bmg --returns void --out rebuilt" in said
    assert not (tmp_path / "rebuilt").exists()


def test_a_source_that_does_not_compile_is_told_once_at_its_line(outs: tuple[Path, Path], tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(TREE, tree)
    source = tree / "csrc/kernels.sycl"
    text = source.read_text()
    source.write_text(text + "int broken() { return undeclared; }\n")
    process = rebuild(tree, tmp_path / "out")
    said, _ = process.communicate(timeout=580)
    assert process.returncode == 2
    line = len(text.splitlines()) + 1
    assert said.count("error: use of undeclared") == 1
    assert f"{source}:{line}:23: error: use of undeclared identifier 'undeclared'" in said
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["build.log"]


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
