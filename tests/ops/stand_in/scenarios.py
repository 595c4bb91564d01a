"""A process in which torch has two devices that stand in for cards. Prints what each scenario saw, as JSON lines.

python scenarios.py LIBRARY
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import torch

from esimd_ops import native, samples

native.load()
torch.ops.load_library(sys.argv[1])
stand_in = torch.ops.stand_in
OPERATORS = ("esimd_rms_norm", "esimd_gemm_int4_pgrp", "esimd_resadd_norm_gemv_int4_pert", "esimd_moe_scatter_fused")


def call(operator: str, device: int) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """The same call on the CPU and on a device that stands in: all tensors of each, as they are afterwards."""
    sample = samples.make(operator)
    cpu = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in sample.arguments.items()}
    there = {k: stand_in.place(v, device) if isinstance(v, torch.Tensor) else v for k, v in cpu.items()}
    getattr(torch.ops.esimd_ops, operator)(**cpu)
    getattr(torch.ops.esimd_ops, operator)(**there)
    return ({k: v for k, v in args.items() if isinstance(v, torch.Tensor)} for args in (cpu, there))  # type: ignore[return-value]


def equal(cpu: dict[str, torch.Tensor], there: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(cpu[k].view(torch.uint8), stand_in.look(there[k]).view(torch.uint8)) for k in cpu)


def same_results() -> Iterator[tuple[str, object]]:
    for operator in OPERATORS:
        for device in (0, 1):
            cpu, there = call(operator, device)
            stand_in.synchronize(device, 0)
            yield f"{operator} on {device}", equal(cpu, there)


def order() -> Iterator[tuple[str, object]]:
    """A stream that is held back: the call returns, nothing is done; another stream and the CPU go on."""
    compiled = call("esimd_gemm_int4_pgrp", 0)
    stand_in.synchronize(0, 0)
    yield "before", equal(*compiled)
    stand_in.hold(0, 1)
    stand_in.stream(0, 1)
    cpu, held = call("esimd_gemm_int4_pgrp", 0)
    yield "held back", equal(cpu, held)
    stand_in.stream(0, 0)
    cpu_other, free = call("esimd_gemm_int4_pgrp", 0)
    stand_in.synchronize(0, 0)
    yield "another stream", equal(cpu_other, free)
    yield "still held back", equal(cpu, held)
    stand_in.let_go()
    stand_in.synchronize(0, 1)
    yield "let go", equal(cpu, held)


def temporaries() -> Iterator[tuple[str, object]]:
    """What one kernel leaves to the next is let go of when the operator returns, and used afterwards."""
    for operator in OPERATORS:
        stand_in.hold(1, 0)
        before = stand_in.ended()
        cpu, there = call(operator, 1)
        after = stand_in.ended()
        stand_in.let_go()
        stand_in.synchronize(1, 0)
        yield f"{operator}: kept", (after[0] - before[0], after[1] - before[1])
        yield f"{operator}: right", equal(cpu, there)
        del cpu, there  # or their end is counted with the next operator's


def late_errors() -> Iterator[tuple[str, object]]:
    """What went wrong on the stream before is not the operator's: it runs, and whoever waits is told."""
    stand_in.fail(0, 0)
    cpu, there = call("esimd_rms_norm", 0)
    try:
        stand_in.synchronize(0, 0)
        yield "told", ""
    except RuntimeError as error:
        yield "told", str(error)
    stand_in.synchronize(0, 0)
    yield "told once", True
    cpu, there = call("esimd_rms_norm", 0)
    stand_in.synchronize(0, 0)
    yield "right after", equal(cpu, there)


def refusals() -> Iterator[tuple[str, object]]:
    arguments = samples.make("esimd_rms_norm").arguments
    placed = enumerate(arguments.items())
    mixed = {k: stand_in.place(v, i % 2) if isinstance(v, torch.Tensor) else v for i, (k, v) in placed}
    yield "two devices", refused(mixed)
    stand_in.stream(0, 2)  # which keeps no order
    there = {k: stand_in.place(v, 0) if isinstance(v, torch.Tensor) else v for k, v in arguments.items()}
    yield "no order", refused(there)
    stand_in.stream(0, 0)


def refused(arguments: dict[str, object]) -> str:
    try:
        torch.ops.esimd_ops.esimd_rms_norm(**arguments)
    except RuntimeError as error:
        return str(error).partition("\n")[0]
    return ""


for scenario in (same_results, order, temporaries, late_errors, refusals):
    print(json.dumps({"scenario": scenario.__name__, "saw": dict(scenario())}), flush=True)
