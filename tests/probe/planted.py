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


kept_buffers = {}


def kept(x):
    """Returns a tensor that it keeps and overwrites at the next call."""
    buffer = kept_buffers.setdefault(x.device, torch.empty_like(x))
    return torch.mul(x, 3, out=buffer)


def pair(x, output, *, scale=2.0):
    output.copy_(x * scale)
    return output, x.sum().reshape(1)


for name, function, schema in (
    ("right", right, "(Tensor x, Tensor(a!) output) -> ()"),
    ("undeclared", right, "(Tensor x, Tensor output) -> ()"),
    ("alias", lambda x, output: output.copy_(x * 2), "(Tensor x, Tensor(a!) output) -> Tensor(a!)"),
    ("shipped", lambda x, output: output.copy_(x * 2), "(Tensor x, Tensor output) -> Tensor"),
    ("other_stream", other_stream, "(Tensor x, Tensor(a!) output) -> ()"),
    ("freed_buffer", freed_buffer, "(Tensor x, Tensor(a!) output) -> ()"),
    ("own_scratch", own_scratch, "(Tensor x, Tensor(a!) output) -> ()"),
    ("kept", kept, "(Tensor x) -> Tensor"),
    ("pair", pair, "(Tensor x, Tensor output, *, float scale=2.0) -> (Tensor, Tensor)"),
):
    library.define(name + schema)
    for key in ("CPU", "CUDA"):
        library.impl(name, function, key)
    if name == "pair":
        continue  # it has no fake
    if name == "kept":
        torch.library.register_fake(f"{NAMESPACE}::{name}", torch.empty_like, lib=library)
    elif name == "shipped":
        torch.library.register_fake(f"{NAMESPACE}::{name}", lambda x, output: torch.empty_like(output), lib=library)
    elif name == "alias":
        torch.library.register_fake(f"{NAMESPACE}::{name}", lambda x, output: output, lib=library)
    else:
        torch.library.register_fake(f"{NAMESPACE}::{name}", lambda x, output: None, lib=library)

OPERATORS = ("right", "undeclared", "alias", "shipped", "other_stream", "freed_buffer", "own_scratch")
SAMPLES = {name: [(x1, poison), (x2, poison)] for name in OPERATORS}
SAMPLES["kept"] = (x1,)
SAMPLES["pair"] = {"x": x1, "output": x1 * 3, "scale": 3.0}  # a buffer that already holds the answer
WRITES = dict.fromkeys((*OPERATORS, "pair"), "output")
RETURNS = {"alias": "output", "shipped": "output", "kept": "private buffer", "pair": ("output", "fresh")}
