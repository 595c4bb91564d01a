import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))  # for `oplib`


@pytest.fixture(autouse=True)
def no_compile_cache():
    """A cached graph would be served whatever the guard does; and in CI torch is stricter than where models run."""
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor

    caches = torch.compiler.config if hasattr(torch.compiler.config, "force_disable_caches") else inductor
    strict = {"error_on_custom_op_aliasing": False} if hasattr(functorch, "error_on_custom_op_aliasing") else {}
    with caches.patch(force_disable_caches=True), functorch.patch(**strict) if strict else nullcontext():
        yield


@pytest.fixture
def guarded():
    import oplib

    from esimd_ops import guard

    torch._dynamo.utils.counters.clear()
    yield guard.enable(oplib.NAMESPACE, writes=oplib.WRITES, returns=oplib.RETURNS)
    guard.disable()
    torch._dynamo.reset()


@pytest.fixture
def scratch():
    """A fresh namespace whose operators can be defined during a test."""
    name = f"scratch{scratch_count()}"
    library = torch.library.Library(name, "FRAGMENT")
    yield name, library
    from esimd_ops import guard

    guard.disable()
    torch._dynamo.reset()
    library._destroy()


def scratch_count(count=[0]) -> int:  # noqa: B006  on purpose: a new name for each test
    count[0] += 1
    return count[0]
