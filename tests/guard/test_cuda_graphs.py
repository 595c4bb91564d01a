"""Captured and replayed graphs on a CUDA device: a lying operator with the guard against a true one without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from esimd_ops import guard

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
CALLS = 8
TRUE, LYING = "(Tensor x, Tensor(a!) out) -> ()", "(Tensor x, Tensor out) -> ()"
UNSAFE = getattr(torch.Tag, "cudagraph_unsafe", None)
libraries: list[torch.library.Library] = []


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    guard.disable()
    torch._dynamo.reset()


def operator(name: str, schema: str, function: Callable[..., object], fake: Callable[..., object], tags=()):
    library = torch.library.Library(f"captured_{name}", "FRAGMENT")
    libraries.append(library)
    library.define("op" + schema, tags=tags)
    library.impl("op", function, "CUDA")
    torch.library.register_fake(f"captured_{name}::op", fake, lib=library)
    return getattr(torch.ops, f"captured_{name}").op


def wrong_calls(
    program: Callable[[torch.Tensor], torch.Tensor], expected: Callable[[int, torch.Tensor], torch.Tensor]
) -> list[int]:
    """Which calls of the compiled and replayed program give something else, from 0."""
    compiled = torch.compile(program, mode="reduce-overhead", fullgraph=True)
    wrong = []
    for number in range(CALLS):
        x = torch.full((64,), float(number), device="cuda")
        if not torch.equal(compiled(x).clone(), expected(number, x)):
            wrong.append(number)
    return wrong


def buffer_read(op):
    def program(x):
        out = torch.zeros_like(x)
        op(x, out)
        return out + 1

    return program


def doubled(x, out):
    out.copy_(x * 2)


@pytest.mark.parametrize(("name", "schema"), [("true", TRUE), ("lying", LYING)])
def test_a_replay_sees_new_inputs(name: str, schema: str) -> None:
    op = operator(name, schema, doubled, lambda x, out: None)
    if name == "lying":
        guard.enable("captured_lying", writes={"op": "out"})
    assert wrong_calls(buffer_read(op), lambda _, x: x * 2 + 1) == []


def test_without_the_guard_the_call_is_lost() -> None:
    op = operator("bare", LYING, doubled, lambda x, out: None)
    assert wrong_calls(buffer_read(op), lambda _, x: x * 2 + 1) == list(range(1, CALLS))  # the first has only zeros


def test_a_result_that_is_the_buffer() -> None:
    op = operator(
        "handing",
        "(Tensor x, Tensor out) -> Tensor",
        lambda x, out: out.copy_(x * 2),
        lambda x, out: torch.empty_like(out),
    )
    guard.enable("captured_handing", writes={"op": "out"}, returns={"op": "out"})

    def program(x):
        out = torch.zeros_like(x)
        op(x, out).add_(5)
        return out + 1

    assert wrong_calls(program, lambda _, x: x * 2 + 6) == []


@pytest.mark.skipif(UNSAFE is None, reason="torch.Tag.cudagraph_unsafe does not exist in this torch")
@pytest.mark.parametrize(("name", "schema"), [("true", TRUE), ("lying", LYING)])
def test_what_may_not_be_captured_is_not(name: str, schema: str) -> None:
    """The operator reads a number of the host, which a replay would not see again."""
    of_host = [0.0]
    op = operator(
        f"unsafe_{name}", schema, lambda x, out: (out.copy_(x + of_host[0]), None)[1], lambda x, out: None, (UNSAFE,)
    )
    if name == "lying":
        guard.enable("captured_unsafe_lying", writes={"op": "out"})
    program = buffer_read(op)

    def expected(number: int, x: torch.Tensor) -> torch.Tensor:
        value = x + of_host[0] + 1
        of_host[0] = float(10 * (number + 1))
        return value

    assert wrong_calls(program, expected) == []


def test_a_kept_buffer() -> None:
    kept = torch.zeros(64, device="cuda")
    op = operator("kept", "(Tensor x) -> Tensor", lambda x: torch.mul(x, 3, out=kept), torch.empty_like)
    guard.enable("captured_kept", returns={"op": "private buffer"})
    assert wrong_calls(lambda x: op(x) * 2 + op(x + 1), lambda _, x: x * 6 + (x + 1) * 3) == []
