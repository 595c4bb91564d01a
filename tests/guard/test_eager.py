"""Eager calls of a guarded operator, as autograd sees them: versions rise, and what requires grad is refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from esimd_ops import guard
from esimd_ops.guard.twins import built

# CI has the extension; `make test-torch` installs pure Python, where eager calls are left as they are.
pytestmark = pytest.mark.skipif(
    built() is None and "CI" not in os.environ,
    reason="the extension is not built: autograd is told of writes in C++ alone",
)

SPACE = "eager_lib"


def fill(x: Tensor, out: Tensor) -> None:
    """Writes as a kernel does, behind the back of torch."""
    out.detach().data.numpy()[...] = x.detach().numpy() * 2


def fill_by_torch(x: Tensor, out: Tensor) -> None:
    out.copy_(x * 2)


def fill_list(x: Tensor, outs: list[Tensor]) -> None:
    for out in outs:
        fill(x, out)


library = torch.library.Library(SPACE, "DEF")
for name, schema, function, key in (
    ("plain", "(Tensor x, Tensor out) -> ()", fill, "CPU"),
    ("declared", "(Tensor x, Tensor(a!) out) -> ()", fill, "CPU"),
    ("many", "(Tensor x, Tensor[] out) -> ()", fill_list, "CPU"),
    ("composite", "(Tensor x, Tensor out) -> ()", fill, "CompositeImplicitAutograd"),
    ("explicit", "(Tensor x, Tensor out) -> ()", fill, "CompositeExplicitAutograd"),
    ("torchs", "(Tensor x, Tensor out) -> ()", fill_by_torch, "CompositeImplicitAutograd"),
    ("own", "(Tensor x, Tensor out) -> ()", fill, "CPU"),
):
    library.define(name + schema)
    library.impl(name, function, key)
library.impl("own", fill, "Autograd")  # its author's matter
KERNELS = ("plain", "declared", "many", "explicit")
ALL = (*KERNELS, "composite", "torchs")


@pytest.fixture
def guarded() -> Iterator[None]:
    guard.enable(SPACE, writes=dict.fromkeys((*ALL, "own"), "out"))
    yield
    guard.disable()


def call(name: str, x: Tensor, out: Tensor) -> None:
    getattr(torch.ops.eager_lib, name)(x, [out] if name == "many" else out)


@pytest.mark.parametrize("name", ALL)
def test_what_is_written_has_one_new_version(guarded: None, name: str) -> None:
    x, out = torch.ones(4), torch.zeros(4)
    call(name, x, out)
    assert (x._version, out._version) == (0, 1)
    assert torch.equal(out, torch.full((4,), 2.0))
    both = torch.zeros(2, 4)
    call(name, x, both[1])
    assert both._version == 1


@pytest.mark.parametrize("mode", ["grad", "no_grad"])
@pytest.mark.parametrize("name", ALL)
def test_no_gradient_is_made_of_what_was_overwritten(guarded: None, name: str, mode: str) -> None:
    leaf, saved = torch.ones(4, requires_grad=True), torch.full((4,), 3.0)
    product = (leaf * saved).sum()
    with torch.set_grad_enabled(mode == "grad"):
        call(name, torch.ones(4), saved)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


@pytest.mark.parametrize("argument", ["x", "out"])
@pytest.mark.parametrize("name", KERNELS)
def test_what_requires_grad_is_refused_before_anything_is_written(guarded: None, name: str, argument: str) -> None:
    given = {"x": torch.ones(4), "out": torch.zeros(4)}
    given[argument].requires_grad_()
    with pytest.raises(
        RuntimeError, match=f"{name}: argument '{argument}': expected a tensor that does not require grad"
    ):
        call(name, **given)
    assert not given["out"].any()
    with torch.no_grad():
        call(name, **given)
    assert given["out"].all()


def test_what_is_made_of_torchs_operators_keeps_its_gradient(guarded: None) -> None:
    x, out = torch.ones(4, requires_grad=True), torch.zeros(4)
    torch.ops.eager_lib.torchs(x, out)
    out.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.full((4,), 2.0))


def test_an_autograd_kernel_of_its_own_stays(guarded: None) -> None:
    x, out = torch.ones(4, requires_grad=True), torch.zeros(4)
    torch.ops.eager_lib.own(x, out)
    assert (out[0].item(), out._version) == (2.0, 0)


def test_under_inference_mode_nothing_is_counted(guarded: None) -> None:
    with torch.inference_mode():
        out = torch.zeros(4)
        call("plain", torch.ones(4), out)
        assert out.all()


def test_without_the_guard_it_is_as_it_was(guarded: None) -> None:
    guard.disable()
    out = torch.zeros(4)
    call("plain", torch.ones(4, requires_grad=True), out)
    assert (out[0].item(), out._version) == (2.0, 0)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_calls_are_traced_as_before(guarded: None, backend: str) -> None:
    def program(x: Tensor) -> Tensor:
        out = torch.zeros(4)
        torch.ops.eager_lib.plain(x, out)
        return out + 1

    torch._dynamo.reset()
    with torch.no_grad():
        compiled: Callable[..., Any] = torch.compile(program, backend=backend, fullgraph=True)
        assert torch.equal(compiled(torch.ones(4)), torch.full((4,), 3.0))
