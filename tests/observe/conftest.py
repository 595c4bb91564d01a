import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))  # for `planted`


@pytest.fixture(scope="module", autouse=True)
def other_tests_left_no_threads() -> Iterator[None]:
    """While a thread lives, who changed a buffer beside the arguments is not told: those that live now are not known of."""
    left, every = set(threading.enumerate()) - {threading.current_thread()}, threading.enumerate
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "enumerate", lambda: [thread for thread in every() if thread not in left])
        yield


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
