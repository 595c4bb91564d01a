import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))  # for `planted`


@pytest.fixture(scope="session")
def operators(tmp_path_factory: pytest.TempPathFactory) -> object:
    """The planted operators, registered: 33 liars and 28 honest ones in C++, built once, and some in Python."""
    import planted

    torch.ops.load_library(planted.build(tmp_path_factory.mktemp("observed")))
    return planted.define()
