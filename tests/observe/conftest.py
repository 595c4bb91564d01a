import fcntl
import os
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))  # for `planted`


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The planted operators that are in C++, 33 liars and 28 honest ones, as a library."""
    import planted

    shared = tmp_path_factory.getbasetemp()
    folder = (shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared) / "observed"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several processes one builds
        found = folder / "observed.so"
        return found if found.exists() else planted.build(folder)


@pytest.fixture(scope="session")
def operators(built: Path) -> object:
    """All planted operators, registered."""
    import planted

    torch.ops.load_library(str(built))
    return planted.define()
