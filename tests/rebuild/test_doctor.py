"""doctor judges facts: on a machine where all is well, and with one thing wrong at a time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from schema_patch.build import doctor
from schema_patch.build.toolchain import Devices, Executable, Facts, FoundCache, Torch
from schema_patch.model import Severity

from .recorded import good

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


def env(**changes: str | None):
    def change(facts: Facts) -> Facts:
        merged = {**facts.environment, **changes}
        return replace(facts, environment={name: value for name, value in merged.items() if value is not None})

    return change


def facts(**changes: object):
    return lambda given: replace(given, **changes)


def programs(**changes: Executable | None):
    def change(given: Facts) -> Facts:
        merged = {**given.programs, **changes}
        return replace(given, programs={name: program for name, program in merged.items() if program})

    return change


def packages(**changes: str | None):
    def change(given: Facts) -> Facts:
        merged = {**given.interpreter.packages, **{name.replace("_", "-"): value for name, value in changes.items()}}
        left = {name: value for name, value in merged.items() if value}
        return replace(given, interpreter=replace(given.interpreter, packages=left))

    return change


def arch(value: str | None, *cards: str):
    return lambda given: replace(env(TORCH_XPU_ARCH_LIST=value)(given), cards=cards)


@pytest.mark.parametrize("purpose", doctor.PURPOSES)
def test_all_is_well(purpose: str) -> None:
    lines = doctor.examine(good(purpose), purpose)
    assert {line.severity for line in lines} == {NOTE}
    assert len(lines) >= 5
    assert doctor.settled(good(purpose), "auto") == purpose


# what is changed · for · the check that must speak · how loud · what it must say · what its fix must hold
CASES = [
    (facts(torch=None, torch_error=""), "xpu", "torch", ERROR, "no torch", "pip install torch"),
    (facts(torch=None, torch_error="ImportError: libsycl.so.9: cannot open shared object file: No such file"),
     "xpu", "torch", ERROR, "libsycl.so.9", "import torch"),
    (facts(torch=Torch("2.13.0+cpu")), "xpu", "torch", ERROR, "2.13.0+cpu without XPU", "torch==2.13.0+xpu"),
    (facts(torch=Torch("2.13.0+xpu", True, (), ("/env/lib/libsycl.so.9",))),
     "xpu", "torch-runtime", ERROR, "libsycl.so.9", "libsycl.so.8"),
    (facts(torch=Torch("2.13.0+xpu", True)), "xpu", "torch-runtime", WARNING, "loads no libsycl.so", ""),
    (programs(icpx=None), "xpu", "icpx", ERROR, "no icpx", "intel-oneapi-compiler-dpcpp-cpp-2025.3"),
    (programs(icpx=Executable("/o/icpx", "2026.1.0")), "xpu", "icpx", ERROR, "2026.1.0", "dpcpp-cpp-2025.3"),
    (programs(icpx=Executable("/o/icpx", "2025.30.1")), "xpu", "icpx", ERROR, "2025.30.1", "dpcpp-cpp-2025.3"),
    (programs(icpx=Executable("/o/icpx", "2024.2.0")), "xpu", "icpx", ERROR, "2024.2.0", "dpcpp-cpp-2025.3"),
    (programs(icpx=Executable("/o/icpx", "", "cannot be started")), "xpu", "icpx", ERROR, "cannot be started", "apt-get"),
    (facts(path_runtimes=("/opt/intel/lib/libsycl.so.9",)), "xpu", "two-runtimes", ERROR, "libsycl.so.9", "env -u"),
    (facts(path_runtimes=("/opt/intel/lib/libsycl.so.8",)), "xpu", "two-runtimes", WARNING, "/opt/intel/lib", "env -u"),
    (facts(path_runtimes=("/opt/intel/lib/libsycl.so.9",)), "host", "two-runtimes", ERROR, "libsycl.so.9", "env -u"),
    (packages(intel_sycl_rt="2025.1.1"), "xpu", "headers", WARNING, "2025.1.1 beside icpx 2025.3.2", "==2025.3.*"),
    (packages(intel_sycl_rt=None), "host", "headers", WARNING, "is not installed", "intel-sycl-rt==2025.3.*"),
    (arch(None), "xpu", "arch", ERROR, "own list names mtl-h", "TORCH_XPU_ARCH_LIST=bmg"),
    (arch("pvc,mtl-h"), "xpu", "arch", ERROR, "names mtl-h", "TORCH_XPU_ARCH_LIST=bmg"),
    (arch("bmg,MTL_H"), "xpu", "arch", ERROR, "names MTL_H", "TORCH_XPU_ARCH_LIST=bmg"),
    (arch(""), "xpu", "arch", WARNING, "is empty", "TORCH_XPU_ARCH_LIST=bmg"),
    (arch("bgm"), "xpu", "arch", WARNING, "names bgm", "TORCH_XPU_ARCH_LIST=bmg"),
    (arch("bmg-g21", "e223"), "xpu", "arch", ERROR, "Arc Pro B70", "TORCH_XPU_ARCH_LIST=bmg"),
    (arch("bmg-g31", "e20b", "e223"), "xpu", "arch", ERROR, "B580", "TORCH_XPU_ARCH_LIST=bmg"),
    (programs(ocloc=None), "xpu", "ocloc", ERROR, "no ocloc", "intel-ocloc"),
    (facts(ocloc_ids={"bmg": ()}), "xpu", "ocloc", ERROR, "does not know bmg", "intel-ocloc"),
    (facts(ocloc_ids={"bmg": ("20.1.0",)}), "xpu", "ocloc", ERROR, "Arc Pro B70", "intel-ocloc"),
    (programs(ninja=None), "xpu", "ninja", ERROR, "no ninja", "pip install ninja"),
    (programs(ninja=None), "host", "ninja", WARNING, "no ninja", "pip install ninja"),
    (programs(**{"c++": None}), "host", "c++", ERROR, "no c++", "apt-get install g++"),
    (programs(**{"c++": Executable("/usr/bin/c++", "9.4.0", "c++ (Ubuntu 9.4.0) 9.4.0")}),
     "host", "c++", ERROR, "9.4.0", "g++-12"),
    (packages(pip=None, wheel=None), "host", "pip", ERROR, "pip, wheel", "ensurepip"),
    (packages(intel_opencl_rt=None), "host", "cpu-device", WARNING, "is not installed", "intel-opencl-rt==2025.3.*"),
    (facts(devices=Devices({"cpu": 0}, {"cpu": 0})), "host", "cpu-device", ERROR, "finds no CPU device", "libintelocl.so"),
    (facts(devices=Devices({}, {}, "libumf.so.1: cannot open")), "host", "cpu-device", ERROR, "libumf", "libintelocl.so"),
    (facts(devices=Devices({"cpu": 0}, {"cpu": 0})), "xpu", "cpu-device", WARNING, "finds no CPU device", "libintelocl.so"),
    (facts(memory=2 * 2**30), "xpu", "memory", ERROR, "2.0 GiB", "MAX_JOBS=1"),
    (facts(memory=9 * 2**30), "xpu", "memory", WARNING, "9.0 GiB available for 4 jobs", "MAX_JOBS=2"),
    (env(MAX_JOBS="all"), "host", "memory", ERROR, "MAX_JOBS=all", "MAX_JOBS=8"),
    (env(MAX_JOBS="0"), "host", "memory", ERROR, "MAX_JOBS=0", "MAX_JOBS=8"),
    (facts(caches=(FoundCache("vLLM", "/root/vllm", 3),)), "host", "caches", WARNING, "/root/vllm", "caches --purge /root/vllm"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "purpose", "check", "severity", "said", "fix"), CASES)
def test_one_thing_is_wrong(change, purpose, check, severity, said, fix) -> None:
    given = good(purpose)
    if check == "torch" and "no torch" in said:
        given = packages(torch=None)(given)
    lines = [line for line in doctor.examine(change(given), purpose) if line.severity is not NOTE]
    assert [(line.check, line.severity) for line in lines] == [(check, severity)]
    assert said in lines[0].found
    assert lines[0].why
    assert fix in lines[0].fix


def kit(**changes: object):
    return lambda given: replace(given, driver=replace(given.driver, **changes))


OWN = [
    (kit(front_end="", missing={"front end": "no SYCL front end"}), "front-end", ERROR, "no libsycl-jit.so", "2025.3.*"),
    (kit(runtime="libsycl.so.9", front_end="2026.1.0"), "front-end", ERROR, "torch loads libsycl.so.8", "==2025.3.*"),
    (facts(torch=Torch("2.14.0+xpu", True, (), ("/env/lib/libsycl.so.9",))), "front-end", ERROR, "libsycl.so.9", "2026.*"),
    (kit(clang="", missing={"clang": "expected clang++ from 18 on"}), "clang", ERROR, "from 18 on", "clang-19"),
    (kit(offline="", missing={"offline": "there is none"}), "ocloc", ERROR, "there is none", "make ocloc"),
    (facts(torch=Torch("2.13.0+cpu")), "torch", WARNING, "without XPU", ""),
    (arch("bgm"), "arch", WARNING, "names bgm", "TORCH_XPU_ARCH_LIST=bmg"),
    (programs(ninja=None), "ninja", ERROR, "no ninja", "pip install ninja"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "check", "severity", "said", "fix"), OWN)
def test_one_part_of_the_kits_own_compiler_is_wrong(change, check, severity, said, fix) -> None:
    given = programs(icpx=None, ocloc=None)(good("xpu"))
    assert {line.severity for line in doctor.examine(given, "bmg")} == {NOTE}
    lines = [line for line in doctor.examine(change(given), "bmg") if line.severity is not NOTE]
    assert [(line.check, line.severity) for line in lines] == [(check, severity)]
    assert said in lines[0].found
    assert lines[0].why
    assert fix in lines[0].fix


def test_a_newer_torch_takes_the_front_end_of_its_own_runtime() -> None:
    newer = facts(torch=Torch("2.14.0+xpu", True, (), ("/env/lib/libsycl.so.9",)))(good("xpu"))
    given = kit(runtime="libsycl.so.9", front_end="2026.1.0")(newer)
    (line,) = (line for line in doctor.examine(given, "bmg") if line.check == "front-end")
    assert line.severity is NOTE
    assert "the origin library needs libsycl.so.8" in line.found


WITHOUT_XPU = facts(torch=Torch("2.13.0+cpu"))


@pytest.mark.parametrize(
    ("change", "purpose", "compiler", "chosen"),
    [
        (facts(), "bmg", "auto", "xpu"),  # an icpx of the right release beside a torch with XPU
        (facts(), "bmg", "kit", "bmg"),
        (facts(), "xpu", "kit", "bmg"),
        (facts(), "xpu", "auto", "xpu"),
        (programs(icpx=None), "bmg", "auto", "bmg"),
        (programs(icpx=Executable("/o/icpx", "2026.1.0")), "bmg", "auto", "bmg"),
        (programs(icpx=None), "bmg", "icpx", "xpu"),  # and doctor says that there is none
        (WITHOUT_XPU, "bmg", "auto", "bmg"),
        (WITHOUT_XPU, "host", "kit", "host"),
        (programs(icpx=None), "auto", "auto", "bmg"),  # torch speaks for a card, and there is no icpx
        (facts(), "auto", "auto", "xpu"),
        (facts(), "auto", "kit", "bmg"),
    ],
)
def test_who_compiles(change, purpose: str, compiler: str, chosen: str) -> None:
    assert doctor.settled(change(good("xpu")), purpose, compiler) == chosen


def test_a_tree_with_sycl_speaks_for_a_card() -> None:
    assert [doctor.settled(good("host"), "auto", sycl=has) for has in (False, True)] == ["host", "bmg"]


def test_every_check_is_seen_to_speak() -> None:
    assert {case[2] for case in CASES} >= {line.check for line in doctor.examine(good("xpu"), "xpu")}
    assert {case[2] for case in CASES} >= {line.check for line in doctor.examine(good("host"), "host")}


def test_setvars_is_named() -> None:
    changed = env(SETVARS_COMPLETED="1")(replace(good("xpu"), path_runtimes=("/opt/intel/lib/libsycl.so.9",)))
    assert any("setvars.sh was sourced" in line.found for line in doctor.examine(changed, "xpu"))


def test_a_card_without_its_own_word_is_served_by_the_family() -> None:
    for cards in (("e223",), ("e20b",), ("e20b", "e223")):
        lines = doctor.examine(replace(good("xpu"), cards=cards), "xpu")
        assert {line.severity for line in lines} == {NOTE}


def test_ninja_starts_as_many_jobs_as_it_says() -> None:
    for cpus, jobs in ((1, 2), (2, 3), (8, 10)):
        lines = doctor.examine(env(MAX_JOBS=None)(replace(good("host"), cpus=cpus)), "host")
        assert any(f"for {jobs} jobs (as ninja would start)" in line.found for line in lines)
    assert doctor.fitting_jobs(replace(good("xpu"), memory=9 * 2**30), "xpu") == 2


def test_a_device_that_must_be_named_is_in_order() -> None:
    seen = Devices(shown={"cpu": 1}, as_it_is={"cpu": 0})
    line = next(row for row in doctor.examine(replace(good("host"), devices=seen), "host") if row.check == "cpu-device")
    assert (line.severity, line.fix.split()[0]) == (NOTE, "export")
