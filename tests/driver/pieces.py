"""Parts of a build, made up: programs, images, kernels and what an object carries."""

from __future__ import annotations

from pathlib import Path

from schema_patch.build.driver import frontend, objects
from schema_patch.build.driver.arguments import Kernel

# An ocloc as the driver calls it.
SAYS = 'case "$1" in --version) echo 23.43.0; exit 0;; ids) {ids};; compile) {compile};; esac'


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def image(name: str, spirv: bytes = b"code") -> frontend.DeviceImage:
    return frontend.DeviceImage(spirv, (name,), [("SYCL/misc properties", [("optLevel", 2)])])


def kernel(name: str, line: int = 1, **more: object) -> Kernel:
    facts = {"file": "a.cpp", "line": line, "column": 1, "size": 8, "esimd": False, "arguments": ()}
    return Kernel(name=name, **{**facts, **more})  # type: ignore[arg-type]


def payload(source: str, *pairs: tuple[Kernel, bytes], runtime: str = "libsycl.so.8") -> objects.Payload:
    found = tuple(image(one.name, code) for one, code in pairs)
    return objects.Payload(source, runtime, "2025.3.3", found, tuple(one for one, _ in pairs))
