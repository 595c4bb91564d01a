"""What torch makes of a program: the functionalized graph and Inductor's code, and whether a call is in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from esimd_ops.tensors import copied


@dataclass(frozen=True)
class CompiledProgram:
    """A compiled program's results, the graph it came from as text, and how often the operator is called in it."""

    results: tuple[Tensor, ...]
    text: str
    calls: int


class NotCompiled(Exception):
    """torch will not compile the program; the message is torch's, in one line."""


def functionalized(program: Callable[..., Any], inputs: list[Tensor], names: tuple[str, ...]) -> CompiledProgram:
    """Traces and functionalizes with AOTAutograd; runs the graph as it is. `names`: the operator and its twin."""
    from torch._dynamo.backends.common import aot_autograd

    found: list[torch.fx.GraphModule] = []

    def keep(graph: torch.fx.GraphModule, _inputs: list[Any]) -> Any:
        found.append(graph)
        return graph.forward

    results = _run(torch.compile(program, backend=aot_autograd(fw_compiler=keep), fullgraph=True), inputs)
    text = "\n".join(graph.print_readable(print_output=False) for graph in found)
    return CompiledProgram(results, text, sum(_calls(graph, names) for graph in found))


def by_inductor(program: Callable[..., Any], inputs: list[Tensor], names: tuple[str, ...]) -> CompiledProgram:
    """Compiles with Inductor and reads the code that it wrote."""
    from torch._inductor.utils import run_and_get_code

    results, code = _run(partial(run_and_get_code, torch.compile(program, backend="inductor", fullgraph=True)), inputs)
    text = "\n".join(code)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    spelled = [f"torch.ops.{name.replace('::', '.')}." for name in names]
    return CompiledProgram(results, text, sum(any(word in line for word in spelled) for line in lines))


def _run(compiled: Callable[..., Any], inputs: list[Tensor]) -> Any:
    torch._dynamo.reset()
    try:
        return compiled(*copied(inputs))
    except RuntimeError as error:
        raise NotCompiled(_reason(error)) from error


def _calls(graph: torch.fx.GraphModule, names: tuple[str, ...]) -> int:
    """Calls of the operator: as it stands, or inside an auto_functionalized call."""
    count = 0
    for node in graph.graph.nodes:
        targets = (node.target, *node.args, *node.kwargs.values())
        count += node.op == "call_function" and any(
            isinstance(target, torch._ops.OpOverload) and target.name() in names for target in targets
        )
    return count


def _reason(error: RuntimeError) -> str:
    """The line of torch's message that says why."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "alias" in line or "fake" in line.lower() or "Error" in line]
    return (telling or lines or [type(error).__name__])[0][:300]
