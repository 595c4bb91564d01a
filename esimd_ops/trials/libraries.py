"""Makes the operators of a request exist in this process: loads their libraries, files or modules."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from schema_patch.model import ToolError


def expect(namespace: str, libraries: Sequence[str] = (), samples: str = "") -> None:
    """Says once, before a process is started for each operator, what all of them would miss. Loads nothing.

    Raises ModuleNotFoundError without torch, ToolError where nothing can register the operators.
    """
    if importlib.util.find_spec("torch") is None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
    named = libraries or samples or namespace == "esimd_ops"  # a samples file may register its operators itself
    if not named and importlib.util.find_spec(namespace) is None:
        raise ToolError(
            f"No module named '{namespace}': install it, put its folder on PYTHONPATH, "
            "or name what registers the operators with --library",
            f"torch.ops.{namespace}",
        )


def load(namespace: str, libraries: Sequence[str], device: str = "cpu") -> None:
    """Make the operators exist. Raises OSError or ImportError where that cannot be done."""
    import torch

    from esimd_ops import native

    if device == "xpu" and not (hasattr(torch, "xpu") and torch.xpu.is_available()):
        raise ImportError("device xpu: this torch sees no XPU device")
    native.prepare_runtime()
    for library in libraries:
        if library.endswith(".so"):
            torch.ops.load_library(library)
        elif library.endswith(".py"):
            python_file(library)
        else:
            importlib.import_module(library)
    if not libraries:
        if namespace == "esimd_ops":
            native.load()
        else:  # libraries name their namespace after their package
            importlib.import_module(namespace)


def python_file(path: str) -> ModuleType:
    """Runs a Python file. Raises ImportError for what is none."""
    specification = importlib.util.spec_from_file_location(Path(path).stem, path)
    if specification is None or specification.loader is None or not Path(path).is_file():
        raise ImportError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(specification)
    found = importlib.util.find_spec(specification.name)
    if found and found.origin and Path(found.origin).resolve() == Path(path).resolve():
        sys.modules.setdefault(specification.name, module)  # samples may import it: it registers once
    specification.loader.exec_module(module)
    return module
