"""A program for other processes: an operator that lies, compiled; prints what it gives, in this process or a child."""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")
library = torch.library.Library("everywhere", "FRAGMENT")
library.define("op(Tensor x, Tensor output) -> Tensor")
library.impl("op", lambda x, output: output.copy_(x * 2), "CPU")
torch.library.register_fake("everywhere::op", lambda x, output: torch.empty_like(x), lib=library)


def program(x):
    output = torch.zeros_like(x)
    torch.ops.everywhere.op(x, output)
    return output + 1


def work(_=0):
    x = torch.arange(4.0)
    got = torch.compile(program, backend="aot_eager")(x)
    print("right" if torch.equal(got, program(x)) else "wrong", flush=True)


if __name__ == "__main__":
    if "enable" in sys.argv:
        from esimd_ops import guard

        print(guard.enable("everywhere", writes={"op": "output"}, returns={"op": "output"}), flush=True)
    if "misspell" in sys.argv:
        from esimd_ops import guard

        guard.enable("everywere", writes={"op": "output"}, returns={"op": "output"})
    if "spawn" in sys.argv:
        import torch.multiprocessing as processes

        processes.spawn(work, nprocs=1)
    elif "idle" in sys.argv:
        torch.ops.everywhere.op  # noqa: B018  found, and never called
    else:
        work()
