import fcntl
import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

# Tests interrupt what they start. Under nohup, or in the background of a script, ctrl-C is ignored, which a child inherits.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Without its caches torch asks the compiler in each process, for seconds, whether it knows the CPU's vectors.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the expected files of tests/golden")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """Makes a folder of one run, by a name: the first process that asks fills it, the others wait and get the same."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def made(name: str, fill: Callable[[Path], object]) -> Path:
        folder, whole = shared / name, shared / f"{name}.whole"
        with open(shared / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not whole.exists():  # also after one that failed: whoever comes next fails too, and says why
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                fill(folder)
                whole.touch()
        return folder

    return made


@pytest.fixture(scope="session")
def entry_points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH that makes the entry points of this tree known, whatever is installed."""
    folder = tmp_path_factory.mktemp("entry")
    metadata = folder / "schema_kit_entry-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: schema-kit-entry\nVersion: 0\n")
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    groups = re.findall(r'^\[project\.entry-points\.("?)([\w.]+)\1\].*\n((?:\w+ = ".*\n)+)', text, re.MULTILINE)
    lines = (f"[{group}]\n{body}".replace('"', "") for _, group, body in groups)
    (metadata / "entry_points.txt").write_text("".join(lines))
    return folder
