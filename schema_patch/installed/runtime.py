"""Which SYCL runtime a torch needs, read from the files of its libraries: torch is not imported.

Two runtimes in one process crash where a queue crosses, so torch's is the one that other libraries must need.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path

from schema_patch.elf import reader
from schema_patch.elf.reader import ElfFacts
from schema_patch.elf.sycl import sycl_major

from . import policy

# Of torch's libraries, those that are linked with the runtime where it is built for XPU.
OF_TORCH = ("libc10_xpu.so", "libtorch_xpu.so")


def of_torch() -> tuple[str, str]:
    """The N of the libsycl.so.N that the torch of this interpreter needs, and the library that says so.

    Both are empty where it has none or there is no torch.
    """
    spec = importlib.util.find_spec("torch")
    for folder in spec.submodule_search_locations or () if spec else ():
        for name in OF_TORCH:
            path = str(Path(folder, "lib", name))
            if os.path.isfile(path) and (major := sycl_major(reader.read(path, linked=True))):
                return major, path
    return "", ""


def expected(beside: Iterable[ElfFacts]) -> tuple[str, str]:
    """The N that libraries must need, and who says so: a torch beside them, that of this interpreter, or the policy."""
    for library in beside:
        if os.path.basename(library.path) in OF_TORCH and (major := sycl_major(library)):
            return major, library.path
    major, who = of_torch()
    return (major, who) if major else (policy.load().sycl.major, "the origin library")
