"""Records what releases of torch give to icpx and c++ for a SyclExtension: tests/driver/commands.json.

    python tests/driver/record_commands.py VERSION=CPP_EXTENSION_PY...

CPP_EXTENSION_PY is torch/utils/cpp_extension.py of that release, in its place in an unpacked wheel; it runs in the torch
that is installed. The compilers are stand-ins that write their words down. Of folders, /t is the tree.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

STAND_IN = """\
#!{python}
import json, sys
words = sys.argv[1:]
if {{"--version", "-v", "-dumpversion", "-dumpfullversion"}} & set(words):
    print("Intel(R) oneAPI DPC++/C++ Compiler 2025.3.2 (2025.3.2.20260112)" if {name!r} == "icpx" else "12.2.0")
else:
    with open({record!r}, "a") as record:
        record.write(json.dumps([{name!r}, *words]) + "\\n")
    open(words[words.index("-o") + 1], "w").close()
"""
GIVEN = {
    "cxx": ["-O1", '-DDIGEST="abc"'],
    "sycl": ["-O2", '-DDIGEST="abc"', "-ffile-prefix-map=/t=.", "-fsycl-device-code-split=per_kernel"],
}


def main(releases: list[str]) -> int:
    found = {}
    for release in releases:
        version, _, path = release.partition("=")
        with tempfile.TemporaryDirectory() as work:
            found[version] = _record(Path(path).resolve(), Path(work))
    rows = {version: ",\n  ".join(map(json.dumps, commands)) for version, commands in found.items()}
    text = ",\n".join(f'"{version}": [\n  {row}\n]' for version, row in rows.items())
    Path(__file__).with_name("commands.json").write_text(f"{{\n{text}\n}}\n")
    return 0


def _record(path: Path, work: Path) -> list[list[str]]:
    """The words of each call of a compiler, the first its name, in the order of the alphabet."""
    tree, record, tools = work / "t", work / "record", work / "sycl/bin"
    tree.mkdir()
    tools.mkdir(parents=True)
    for name in ("include/sycl", "lib"):
        (work / "sycl" / name).mkdir(parents=True)
    for name in ("ops.cpp", "norm.sycl"):
        (tree / name).touch()
    for name in ("icpx", "c++"):
        (tools / name).write_text(STAND_IN.format(python=sys.executable, record=str(record), name=name))
        (tools / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "CXX": "c++", "CC": "c++", "CFLAGS": "",
           "SYCL_HOME": str(work / "sycl"), "TORCH_XPU_ARCH_LIST": "bmg,bmg-g31", "LDSHARED": "c++ -shared",
           "LDCXXSHARED": "c++ -shared"}  # fmt: skip
    subprocess.run([sys.executable, __file__, "--child", path], cwd=tree, env=env, check=True)
    places = {str(tree): "/t", str(work): "", str(path.parents[1]): "/site/torch", sys.prefix: "/python",
              sys.base_prefix: "/python"}  # fmt: skip
    return sorted([_placed(word, places) for word in json.loads(line)] for line in record.read_text().splitlines())


def _placed(word: str, places: dict[str, str]) -> str:
    for path, name in places.items():
        word = word.replace(path, name)
    return word


def _child(path: str) -> None:
    """That release's own build of a tree with one source of each kind."""
    import torch
    from setuptools import setup

    torch.xpu._is_compiled = lambda: True
    # What releases up to 2.8 ask of their own binary, with the answers of those.
    for name, value in (("COMPILER_TYPE", "_gcc"), ("STDLIB", "_libstdcpp"), ("BUILD_ABI", "_cxxabi1011")):
        setattr(torch._C, f"_PYBIND11_{name}", value)
    spec = importlib.util.spec_from_file_location("torch.utils.cpp_extension", path)
    assert spec is not None
    assert spec.loader is not None
    release = importlib.util.module_from_spec(spec)
    sys.modules["torch.utils.cpp_extension"] = release
    spec.loader.exec_module(release)
    sys.argv = ["setup.py", "build_ext"]
    extension = release.SyclExtension(
        "kit._C", ["ops.cpp", "norm.sycl"], extra_compile_args=GIVEN, include_dirs=["/t/csrc"]
    )
    setup(name="kit", packages=[], ext_modules=[extension], cmdclass={"build_ext": release.BuildExtension})


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        _child(sys.argv[2])
    else:
        sys.exit(main(sys.argv[1:]))
