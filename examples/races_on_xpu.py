"""Does an operator race on this card? Calls it many times with the same arguments and compares with its reference.

    python examples/races_on_xpu.py                        # the operators of docs/races.md, sizes of served models
    python examples/races_on_xpu.py esimd_gdn_conv_fused --sizes 4x4x8 --times 1000
    python examples/races_on_xpu.py --device cpu           # the same on this kit's own kernels, which do not race

Needs torch for XPU, the library (its package is imported: --namespace), and this kit. What an operator updates in place
is set back before each call, and several calls follow each other without a wait, as in a decoding step. Exit code 1
where any call was wrong.
"""

from __future__ import annotations

import argparse
import importlib
import sys

import torch

from esimd_ops import native, registry
from esimd_ops.samples import domain, models
from esimd_ops.table import OPS
from esimd_ops.trials.subject import OfTable
from schema_patch.model import ToolError

BACK_TO_BACK = 8  # calls before a wait


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("operators", nargs="*")
    words.add_argument("--sizes", default="models", help="models, or sizes separated by commas")
    words.add_argument("--times", type=int, default=1000)
    words.add_argument("--device", default="xpu")
    words.add_argument("--namespace", default="")
    given = words.parse_args()
    namespace = given.namespace or ("esimd_ops" if given.device == "cpu" else "custom_esimd_kernels_vllm")
    native.load() if namespace == "esimd_ops" else importlib.import_module(namespace)
    found = registry.schemas(namespace)
    wrong = False
    for name in given.operators or models.SIZES:
        if name not in found:
            print(f"{name}: not registered in {namespace}")
            continue
        call = registry.overload(found[name])
        subject = OfTable(OPS[name])
        for label in subject.labels(given.sizes):
            arguments = subject.make(label)
            if namespace != "esimd_ops" and not domain.published(name, arguments):
                continue
            bad, share = attempt(call, subject, arguments, given.times, given.device)
            groups = f", up to {share:.1%} of an output" if bad else ""
            print(f"{name} {label}: {bad} of {given.times} calls wrong{groups}", flush=True)
            wrong |= bad > 0
    return 1 if wrong else 0


def attempt(call, subject, arguments, times, device):
    """How many of so many calls gave a wrong output, and the largest share of wrong elements."""
    truth = subject.truth(arguments)
    kept = {name: v.to(device) if isinstance(v, torch.Tensor) else v for name, v in arguments.items()}
    bad, worst = 0, 0.0
    for start in range(0, times, BACK_TO_BACK):
        several = range(min(BACK_TO_BACK, times - start))
        runs = [{n: v.clone() if n in subject.writes else v for n, v in kept.items()} for _ in several]
        with torch.no_grad():
            for run in runs:
                call(**run)
        if device == "xpu":
            torch.xpu.synchronize()
        for run in runs:
            share = max(truth.shares({n: run[n].cpu() for n in subject.writes}).values())
            bad, worst = bad + (share > 0), max(worst, share)
    return bad, worst


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ToolError, ImportError) as error:
        sys.exit(f"races_on_xpu: {error}")
