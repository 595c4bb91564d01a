"""Operators with planted defects, and samples to probe them with; works on whatever device the samples are moved to."""

import torch

NAMESPACE = "planted"
library = torch.library.Library(NAMESPACE, "FRAGMENT")
x1, x2, poison = torch.arange(64.0), torch.arange(64.0) * 0.5 + 3, torch.full((64,), -77.0)


def right(x, output):
    output.copy_(x * 2)


def other_stream(x, output):
    """Launches where no capture sees it."""
    if not x.is_cuda:
        output.copy_(x * 2)
        return
    if not hasattr(other_stream, "stream"):
        other_stream.stream = torch.cuda.Stream()
    if torch.cuda.is_current_stream_capturing():
        return  # what another queue does is not in the graph
    with torch.cuda.stream(other_stream.stream):
        output.copy_(x * 2)
    torch.cuda.synchronize()


def freed_buffer(x, output):
    """A captured graph reads a copy that the next eager call replaces, which frees it."""
    if not (x.is_cuda and torch.cuda.is_current_stream_capturing()):
        freed_buffer.kept = x.clone()
    output.copy_(freed_buffer.kept * 2)


def own_scratch(x, output):
    """Allocates during capture, which is fine: the graph keeps its memory."""
    scratch = torch.empty(x.numel(), device=x.device)
    scratch.copy_(x)
    torch.mul(scratch, 2, out=output)


for name, function, schema in (
    ("right", right, "(Tensor x, Tensor(a!) output) -> ()"),
    ("undeclared", right, "(Tensor x, Tensor output) -> ()"),
    ("alias", lambda x, output: output.copy_(x * 2), "(Tensor x, Tensor(a!) output) -> Tensor(a!)"),
    ("shipped", lambda x, output: output.copy_(x * 2), "(Tensor x, Tensor output) -> Tensor"),
    ("other_stream", other_stream, "(Tensor x, Tensor(a!) output) -> ()"),
    ("freed_buffer", freed_buffer, "(Tensor x, Tensor(a!) output) -> ()"),
    ("own_scratch", own_scratch, "(Tensor x, Tensor(a!) output) -> ()"),
):
    library.define(name + schema)
    for key in ("CPU", "CUDA"):
        library.impl(name, function, key)
    if name == "shipped":
        torch.library.register_fake(f"{NAMESPACE}::{name}", lambda x, output: torch.empty_like(output), lib=library)
    elif name == "alias":
        torch.library.register_fake(f"{NAMESPACE}::{name}", lambda x, output: output, lib=library)
    else:
        torch.library.register_fake(f"{NAMESPACE}::{name}", lambda x, output: None, lib=library)

OPERATORS = ("right", "undeclared", "alias", "shipped", "other_stream", "freed_buffer", "own_scratch")
SAMPLES = {name: [(x1, poison), (x2, poison)] for name in OPERATORS}
WRITES = {name: ["output"] for name in OPERATORS}
RETURNS = {"alias": "output", "shipped": "output"}
