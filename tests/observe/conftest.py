import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))  # for `planted`


@pytest.fixture(scope="session")
def built(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """The planted operators that are in C++, 33 liars and 28 honest ones, as a library."""
    import planted

    return once("observed", planted.build) / "observed.so"


@pytest.fixture(scope="session")
def operators(built: Path) -> object:
    """All planted operators, registered."""
    import planted
    import planted_kinds

    torch.ops.load_library(str(built))
    return planted.define() + planted_kinds.define()
