"""Facts come from running programs: real ones, and stand-ins that print what real ones printed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from schema_patch.build import toolchain
from schema_patch.build.driver.runtime import path_runtimes
from schema_patch.model import ToolError

from .recorded import GXX, ICPX_2025, ICPX_2026, OCLOC_IDS, OCLOC_IDS_BEFORE_G31, stand_in, stand_in_python

XPU = {
    "packages": {
        "executable": "/env/bin/python", "version": "3.11.7", "prefix": "/env", "scripts": "/env/bin", "libraries": [],
        "packages": {"torch": "2.11.0+xpu", "pip": "26.3", "setuptools": "84", "wheel": "0.48"},
    },
    "torch": {"version": "2.11.0+xpu", "xpu": True, "arch_list": ["bmg", "mtl-h"], "sycl": ["/env/lib/libsycl.so.8"]},
}  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine with all that an xpu build needs, as stand-ins."""
    tools = tmp_path / "bin"
    stand_in(tools, "icpx", ICPX_2025)
    stand_in(tools, "c++", GXX)
    stand_in(tools, "ninja", "1.13.2\n")
    # ocloc knows no --version, as older releases of it.
    stand_in(tools, "ocloc", OCLOC_IDS, script='[ "$1" = ids ] || { echo "Invalid option (arg 1): $1"; exit 226; }')
    stand_in_python(tools, XPU)
    return {"PATH": f"{tools}:/bin:/usr/bin", "TORCH_XPU_ARCH_LIST": "bmg", "HOME": str(tmp_path),
            "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}  # fmt: skip


def doctor(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "schema_patch", "doctor", *words]
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=300)


def test_what_programs_say_becomes_facts(machine: dict[str, str], tmp_path: Path) -> None:
    facts = toolchain.gather(str(tmp_path / "bin/python"), machine)
    assert {name: program.version for name, program in facts.programs.items()} == {
        "icpx": "2025.3.2", "c++": "12.2.0", "ninja": "1.13.2", "ocloc": "",
    }  # fmt: skip
    assert facts.torch == toolchain.Torch("2.11.0+xpu", True, ("bmg", "mtl-h"), ("/env/lib/libsycl.so.8",))
    assert facts.ocloc_ids == {"bmg": ("20.1.0", "20.2.0")}
    assert facts.environment == {"TORCH_XPU_ARCH_LIST": "bmg"}
    assert facts.cpus >= 1
    assert facts.memory > 2**20


def test_doctor_is_content(machine: dict[str, str], tmp_path: Path) -> None:
    done = doctor({**machine, "MAX_JOBS": "1"}, "--python", str(tmp_path / "bin/python"), "--format", "json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["for"]) == (0, "xpu")
    assert not [line for line in document["lines"] if line["severity"] == "error"]
    assert document["facts"]["programs"]["icpx"]["said"] == ICPX_2025.splitlines()[0]


def test_doctor_of_a_tree_speaks_of_what_rebuild_would_do(machine: dict[str, str], tmp_path: Path) -> None:
    """Who compiles, for which devices and how many at once are settled, as there."""
    tree = str(Path(__file__).parents[1] / "driver/tree")
    unset = {name: value for name, value in machine.items() if name != "TORCH_XPU_ARCH_LIST"}
    for icpx, chosen in ((ICPX_2025, "xpu"), (ICPX_2026, "bmg")):
        stand_in(tmp_path / "bin", "icpx", icpx)
        done = doctor(unset, tree, "--python", str(tmp_path / "bin/python"))
        assert done.stdout.startswith(f"for {chosen}, with ")
        assert "TORCH_XPU_ARCH_LIST=bmg" in done.stdout
    by_hand = doctor(unset, "--python", str(tmp_path / "bin/python"))
    assert "TORCH_XPU_ARCH_LIST is not set" in by_hand.stdout


@pytest.mark.parametrize(
    ("tool", "said", "code", "environment", "expected"),
    [
        ("icpx", ICPX_2026, 0, {}, "icpx: icpx 2026.1.0"),
        ("icpx", "error while loading shared libraries: libimf.so", 127, {}, "does not tell its version"),
        ("ocloc", "Unknown acronym bmg.\n", 226, {}, "this ocloc does not know bmg"),
        ("ninja", "1.13.2\n", 0, {"TORCH_XPU_ARCH_LIST": "pvc,bmg,mtl-h"}, "names mtl-h"),
    ],
)
def test_doctor_refuses(machine, tmp_path, tool, said, code, environment, expected) -> None:
    stand_in(tmp_path / "bin", tool, said, code)
    done = doctor({**machine, **environment}, "--for", "xpu", "--python", str(tmp_path / "bin/python"))
    assert done.returncode == 1
    assert expected in done.stdout
    assert "fix: " in done.stdout


def test_an_ocloc_from_before_the_card(machine: dict[str, str], tmp_path: Path) -> None:
    stand_in(tmp_path / "bin", "ocloc", OCLOC_IDS_BEFORE_G31)
    facts = toolchain.gather(str(tmp_path / "bin/python"), machine)
    assert facts.ocloc_ids == {"bmg": ("20.1.0",)}


def test_a_torch_that_cannot_be_imported(machine: dict[str, str], tmp_path: Path) -> None:
    said = "ImportError: libsycl.so.9: cannot open shared object file: No such file or directory"
    python = stand_in_python(tmp_path / "bin", {**XPU, "torch": said})
    done = doctor(machine, "--python", str(python))
    assert done.returncode == 1
    assert f"torch 2.11.0+xpu cannot be imported: {said}" in done.stdout


def test_two_runtimes_on_the_path(machine: dict[str, str], tmp_path: Path) -> None:
    sourced = tmp_path / "oneapi/lib"
    sourced.mkdir(parents=True)
    (sourced / "libsycl.so.9.0.0").touch()
    (sourced / "libsycl.so.9").symlink_to("libsycl.so.9.0.0")
    environment = {**machine, "LD_LIBRARY_PATH": f"/nowhere::{sourced}:{sourced}", "SETVARS_COMPLETED": "1"}
    assert path_runtimes(environment["LD_LIBRARY_PATH"]) == (str(sourced / "libsycl.so.9"),)
    done = doctor(environment, "--python", str(tmp_path / "bin/python"))
    assert done.returncode == 1
    assert f"setvars.sh was sourced: {sourced}/libsycl.so.9 on LD_LIBRARY_PATH" in done.stdout


def test_a_stale_cache_is_named(machine: dict[str, str], tmp_path: Path) -> None:
    graph = tmp_path / "inductor/fxgraph/graph"
    graph.parent.mkdir(parents=True)
    graph.write_text("torch.ops.custom_esimd_kernels_vllm.esimd_gemv_int4.default(x, w, s, out)")
    done = doctor({**machine, "MAX_JOBS": "1"}, "--python", str(tmp_path / "bin/python"))
    assert done.returncode == 0
    assert f"caches: Inductor cache {tmp_path}/inductor names known operators (1)" in done.stdout
    assert f"schema-patch caches --purge {tmp_path}/inductor" in done.stdout


def test_no_interpreter_is_no_finding(machine: dict[str, str], tmp_path: Path) -> None:
    for python, said in ((tmp_path / "none", "cannot be started"), (stand_in(tmp_path, "mute"), "expected an answer")):
        done = doctor(machine, "--python", str(python))
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("from torch.utils.cpp_extension import SyclExtension", True),
        ('compiler = shutil.which("icpx")', True),
        ("from torch.utils.cpp_extension import CppExtension", False),
    ],
)
def test_what_asks_for_sycl(tmp_path: Path, text: str, asks: bool) -> None:
    (tmp_path / "setup.py").write_text(text)
    assert toolchain.asks_for_sycl(tmp_path) is asks


