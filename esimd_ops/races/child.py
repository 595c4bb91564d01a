"""The process that loads a host build's libraries and runs operators under schedules; it may die of them.

`python -m esimd_ops.races.child FD` reads an Order from standard input and writes messages, JSON documents, to FD.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import msgspec

from esimd_ops.trials.libraries import load
from esimd_ops.trials.messages import Request
from schema_patch.model import ToolError

from .trial import Row


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to run: torch.ops.<namespace>, operators (empty for all), "decode" or "all" shapes, schedules by name.

    replay  a file of `reproduce`, whose inputs are used instead of samples; "" for none
    skip    operators that an earlier process has done or died of
    """

    namespace: str
    libraries: tuple[str, ...]
    operators: tuple[str, ...]
    shapes: str
    schedules: dict[str, str]
    beyond: bool = False
    replay: str = ""
    skip: tuple[str, ...] = ()


class Step(msgspec.Struct, frozen=True, tag="step"):
    """The child is about to do this; what it dies of is this operator's."""

    op: str
    what: str


class Ran(msgspec.Struct, frozen=True, tag="ran"):
    """An operator is through; `error` where it refused."""

    op: str
    schema: str
    error: str = ""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The work could not be started."""

    message: str


Message = Row | Step | Ran | Failed


def work(order: Order, tell: Callable[[Message], None]) -> None:
    tell(Step("", "loading"))
    try:
        load(Request(namespace=order.namespace, libraries=order.libraries))
    except (ImportError, OSError) as error:
        tell(Failed(str(error)))
        return

    from esimd_ops import registry
    from esimd_ops.table import OPS

    from . import reproduce, trial
    from .watch import Runtime

    try:
        runtime = Runtime.loaded()
    except ToolError as error:
        tell(Failed(str(error)))
        return
    found = registry.schemas(order.namespace)
    for op, schema in found.items():
        if op in order.skip or op not in OPS or (order.operators and op not in order.operators):
            continue
        refused = ""
        if order.replay:
            cases = {order.shapes: reproduce.arguments(order.replay)}
        else:
            cases = trial.cases(OPS[op], order.shapes, beyond=order.beyond)

        def step(what: str, op: str = op) -> None:
            tell(Step(op, what))

        for label, arguments in cases.items():
            try:
                row = trial.run(OPS[op], schema, label, arguments, runtime, order.schedules, step)
            except (RuntimeError, ValueError, TypeError) as raised:
                refused = str(raised).splitlines()[0]
                break
            except ToolError as raised:
                tell(Failed(str(raised)))
                return
            tell(row)
        tell(Ran(op, str(schema), refused))
    tell(Step("", "ending"))


def main() -> None:
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    with os.fdopen(int(sys.argv[1]), "wb", buffering=0) as pipe:
        work(order, lambda message: _write(pipe.fileno(), msgspec.json.encode(message) + b"\n"))


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    main()
