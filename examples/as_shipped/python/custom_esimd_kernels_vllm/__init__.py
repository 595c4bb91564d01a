"""Operators registered with the schemas as published. Importing the package loads them and registers their fakes."""

from pathlib import Path

import torch

from esimd_ops import native

native.load()  # the host functions that the registration files are bound to
for _library in sorted(Path(__file__).parent.glob("*.so")):
    torch.ops.load_library(_library)

from . import fakes  # noqa: E402  the operators exist only now
from .ops import *  # noqa: E402, F403

fakes.register()
