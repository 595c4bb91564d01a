"""A library without source: its operator writes `out`, and its schema does not say so. README heals it in six lines."""

import torch

library = torch.library.Library("closed", "FRAGMENT")
library.define("scale(Tensor x, Tensor out) -> ()")
library.impl("scale", lambda x, out: (torch.mul(x, 2, out=out), None)[1], "CPU")
torch.library.register_fake("closed::scale", lambda *_: None)


@torch.compile(backend="aot_eager")  # the fault is in what every backend is given
def program(x):
    out = torch.zeros_like(x)
    torch.ops.closed.scale(x, out)
    return out + 1


if __name__ == "__main__":
    print("2 * 1 + 1 =", program(torch.ones(3))[0].item())
