"""The distribution: everything in it, nothing of the kit, and it runs from the wheel alone."""

import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "esimd_soak"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    shutil.copytree(PACKAGE, folder / "esimd_soak", ignore=ignored)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    done = subprocess.run([*pip, str(folder / "esimd_soak")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = folder.glob("*.whl")
    return found


def test_every_room_is_in_it_and_nothing_else(wheel: Path) -> None:
    sources = {p.relative_to(PACKAGE.parent).as_posix() for p in PACKAGE.rglob("*.py") if "build" not in p.parts}
    sources |= {f"esimd_soak/assets/{name}" for name in ("grafana.json", "alerts.yml")}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        about = [name for name in archive.namelist() if name.endswith(".dist-info/licenses/LICENSE")]
    assert names == sources
    assert len(about) == 1


def test_it_needs_neither_torch_nor_the_kit_and_brings_no_plugin(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        about = {
            name.split("/")[-1]: archive.read(name).decode() for name in archive.namelist() if ".dist-info/" in name
        }
    needed = [line.lower() for line in Parser().parsestr(about["METADATA"]).get_all("Requires-Dist", [])]
    assert needed
    assert not [line for line in needed if line.startswith(("torch", "schema", "vllm", "intel"))]
    assert about["entry_points.txt"].split() == ["[console_scripts]", "esimd-soak", "=", "esimd_soak.__main__:main"]


def test_it_runs_by_itself(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import esimd_soak.__main__ as program\n"
        "try: code = program.main()\n"
        "finally: assert not [m for m in sys.modules if m.split('.')[0] in ('torch', 'schema_patch', 'esimd_ops')]\n"
        f"assert program.__file__.startswith({str(tmp_path)!r}), program.__file__\n"
        "sys.exit(code)"
    )
    for words, code in (
        (["compare", "--counts", "42/12960", "24/12960"], 1),
        (["guard", "--show", "alerts"], 0),
        (["--version"], 0),
    ):
        done = subprocess.run(
            [sys.executable, "-I", "-c", program, *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
