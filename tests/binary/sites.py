"""A site-packages folder with one distribution, and what is read of it."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path

from schema_patch.elf import reader

NAME = "custom_kernels"
INFO = f"{NAME}-1.0.dist-info"
OLD = 1_600_000_000


def make(folder: Path, library: Path) -> Path:
    """The distribution, whose one package holds this library."""
    package, info = folder / "custom", folder / INFO
    package.mkdir(parents=True)
    info.mkdir()
    data = library.read_bytes()
    (package / "_C.so").write_bytes(data)
    (package / "header.h").write_text("TORCH_LIBRARY(x, m) {}\n")  # headers are installed too: not what is patched
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.0\n")
    (info / "RECORD").write_text(f"custom/_C.so,{hashed(data)},{len(data)}\n{info.name}/RECORD,,\n")
    os.utime(package / "_C.so", (OLD, OLD))
    return folder


def hashed(data: bytes) -> str:
    """A hash as RECORD states it, by another way than the kit's own."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".tmp"
    }


def written(path: Path) -> set[str]:
    """The arguments that the schemas of a library declare as written."""
    return {name for found in reader.read(path).schemas for name in found.schema.writes}
