"""Small libraries that register operators by torch's stable C interface, built in a moment: no header of torch is read."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

TORCH = Path(importlib.util.find_spec("torch").origin).parent / "lib"
SPACE = "custom_esimd_kernels_vllm"
HEAD = """
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
extern "C" {
struct Opaque; typedef Opaque* Handle;
int aoti_torch_library_init_def(const char*, const char*, uint32_t, Handle*);
int aoti_torch_library_init_fragment(const char*, const char*, uint32_t, Handle*);
int aoti_torch_library_def(Handle, const char*);
}
#define SHOWN extern "C" __attribute__((visibility("default"), noinline))
"""
# As published, but for the first, which is right.
SCHEMAS = {
    "right": "esimd_gdn_conv_fused(Tensor x) -> ()",
    "fp16": "esimd_gemv_fp16(Tensor input, Tensor weight, Tensor output) -> Tensor",
    "norm": "esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor",
    "add": "esimd_norm_add_norm(Tensor h2_raw, Tensor h1, Tensor w1, Tensor w2, Tensor out, float eps1, float eps2) -> ()",
    "narrow": "esimd_gemv_int4(Tensor input,Tensor weight,Tensor weight_scale,Tensor output)->Tensor",
    "other": "an_operator_of_others(Tensor x, Tensor out) -> Tensor",
}


def source(definitions: Sequence[str], more: str = "", space: str = SPACE) -> str:
    """A library that registers these, each word of C++ that gives a text; `more` stands before."""
    rows = "\n".join(f"  aoti_torch_library_def(l, {text});" for text in definitions)
    return f'{HEAD}{more}\nstruct Init {{ Init() {{ Handle l;\n  aoti_torch_library_init_def("{space}", "x.cpp", 1, &l);\n{rows}\n}} }} init;\n'


def quoted(*names: str) -> list[str]:
    return [json.dumps(SCHEMAS[name]) for name in names]


def build(target: Path, text: str, compiler: str = "g++", *options: str) -> Path:
    """A shared library of a source, linked to the torch that is installed."""
    code = target.with_suffix(".cpp")
    code.write_text(text)
    command = [
        compiler,
        *(options or ["-O2"]),
        "-std=c++17",
        "-fPIC",
        "-shared",
        str(code),
        f"-L{TORCH}",
        "-ltorch_cpu",
        "-o",
        str(target),
    ]
    subprocess.run(command, check=True)
    return target


LOADED = """
import ctypes, json, os, sys, torch
before = set(map(str, torch._C._jit_get_all_schemas()))
for path in sys.argv[1:]:
    sys.stdout.flush()
    if not os.fork():
        ctypes.CDLL(path)
        print(json.dumps(sorted(set(map(str, torch._C._jit_get_all_schemas())) - before)), flush=True)
        os._exit(0)
    if os.wait()[1]:
        print("null", flush=True)
"""


def registered(libraries: Sequence[Path], *, all_: bool = True) -> list[list[str]]:
    """What torch registers for each library, in its own words; nothing for what does not load, unless all must."""
    command = [sys.executable, "-c", LOADED, *map(str, libraries)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(("[", "null"))]
    assert len(found) == len(libraries), done.stdout
    assert not all_ or None not in found, done.stderr
    return [texts or [] for texts in found]
