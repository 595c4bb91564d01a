"""Makes the operators of a request exist in this process: loads their libraries, files or modules."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

from .messages import Request


def load(request: Request) -> None:
    """Make the operators exist. Raises OSError or ImportError where that cannot be done."""
    import torch

    from esimd_ops import native

    if request.device == "xpu" and not (hasattr(torch, "xpu") and torch.xpu.is_available()):
        raise ImportError("device xpu: this torch sees no XPU device")
    native.prepare_runtime()
    for library in request.libraries:
        if library.endswith(".so"):
            torch.ops.load_library(library)
        elif library.endswith(".py"):
            specification = importlib.util.spec_from_file_location(Path(library).stem, library)
            if specification is None or specification.loader is None:
                raise ImportError(f"{library}: not a Python file")
            specification.loader.exec_module(importlib.util.module_from_spec(specification))
        else:
            importlib.import_module(library)
    if not request.libraries:
        if request.namespace == "esimd_ops":
            native.load()
        else:  # libraries name their namespace after their package
            importlib.import_module(request.namespace)
