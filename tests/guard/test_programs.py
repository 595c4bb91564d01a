"""Every kind of untruth in every shape of program: wrong or refused without the guard, right with it."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import oplib
import pytest
import torch

from esimd_ops.guard import GuardError

# Inductor compiles C++ for each program, so it gets one of each kind; buffers are reused nowhere but there.
BY_INDUCTOR = ["plain-buffer_read", "plain-return_read", "no_fake-two_calls", "alias-return_read", "void-buffer_view",
               "several", "residual", "keywords", "rings", "listed"]  # fmt: skip
BASELINE = """
import json, sys, warnings
warnings.filterwarnings("ignore")
sys.path.insert(0, sys.argv[1])
import torch
import oplib
aot = {name: oplib.outcome(program, "aot_eager") for name, program in oplib.PROGRAMS.items()}
print(json.dumps([aot, {name: oplib.outcome(oplib.PROGRAMS[name], "inductor") for name in sys.argv[2:]}]))
"""


@pytest.fixture(scope="module")
def unguarded() -> tuple[dict[str, str], dict[str, str]]:
    argv = [sys.executable, "-c", BASELINE, str(Path(__file__).parent), *BY_INDUCTOR]
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=environment)
    found = json.loads(done.stdout.splitlines()[-1])
    aot, inductor = ({name: outcome.partition(":")[0] for name, outcome in part.items()} for part in found)
    return aot, inductor


def test_without_the_guard_most_are_wrong_or_refused(unguarded: tuple[dict[str, str], dict[str, str]]) -> None:
    """What the guard is measured against; a torch that gets these right needs no guard."""
    aot, inductor = unguarded
    assert all(outcome == "right" for name, outcome in aot.items() if name.startswith("right-"))
    assert all(outcome == "refused" for name, outcome in aot.items() if name.startswith(("alias-", "no_fake-")))
    assert {aot[name] for name in ("plain-buffer_read", "plain-two_calls", "void-buffer_read", "keywords")} == {"wrong"}
    assert {inductor[name] for name in BY_INDUCTOR} == {"wrong", "refused"}


@pytest.mark.usefixtures("guarded")
@pytest.mark.parametrize("name", oplib.PROGRAMS)
def test_with_the_guard_all_are_right(name: str) -> None:
    assert oplib.outcome(oplib.PROGRAMS[name], "aot_eager") == "right"


@pytest.mark.usefixtures("guarded")
@pytest.mark.parametrize("name", BY_INDUCTOR)
def test_with_the_guard_inductor_is_right(name: str) -> None:
    assert oplib.outcome(oplib.PROGRAMS[name], "inductor") == "right"


@pytest.mark.usefixtures("guarded")
def test_eager_calls_do_not_change() -> None:
    x, output = torch.arange(4.0), torch.zeros(4)
    assert oplib.ops.plain(x, output) is output
    assert torch.equal(output, x * 2)


@pytest.mark.usefixtures("guarded")
@pytest.mark.parametrize("name", ["plain-buffer_read", "alias-return_read", "residual", "rings"])
def test_other_ways_to_run(name: str) -> None:
    program = oplib.PROGRAMS[name]
    with torch.no_grad():
        assert oplib.outcome(program, "aot_eager") == "right"
    with torch.inference_mode():
        assert oplib.outcome(program, "aot_eager") == "right"
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert oplib.outcome(program, "aot_eager") == "right"
    if name != "rings":  # its buffers have one size
        assert oplib.outcome(program, "aot_eager", torch.randn(7, 3), dynamic=True) == "right"


@pytest.mark.usefixtures("guarded")
def test_dynamic_shapes_without_recompiling() -> None:
    torch._dynamo.reset()
    program = oplib.PROGRAMS["plain-buffer_read"]
    compiled = torch.compile(program, fullgraph=True, dynamic=True)
    for size in (5, 8, 13):
        x = torch.randn(size)
        assert torch.equal(compiled(x), program(x))


@pytest.mark.usefixtures("guarded")
def test_export() -> None:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return oplib.PROGRAMS["plain-buffer_read"](x)

    x = torch.arange(4.0)
    exported = torch.export.export(Module(), (x,))
    assert torch.equal(exported.module()(x), Module()(x))
    assert torch.equal(exported.run_decompositions({}).module()(x), Module()(x))


@pytest.mark.usefixtures("guarded")
def test_torch_func() -> None:
    program = oplib.PROGRAMS["plain-buffer_view"]
    x = torch.arange(4.0)
    assert torch.equal(torch.func.functionalize(program)(x), program(x))
    with pytest.raises(GuardError, match=r"liars::plain writes its arguments within .*mutations_and_views"):
        torch.func.functionalize(program, remove="mutations_and_views")(x)


@pytest.mark.usefixtures("guarded")
@pytest.mark.parametrize("keeps_views", [True, False])
def test_functionalization_without_torch_func(keeps_views: bool) -> None:
    """As lazy backends turn it on."""
    program = oplib.PROGRAMS["plain-buffer_view"]
    x = torch.arange(4.0)
    given = torch._to_functional_tensor(x)  # type: ignore[attr-defined]
    torch._enable_functionalization(reapply_views=keeps_views)  # type: ignore[attr-defined]
    try:
        with nullcontext() if keeps_views else pytest.raises(GuardError, match="copies views"):
            result = program(given)
    finally:
        torch._disable_functionalization()  # type: ignore[attr-defined]
    if keeps_views:
        torch._sync(result)  # type: ignore[attr-defined]
        assert torch.equal(torch._from_functional_tensor(result), program(x))  # type: ignore[attr-defined]


@pytest.mark.usefixtures("guarded")
def test_a_result_left_out_is_new() -> None:
    assert oplib.outcome(lambda x: oplib.ops.optional(x) + 1, "aot_eager") == "right"


@pytest.mark.usefixtures("guarded")
def test_a_gradient_is_warned_of() -> None:
    x = torch.arange(4.0, requires_grad=True)
    torch._dynamo.reset()
    with pytest.warns(UserWarning, match="liars::plain: guarded operators have no gradient"):
        torch.compile(lambda x: oplib.ops.plain(x, torch.zeros(4)) + 1, backend="aot_eager")(x)


@pytest.mark.usefixtures("guarded")
def test_two_threads() -> None:
    """Compiled one after the other, because torch does not trace in two threads at once, and run at the same time."""
    torch._dynamo.reset()
    names = ("plain-buffer_read", "residual", "several")
    compiled = {name: torch.compile(oplib.PROGRAMS[name], backend="aot_eager", fullgraph=True) for name in names}
    for program in compiled.values():
        program(torch.randn(4))

    def work(name: str) -> int:
        wrong = 0
        for _ in range(50):
            x = torch.randn(4)
            got, expected = compiled[name](x.clone()), oplib.PROGRAMS[name](x.clone())
            pairs = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
            wrong += not all(torch.equal(a, b) for a, b in pairs)
        return wrong

    with ThreadPoolExecutor(len(names)) as pool:
        assert list(pool.map(work, names)) == [0, 0, 0]
