"""Calls every operator of a namespace several times with its ordinary sample: a program to observe. argv: the namespace."""

import importlib
import sys

from esimd_ops import native, registry, samples

namespace = sys.argv[1]
native.prepare_runtime()
native.load() if namespace == "esimd_ops" else importlib.import_module(namespace)
for name, schema in registry.schemas(namespace).items():
    if name in samples.SIZES:
        for turn in range(6):  # more than the rings of four buffers
            registry.overload(schema)(**samples.make(name, turn=turn).arguments)
