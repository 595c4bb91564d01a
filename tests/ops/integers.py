"""Calls every operator with integers whose products leave 64 bits; prints each call that was not refused by name.

A program, since what it looks for ends the process: the last line printed names the call that did.
"""

import re
import sys

import torch

from esimd_ops import native, samples
from esimd_ops.table import OPS

UNUSED = {"max_tokens_per_expert"}  # the launch is sized by the rows there are
FIXED = (-1, -(2**31), -(2**63), 2**31, 2**53, 2**56 + 1, 2**62, 2**63 - 1)


def absurd(true):
    """Numbers that no tensor has, and those that wrap to the true one, or to none, when they are multiplied."""
    wrapping = [base + 2 ** (64 - power) for power in range(2, 25) for base in (0, true)]
    return [value for value in dict.fromkeys((*FIXED, *wrapping)) if -(2**63) <= value < 2**63]


def shrunk(arguments):
    """The arguments, and with tensors emptied, as a product that wrapped to none would have them."""
    tensors = [name for name, value in arguments.items() if isinstance(value, torch.Tensor)]
    yield arguments
    for chosen in (*([name] for name in tensors), tensors[1:]):
        yield {name: value[:0] if name in chosen and value.dim() else value for name, value in arguments.items()}


def main():
    native.load()
    calls = 0
    for operator in OPS:
        arguments = samples.make(operator).arguments
        integers = {name: value for name, value in arguments.items() if type(value) is int and name not in UNUSED}
        for name, true in integers.items():
            for value in absurd(true):
                for changed in shrunk({**arguments, name: value}):
                    calls += 1
                    sys.stdout.write(f"\r{operator} {name}={value} ")
                    sys.stdout.flush()
                    try:
                        getattr(torch.ops.esimd_ops, operator)(*changed.values())
                    except RuntimeError as error:
                        if re.match(rf"{operator}: argument '\w+': expected .*, found ", str(error)):
                            continue
                        print("ended in:", str(error).splitlines()[0])
                    else:
                        print("was accepted")
    print(f"\r{calls} calls")


if __name__ == "__main__":
    main()
