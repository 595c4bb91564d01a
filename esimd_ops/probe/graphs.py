"""What torch makes of a program: the functionalized graph and Inductor's code, and whether a call is in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Compiled:
    """A compiled program's results, the graph it came from as text, and how often the operator is called in it."""

    results: tuple[Tensor, ...]
    text: str
    calls: int


class Refused(Exception):
    """torch will not compile the program; the message is torch's, in one line."""


def functionalized(program: Callable[..., Any], inputs: list[Tensor], names: tuple[str, ...]) -> Compiled:
    """Traces and functionalizes with AOTAutograd; runs the graph as it is. `names`: the operator and its twin."""
    from torch._dynamo.backends.common import aot_autograd

    found: list[torch.fx.GraphModule] = []

    def keep(graph: torch.fx.GraphModule, _inputs: list[Any]) -> Any:
        found.append(graph)
        return graph.forward

    results = _run(program, inputs, backend=aot_autograd(fw_compiler=keep))
    text = "\n".join(graph.print_readable(print_output=False) for graph in found)
    return Compiled(results, text, sum(_calls(graph, names) for graph in found))


def by_inductor(program: Callable[..., Any], inputs: list[Tensor], names: tuple[str, ...]) -> Compiled:
    """Compiles with Inductor and reads the code that it wrote."""
    from torch._inductor.utils import run_and_get_code

    torch._dynamo.reset()
    try:
        results, code = run_and_get_code(torch.compile(program, backend="inductor", fullgraph=True), *_copies(inputs))
    except RuntimeError as error:
        raise Refused(_reason(error)) from error
    text = "\n".join(code)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    calls = sum(any(_spelled(name) in line for name in names) for line in lines)
    return Compiled(results, text, calls)


def _run(program: Callable[..., Any], inputs: list[Tensor], *, backend: Any) -> tuple[Tensor, ...]:
    torch._dynamo.reset()
    try:
        results: tuple[Tensor, ...] = torch.compile(program, backend=backend, fullgraph=True)(*_copies(inputs))
    except RuntimeError as error:
        raise Refused(_reason(error)) from error
    return results


def _copies(inputs: list[Tensor]) -> list[Tensor]:
    return [value.clone() for value in inputs]


def _calls(graph: torch.fx.GraphModule, names: tuple[str, ...]) -> int:
    """Calls of the operator: as it stands, or inside an auto_functionalized call."""
    count = 0
    for node in graph.graph.nodes:
        targets = (node.target, *node.args, *node.kwargs.values())
        count += node.op == "call_function" and any(
            isinstance(target, torch._ops.OpOverload) and target.name() in names for target in targets
        )
    return count


def _spelled(name: str) -> str:
    """namespace::op -> torch.ops.namespace.op, as generated code has it."""
    return f"torch.ops.{name.replace('::', '.')}."


def _reason(error: RuntimeError) -> str:
    """The line of torch's message that says why."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "alias" in line or "fake" in line.lower() or "Error" in line]
    return (telling or lines or [type(error).__name__])[0][:300]
