"""Finds and loads the built extension, once; the only module that can fail with "not built".

Knows where pip puts the SYCL runtime and what that runtime reads from the environment. Knows nothing of operators.
"""

import ctypes
import functools
import importlib
import importlib.machinery
import importlib.metadata
import os
from pathlib import Path
from types import ModuleType


class NotBuiltError(ImportError):
    """The package was installed without its native extension."""

    def __init__(self) -> None:
        super().__init__(
            "esimd_ops was installed without its native extension, so it has no operators. The extension needs torch, "
            "a C++20 compiler, and the PyPI packages intel-sycl-rt and intel-opencl-rt 2025.3.x in this environment; "
            "with those installed, run `ESIMD_OPS_BUILD=host pip install --no-build-isolation .` in the source tree."
        )


def library_path() -> Path:
    """Path of the built extension, for loading or for linking against. Raises NotBuiltError."""
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = Path(__file__).resolve().with_name(f"_C{suffix}")
        if path.is_file():
            return path
    raise NotBuiltError


@functools.cache
def load() -> ModuleType:
    """Load torch and the extension, which registers the operators under `torch.ops.esimd_ops`.

    Returns the extension module: `build_mode`, `device()` and `kernels()`. Raises NotBuiltError.
    """
    library_path()
    import torch  # noqa: F401  the extension links to torch's libraries

    prepare_runtime()
    return importlib.import_module("esimd_ops._C")


def prepare_runtime() -> None:
    """Point the SYCL runtime at its CPU device and its cache; what the user has set stays.

    Does nothing where the runtime was not installed by pip: it is then found by the system's own means.
    """
    # Compiled kernels go to $SYCL_CACHE_DIR, or to libsycl_cache in the user's cache directory.
    os.environ.setdefault("SYCL_CACHE_PERSISTENT", "1")
    if device := _installed_library("intel-opencl-rt", "libintelocl.so"):
        os.environ.setdefault("OCL_ICD_FILENAMES", str(device))
    # The extension's own search path holds where it was installed beside the runtime; an editable install was not.
    if runtime := _installed_library("intel-sycl-rt", "libsycl.so.8"):
        ctypes.CDLL(str(runtime))


def _installed_library(distribution: str, name: str) -> Path | None:
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(file.locate()).resolve() for file in files if file.name == name), None)
