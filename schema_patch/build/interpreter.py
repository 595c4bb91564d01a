"""What an interpreter has installed, as JSON on standard output. Its text is run by that interpreter, never imported.

    python interpreter.py packages            versions of what a build needs, and where the interpreter keeps things
    python interpreter.py torch               torch's version, its devices, and the SYCL runtime that it loads
    python interpreter.py devices LIBSYCL     how many devices of each kind this SYCL runtime finds

Knows torch by name only, so that it runs without; needs nothing but the standard library of any Python 3.8.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import json
import os
import re
import sys
import sysconfig

PACKAGES = ("torch", "intel-sycl-rt", "intel-opencl-rt", "setuptools", "wheel", "ninja", "pip")
LIBRARY = re.compile(r"libsycl\.so\.\d+|libintelocl\.so")
# sycl::device::get_devices(sycl::info::device_type) of libsycl.so.8, and the numbers of its argument.
GET_DEVICES = "_ZN4sycl3_V16device11get_devicesENS0_4info11device_typeE"
KINDS = {"gpu": 3, "cpu": 4}


def packages() -> dict[str, object]:
    found: dict[str, str] = {}
    libraries: list[str] = []
    for name in PACKAGES:
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        found[name] = distribution.version
        if name.startswith("intel-"):
            files = [file for file in distribution.files or () if LIBRARY.fullmatch(file.name)]
            libraries += [os.path.normpath(str(file.locate())) for file in files]
    return {
        "executable": sys.executable,
        "version": sys.version.split()[0],
        "prefix": sys.prefix,
        "scripts": sysconfig.get_path("scripts"),
        "packages": found,
        "libraries": sorted(libraries),
    }


def torch() -> dict[str, object]:
    module = importlib.import_module("torch")
    with open("/proc/self/maps") as maps:
        mapped = {line.split()[-1] for line in maps if "libsycl.so." in line}
    built = getattr(module.xpu, "_is_compiled", lambda: False)()
    return {
        "version": module.__version__,
        "xpu": bool(built),
        "arch_list": module.xpu.get_arch_list() if built else [],
        "sycl": sorted(mapped),
    }


def devices(library: str) -> dict[str, int]:
    """Counts with the runtime's own call; a std::vector of 16-byte handles comes back through the first argument."""
    get_devices = getattr(ctypes.CDLL(library), GET_DEVICES)
    get_devices.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    get_devices.restype = None
    counts = {}
    for kind, number in KINDS.items():
        vector = (ctypes.c_void_p * 3)()
        get_devices(ctypes.byref(vector), number)
        counts[kind] = ((vector[1] or 0) - (vector[0] or 0)) // 16
    return counts


if __name__ == "__main__":
    question, *words = sys.argv[1:]
    answer = {"packages": packages, "torch": torch, "devices": devices}[question](*words)  # type: ignore[operator]
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0)  # SYCL objects must not be destroyed by a process that ends
