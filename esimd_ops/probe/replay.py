"""Device graphs: is the operator recorded, and does a replay see new inputs? For any torch device that has graphs.

An operator that launches on a stream of its own is not recorded: the replay leaves stale values or zeros. One that
reads a buffer it has freed or replaced since gives values that belong to nobody.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .programs import ProbedCall, same


def available(device: str) -> bool:
    """Whether this torch can capture graphs on this kind of device."""
    module = getattr(torch, device, None)
    return bool(module and module.is_available() and _graph_type(device))


def replayed(call: ProbedCall, other: ProbedCall, device: str) -> str:
    """Captures one call, puts the inputs of `other` (same shapes) into the same buffers, replays, and compares.

    Returns "right", "not recorded" (the poison is untouched), "zeros", "stale" (the first inputs' results), "wrong",
    "broken: " with the device's error, or why it cannot be captured.
    """
    module = getattr(torch, device)
    buffers = {name: value.to(device) for name, value in call.tensors.items()}
    _warm_up(call, buffers, module)
    graph = _graph_type(device)()
    _load(buffers, call)
    try:
        with module.graph(graph):
            call(buffers)
    except RuntimeError as error:
        return f"cannot be captured: {str(error).splitlines()[0]}"
    expected = [_eager(values, device) for values in (call, other)]
    try:
        written = [_replay(graph, buffers, values, module) for values in (call, other)]
    except RuntimeError as error:  # the device's context is gone with it; this process can do no more
        return f"broken: {str(error).splitlines()[0]}"
    if all(same(e, w) for e, w in zip(expected, written, strict=True)):
        return "right"
    if all(not tensor.float().nan_to_num().any() for tensor in written[1]):
        return "zeros"
    poison = tuple(other.tensors[name].to(device) for name in call.written)
    if same(poison, written[1]):
        return "not recorded"
    return "stale" if same(expected[0], written[1]) else "wrong"


def _eager(call: ProbedCall, device: str) -> tuple[Tensor, ...]:
    fresh = {name: value.to(device) for name, value in call.tensors.items()}
    call(fresh)
    return tuple(fresh[name].clone() for name in call.written)


def _replay(graph: Any, buffers: dict[str, Tensor], call: ProbedCall, module: Any) -> tuple[Tensor, ...]:
    _load(buffers, call)
    _disturb(module)
    graph.replay()
    module.synchronize()
    return tuple(buffers[name].clone() for name in call.written)


def _warm_up(call: ProbedCall, buffers: dict[str, Tensor], module: Any) -> None:
    """A few calls on a side stream, as capture asks for."""
    stream = module.Stream()
    stream.wait_stream(module.current_stream())
    with module.stream(stream):
        for _ in range(3):
            call({name: value.clone() for name, value in buffers.items()})
    module.current_stream().wait_stream(stream)
    module.synchronize()


def _load(buffers: dict[str, Tensor], call: ProbedCall) -> None:
    for name, value in call.tensors.items():
        buffers[name].copy_(value)


def _disturb(module: Any) -> None:
    """Takes and fills memory that an operator may have freed since the capture."""
    module.empty_cache()
    for size in (2**10, 2**16, 2**20):
        torch.full((size,), 3.0, device=module.current_device())
    module.synchronize()


def _graph_type(device: str) -> Any:
    return getattr(getattr(torch, device, None), {"cuda": "CUDAGraph", "xpu": "XPUGraph"}.get(device, ""), None)