def test_cards_are_intel_displays_only(tmp_path: Path) -> None:
    devices = {
        "0": ("0x8086", "0x030000", "0xe223"),
        "1": ("0x10de", "0x030200", "0x2335"),
        "2": ("0x8086", "0x060000", "0x1234"),
    }
    for name, (vendor, kind, device) in devices.items():
        (tmp_path / name).mkdir()
        for file, text in (("vendor", vendor), ("class", kind), ("device", device)):
            (tmp_path / name / file).write_text(f"{text}\n")
    (tmp_path / "3").mkdir()
    assert toolchain.cards(tmp_path) == ("e223",)
    assert toolchain.cards(tmp_path / "none") == ()


def test_a_container_has_the_memory_of_its_limit(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:       64000000 kB\nMemAvailable:   32000000 kB\n")
    assert toolchain.available_memory(meminfo, tmp_path) == 32_000_000 * 1024
    (tmp_path / "memory.current").write_text("1000\n")
    for limit, expected in (("max", 32_000_000 * 1024), ("5000", 4000), ("500", 0)):
        (tmp_path / "memory.max").write_text(f"{limit}\n")
        assert toolchain.available_memory(meminfo, tmp_path) == expected


def test_this_machine() -> None:
    """The real interpreter, compiler, ninja and SYCL runtime of the environment that runs the tests."""
    facts = toolchain.gather(sys.executable, dict(os.environ))
    assert facts.torch is not None
    assert facts.torch.version == facts.interpreter.packages["torch"]
    assert (
        facts.programs["c++"].version
        in subprocess.run(["c++", "--version"], capture_output=True, text=True, check=True).stdout
    )
    assert Path(facts.programs["ninja"].path).is_file()
    assert facts.devices is not None
    assert facts.devices.error == ""
    assert facts.devices.shown["cpu"] == 1


def test_the_device_can_be_invisible() -> None:
    """The runtime is asked with the user's environment: a selector that leaves its device out makes it vanish."""
    hidden = {**os.environ, "ONEAPI_DEVICE_SELECTOR": "level_zero:*"}
    facts = toolchain.gather(sys.executable, hidden)
    assert facts.devices is not None
    assert not facts.devices.shown.get("cpu")


def test_an_interpreter_asked_by_its_path_finds_its_own_ninja(tmp_path: Path) -> None:
    scripts = os.path.dirname(sys.executable)
    if not shutil.which("ninja", path=scripts):
        pytest.fail("the test environment has ninja beside its interpreter")
    facts = toolchain.gather(sys.executable, {"PATH": "/bin:/usr/bin", "HOME": str(tmp_path)})
    assert facts.programs["ninja"].path == os.path.join(scripts, "ninja")
    with pytest.raises(ToolError, match="cannot be started"):
        toolchain.gather(str(tmp_path), {"PATH": "/bin"})
