"""The process that probes one operator; it may die of it.

`python -m esimd_ops.probe.child FD`

Reads an Order from standard input and writes one Answer as JSON to the file descriptor FD.
"""

from __future__ import annotations

import os
import sys

import msgspec

from .order import Answer, Order


def work(order: Order) -> Answer:
    from esimd_ops.trials.libraries import load
    from esimd_ops.trials.messages import Request

    libraries = tuple(library for library in order.libraries if library != order.samples)
    try:
        if libraries or not order.samples:  # a samples file may register its operators itself
            load(Request(namespace=order.namespace, device="cpu", libraries=libraries))
    except (ImportError, OSError) as error:
        return Answer(failed=str(error))

    import torch

    from . import subjects
    from .trial import make_call, try_out

    if order.samples:
        subjects.module(order.samples)

    subject = subjects.find(order.namespace, order.op, order.samples)
    if isinstance(subject, str):
        return Answer(failed=subject)
    names: tuple[str, ...] = (subject.op.name(),)
    if order.guard:
        names += subjects.guard(order.namespace, order.op, subject)
    torch.manual_seed(0)
    calls = [make_call(subject.op, arguments, subject.effect) for arguments in subject.arguments]
    seen = try_out(calls[0], calls[1] if len(calls) > 1 else None, names, order.device)
    return Answer(str(subject.op._schema), tuple(seen))


def main() -> None:
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    answer = work(order)
    with os.fdopen(int(sys.argv[1]), "wb") as stream:
        stream.write(msgspec.json.encode(answer))


if __name__ == "__main__":
    main()
