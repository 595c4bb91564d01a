"""Calls each operator of a library with its samples, and tells the recorder which: child.py NAMESPACE DEVICE LIBRARY...

launches.cpp is preloaded, and for a library that was built for a card xpu.cpp too. A call that is refused says why in
the place of its launches.
"""

import ctypes
import json
import sys

import torch

from esimd_ops import native, samples
from esimd_ops.samples import build

MANY = 100_000_000  # elements of all arguments together: what is larger says nothing new of a launch


def main(namespace: str, device: str, libraries: list[str]) -> None:
    native.prepare_runtime()
    for library in libraries:
        torch.ops.load_library(library)
    recorder = ctypes.CDLL(None)
    operators = getattr(torch.ops, namespace)
    for operator, sizes in samples.every():
        if not hasattr(operators, operator):
            continue
        label = f"{operator} {build.label(sizes)}"
        given = list(samples.make(operator, sizes).arguments.values())
        if sum(value.numel() for value in given if isinstance(value, torch.Tensor)) > MANY:
            continue
        given = [there(value, device) if isinstance(value, torch.Tensor) else value for value in given]
        recorder.launches_of(label.encode())
        try:
            getattr(operators, operator)(*given)
        except (RuntimeError, NotImplementedError) as error:
            recorder.launches_of(json.dumps(f"{label}: {str(error).splitlines()[0]}")[1:-1].encode())


def there(value: torch.Tensor, device: str) -> torch.Tensor:
    """A copy on the device, its rows as far apart as they were."""
    return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=device).copy_(value)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
