"""Calls every operator of a namespace several times with its ordinary sample: a program to observe. argv: the namespace."""

import importlib
import importlib.util
import sys

from esimd_ops import native, registry, samples

namespace = sys.argv[1]
native.prepare_runtime()
native.load() if namespace == "esimd_ops" else importlib.import_module(namespace)
for beside in registry.BESIDE.values():  # its library is one of its own
    if namespace != "esimd_ops" and importlib.util.find_spec(beside):
        importlib.import_module(beside)
for name, schema in registry.schemas(namespace).items():
    if name in samples.SIZES:
        for turn in range(6):  # more than the rings of four buffers
            registry.overload(schema)(**samples.make(name, turn=turn).arguments)
