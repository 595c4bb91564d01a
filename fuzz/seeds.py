"""Writes fuzz/corpus anew: small files of every kind that the reader knows, and libraries whose code is followed.

python fuzz/seeds.py
"""

from __future__ import annotations

import io
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests" / folder) for folder in ("schema_patch", "registrations", "binary")]
import stable  # noqa: E402
import ways  # noqa: E402
import zstandard  # noqa: E402
from device_files import G21, G31, archive, generic_ir, library, spirv, zebin  # noqa: E402
from elf_files import ALIAS, OTHER, VOID, build, registering, sstrip  # noqa: E402

SMALL = ("-nostdlib", "-Wl,-z,noseparate-code", "-Wl,--build-id=none", "-Wl,-z,max-page-size=64")
REGISTERED = registering([VOID, ALIAS.replace("int4", "fp16").replace(", Tensor weight_scale", "")])
# Each with what it makes the reader do: loops, catches, tables, stores that are kept, vectors, what the loader runs.
WAYS = (
    "a row that code changes", "what a caught exception leaves", "a pointer in a vector", "a virtual function",
    "functions in a table", "constants by an instruction", "what the loader asks a function for",
    "a copy that is changed",
)  # fmt: skip
TEXTS = ("right", "fp16", "norm", "narrow", "other")


def followed(folder: Path) -> dict[str, bytes]:
    """Libraries by the stable interface, whose texts can be changed in place, and by both compilers."""
    found = {}
    for compiler, level in (("g++", "-O0"), ("clang++", "-O2"), ("clang++", "-O0")):
        title = f"stable-{compiler}{level}"
        found[title] = stable.build(folder / title, stable.source(stable.quoted(*TEXTS)), compiler, level)
    for n, name in enumerate(WAYS):
        title = "way-" + name.replace(" ", "-")
        found[title] = stable.build(folder / title, ways.code(ways.WAYS[name]), ("g++", "clang++")[n % 2], "-O2", "-w")
    return {title: path.read_bytes() for title, path in found.items()}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kernels = ["k1", "k2"]
        fat = archive(
            {"64.20.1.0": zebin(kernels, G21), "64.bmg": zebin(kernels, G31), "generic_ir": generic_ir(kernels)}
        )
        plain = build(folder, [VOID, ALIAS, OTHER], needed=("libsycl.so.8",), flags=SMALL)
        seeds = {
            "library": plain.read_bytes(),
            "devices": library(folder / "d", [fat, spirv(kernels)], more=REGISTERED, flags=SMALL).read_bytes(),
            "compressed": library(folder / "z", [zstandard.compress(fat)], more=REGISTERED, flags=SMALL).read_bytes(),
        }
        bare = library(folder / "b", [fat], more=REGISTERED, flags=SMALL)
        sstrip(bare, cut=True)
        seeds["no-sections"] = bare.read_bytes()
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as out:
            for path, data in (("a.so", seeds["library"]), ("p-1.dist-info/RECORD", b"a.so,,\n"), (".wh.b.so", b"")):
                member = tarfile.TarInfo(path)
                member.size = len(data)
                out.addfile(member, io.BytesIO(data))
        seeds["tar"] = tar.getvalue()
        seeds |= followed(folder)
        wheel = io.BytesIO()
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
            out.writestr("p/a.so", seeds["library"])
            out.writestr("p-1.dist-info/RECORD", "p/a.so,sha256=x,1\n")
        seeds["wheel"] = wheel.getvalue()
    (HERE / "corpus").mkdir(exist_ok=True)
    for title, data in seeds.items():
        (HERE / "corpus" / title).write_bytes(data)
        print(f"{title}: {len(data)} bytes")


if __name__ == "__main__":
    main()
