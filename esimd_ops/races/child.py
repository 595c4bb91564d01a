"""The process that loads a host build's libraries and runs operators under schedules; it may die of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from esimd_ops.trials.child import Step, serve
from esimd_ops.trials.libraries import load
from esimd_ops.trials.messages import Failed, Request
from schema_patch.model import ToolError

from .order import Message, Order, Ran


def work(order: Order, tell: Callable[[Message | Step], None]) -> None:
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

        step = partial(_step, tell, op)
        step("")
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


def _step(tell: Callable[[Step], None], op: str, what: str) -> None:
    tell(Step(op, what))


if __name__ == "__main__":
    serve(Order, work)
