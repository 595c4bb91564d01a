"""The process that loads the libraries and runs the operators; it may die of them.

`python -m esimd_ops.parity.child FD`

Reads a Request from standard input and writes messages, one JSON document a line, to the file descriptor FD.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import msgspec

from esimd_ops.trials.libraries import load
from esimd_ops.trials.messages import At, Failed, Found, Message, Request


def work(request: Request, tell: Callable[[Message], None]) -> None:
    tell(At("", "loading"))
    try:
        load(request)
    except (ImportError, OSError) as error:
        # torch says which library could not be loaded, and only its cause says why.
        tell(Failed(f"{error}: {error.__cause__}" if error.__cause__ else str(error)))
        return

    from esimd_ops import registry
    from esimd_ops.table import OPS

    from .trial import Trial

    found = {op: schema for op, schema in registry.schemas(request.namespace).items() if _known(op, schema)}
    run = tuple(op for op in OPS if op in found and (not request.operators or op in request.operators))
    tell(Found({op: str(schema) for op, schema in registry.schemas(request.namespace).items()}, run))
    for op in run:
        if op in request.skip:
            continue
        trial = Trial(OPS[op], found[op], device=request.device, repeat=request.repeat, beyond=request.beyond)
        tell(At(op, ""))
        tell(trial.run(lambda step, op=op: tell(At(op, step))))  # type: ignore[misc]
    tell(At("", "ending"))


def _known(op: str, schema: object) -> bool:
    from esimd_ops.table import OPS

    return op in OPS and tuple(a.name for a in schema.args) == OPS[op].arguments  # type: ignore[attr-defined]


def main() -> None:
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    with os.fdopen(int(sys.argv[1]), "wb", buffering=0) as pipe:
        work(request, lambda message: _write(pipe.fileno(), msgspec.json.encode(message) + b"\n"))


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    main()
