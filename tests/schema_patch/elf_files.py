"""Builds small shared libraries with cc, in the test run."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

VOID = "esimd_gemv_int4(Tensor input, Tensor weight, Tensor weight_scale, Tensor(a!) output) -> ()"
ALIAS = "esimd_gemv_int4(Tensor input, Tensor weight, Tensor weight_scale, Tensor(a!) output) -> Tensor(a!)"
WRONG = "esimd_gemv_int4(Tensor input, Tensor weight, Tensor weight_scale, Tensor output) -> Tensor"
OTHER = "rms_norm(Tensor! out, Tensor input, float epsilon) -> ()"


REGISTERS = """
#include <stdint.h>
int aoti_torch_library_init_def(const char *, const char *, uint32_t, void **);
int aoti_torch_library_def(void *, const char *);
__attribute__((constructor)) static void registers_%s(void) {
  void *library;
  aoti_torch_library_init_def(%s, "x.cpp", 1, &library);
%s
}
"""
SPACE = "custom_esimd_kernels_vllm"


def registering(texts: Sequence[str], space: str = SPACE) -> str:
    """C source that registers texts as operators of a namespace, by torch's stable interface."""
    calls = "\n".join(f"  aoti_torch_library_def(library, {json.dumps(text, ensure_ascii=False)});" for text in texts)
    return REGISTERS % (space, json.dumps(space), calls) if texts else ""


def build(
    folder: Path, texts: Sequence[str] = (), *, name: str = "libx.so", needed: Sequence[str] = (), more: str = "",
    flags: Sequence[str] = (), space: str = SPACE,
) -> Path:  # fmt: skip
    """A library that registers texts, with `more` C source and stand-ins for the libraries that it needs."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{name}.c"
    source.write_text(f"{registering(texts, space)}\n{more}\n")
    stubs = []
    for soname in needed:
        stub = folder / "stubs" / soname
        stub.parent.mkdir(exist_ok=True)
        subprocess.run(["cc", "-shared", "-xc", "/dev/null", f"-Wl,-soname,{soname}", "-o", stub], check=True)
        stubs.append(str(stub))
    target = folder / name
    command = ["cc", "-shared", "-fPIC", *flags, str(source), "-Wl,--no-as-needed", *stubs, "-o", str(target)]
    subprocess.run(command, check=True)
    source.unlink()
    return target


def sstrip(path: Path, *, cut: bool = False) -> None:
    """Takes the section headers away; `cut` also takes what lies behind the last segment, as the tool of that name does."""
    data = bytearray(path.read_bytes())
    struct.pack_into("<Q", data, 0x28, 0)
    struct.pack_into("<HHH", data, 0x3A, 0, 0, 0)
    if cut:
        (start,), (count,) = struct.unpack_from("<Q", data, 0x20), struct.unpack_from("<H", data, 0x38)
        segments = [struct.unpack_from("<IIQQQQQQ", data, start + 56 * i) for i in range(count)]
        del data[max(segment[2] + segment[5] for segment in segments) :]
    path.write_bytes(data)
