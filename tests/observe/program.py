"""A program for the tests of the command: a lie here, another in a spawned worker, `spawn` or `kill` by argument."""

import multiprocessing
import os
import sys

import torch

library = torch.library.Library("prog", "FRAGMENT")
for schema in ("lie(Tensor x, Tensor out) -> ()", "honest(Tensor x, Tensor(a!) out) -> ()", "worker(Tensor x, Tensor out) -> ()",
               "never(Tensor x) -> Tensor"):  # fmt: skip
    library.define(schema)
    library.impl(schema.partition("(")[0], lambda x, out: (out.copy_(x * 2), None)[1], "CPU")


def work(size: int) -> None:
    torch.ops.prog.worker(torch.ones(size), torch.zeros(size))


if __name__ == "__main__":
    print("program:", *sys.argv[1:])
    torch.ops.prog.lie(torch.ones(3), torch.zeros(3))
    torch.ops.prog.honest(torch.ones(3), torch.zeros(3))
    if "spawn" in sys.argv:
        child = multiprocessing.get_context("spawn").Process(target=work, args=(5,))
        child.start()
        child.join()
    if "kill" in sys.argv:
        os.kill(os.getpid(), 9)
