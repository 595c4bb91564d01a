"""doctor's checks of what every build needs: torch, compilers, pip, the CPU device, memory, no stale cache. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from schema_patch.model import Severity

from .diagnosis import Diagnosis, toolchain
from .toolchain import Executable, Facts


def torch(facts: Facts, purpose: str) -> Iterator[Diagnosis]:
    """torch is there, can be imported, and has the devices that the build is for."""
    python = facts.interpreter.executable
    if facts.torch is None:
        if facts.torch_error:
            found = f"torch {facts.interpreter.packages['torch']} cannot be imported: {facts.torch_error}"
            why = "an extension is built against the torch that is installed, by importing it"
            if "libsycl.so." in facts.torch_error:
                why += "; its SYCL runtime is not where the loader looks"
            yield Diagnosis("torch", Severity.ERROR, found, why, f"{python} -c 'import torch'   # until this works")
        else:
            why = "an extension is built against the torch that is installed, and runs with no other"
            yield Diagnosis("torch", Severity.ERROR, f"no torch in {python}", why, f"{python} -m pip install torch")
        return
    built = f"torch {facts.torch.version}"
    if purpose == "bmg" and not facts.torch.xpu:
        found = f"{built} without XPU"
        why = "what is built beside it loads here and runs on its CPU; for the card, build where torch has XPU"
        yield Diagnosis("torch", Severity.WARNING, found, why)
    elif purpose == "xpu" and not facts.torch.xpu:
        plain = facts.torch.version.partition("+")[0]
        why = "SyclExtension finds neither SYCL headers nor libtorch_xpu.so, and no tensor can be on an XPU"
        fix = f"{python} -m pip install --force-reinstall 'torch=={plain}+xpu'   # from PyTorch's index for xpu"
        yield Diagnosis("torch", Severity.ERROR, f"{built} without XPU", why, fix)
    else:
        yield Diagnosis("torch", Severity.NOTE, f"{built} {'with' if facts.torch.xpu else 'without'} XPU")


def build_tools(facts: Facts, purpose: str) -> Iterator[Diagnosis]:
    """A C++ compiler, ninja, and what pip needs to build without isolation."""
    cxx = facts.programs.get("c++")
    if cxx is None:
        asked = facts.environment.get("CXX") or "c++"
        why = "the host side of every extension is compiled by it"
        yield Diagnosis("c++", Severity.ERROR, f"no {asked} on the path", why, "apt-get install g++")
    else:
        yield from _cxx(cxx)
    python = facts.interpreter.executable
    if ninja := facts.programs.get("ninja"):
        yield Diagnosis("ninja", Severity.NOTE, f"ninja {ninja.version} ({ninja.path})")
    else:
        needed = purpose != "host"
        why = "SyclExtension is built by it alone" if needed else "without it files are compiled one after the other"
        severity = Severity.ERROR if needed else Severity.WARNING
        yield Diagnosis("ninja", severity, "no ninja on the path", why, f"{python} -m pip install ninja")
    missing = [name for name in ("pip", "setuptools", "wheel") if name not in facts.interpreter.packages]
    if missing:
        why = "a build without isolation uses what is installed beside torch"
        fix = f"{python} -m ensurepip; {python} -m pip install {' '.join(missing)}"
        yield Diagnosis("pip", Severity.ERROR, f"not installed in {python}: {', '.join(missing)}", why, fix)


def _cxx(cxx: Executable) -> Iterator[Diagnosis]:
    banner = cxx.said.lower()
    if cxx.version and "clang" not in banner and int(cxx.version.split(".")[0]) < 10:
        why = "torch's headers are C++20, which g++ knows from release 10 on"
        fix = "apt-get install g++-12 && export CXX=g++-12"
        yield Diagnosis("c++", Severity.ERROR, f"{cxx.said} ({cxx.path})", why, fix)
    else:
        yield Diagnosis("c++", Severity.NOTE, f"{cxx.said} ({cxx.path})")


def cpu_device(facts: Facts, purpose: str) -> Iterator[Diagnosis]:
    """The SYCL CPU device of intel-opencl-rt, on which a host build runs its kernels, can be seen."""
    package = facts.interpreter.packages.get("intel-opencl-rt")
    if not package:
        if purpose == "host":
            why = "the kit's own operators run on its CPU device; other trees need not"
            fix = f"{facts.interpreter.executable} -m pip install 'intel-opencl-rt=={toolchain().compiler}.*'"
            yield Diagnosis("cpu-device", Severity.WARNING, "intel-opencl-rt is not installed", why, fix)
        return
    if facts.devices is None:
        return
    icd = next((path for path in facts.interpreter.libraries if path.endswith("libintelocl.so")), "libintelocl.so")
    if facts.devices.as_it_is.get("cpu"):
        yield Diagnosis("cpu-device", Severity.NOTE, f"intel-opencl-rt {package}: its CPU device is seen")
    elif facts.devices.shown.get("cpu"):
        found = f"intel-opencl-rt {package}: its CPU device is seen once OCL_ICD_FILENAMES names it, as esimd_ops does"
        yield Diagnosis(
            "cpu-device", Severity.NOTE, found, fix=f"export OCL_ICD_FILENAMES={icd}   # for other programs"
        )
    else:
        selector = [f"{name}={value}" for name in ("ONEAPI_DEVICE_SELECTOR", "OCL_ICD_FILENAMES")
                    if (value := facts.environment.get(name))]  # fmt: skip
        said = facts.devices.error or "the SYCL runtime finds no CPU device"
        found = f"intel-opencl-rt {package}: {said}" + (f" with {' '.join(selector)}" if selector else "")
        why = "every operator of a host build fails at its first call"
        fix = f"unset ONEAPI_DEVICE_SELECTOR; export OCL_ICD_FILENAMES={icd}"
        yield Diagnosis("cpu-device", Severity.ERROR if purpose == "host" else Severity.WARNING, found, why, fix)


def memory(facts: Facts, purpose: str) -> Iterator[Diagnosis]:
    """There is memory for as many jobs as will be started."""
    each, fitting = _per_job(purpose), fitting_jobs(facts, purpose)
    asked = facts.environment.get("MAX_JOBS")
    if asked is not None and not (asked.isdecimal() and int(asked)):
        why = "torch's builder ends with a traceback, or waits for ever"
        yield Diagnosis(
            "memory", Severity.ERROR, f"MAX_JOBS={asked}, expected a number", why, f"export MAX_JOBS={fitting}"
        )
        return
    jobs = int(asked) if asked else max(2, facts.cpus + 1 + (facts.cpus > 2))  # ninja's own choice
    found = f"{facts.memory / 2**30:.1f} GiB available for {jobs} jobs{'' if asked else ' (as ninja would start)'}"
    if facts.memory < each * jobs:
        why = f"a job may take {each / 2**30:g} GiB; a compiler that is killed for memory fails without saying so"
        severity = Severity.ERROR if facts.memory < each else Severity.WARNING
        yield Diagnosis("memory", severity, found, why, f"export MAX_JOBS={fitting}")
    else:
        yield Diagnosis("memory", Severity.NOTE, found)


def stale_caches(facts: Facts, _: str) -> Iterator[Diagnosis]:
    """No compile cache holds graphs made with the operators' old schemas."""
    for cached in facts.caches:
        found = f"{cached.kind} cache {cached.path} names known operators ({cached.operators})"
        why = "no cache key sees a schema: a graph from before the rebuild comes back after it"
        yield Diagnosis("caches", Severity.WARNING, found, why, f"schema-patch caches --purge {cached.path}")


def fitting_jobs(facts: Facts, purpose: str) -> int:
    """How many compilers the memory and the processors of the machine allow at once."""
    return max(1, min(facts.cpus, facts.memory // _per_job(purpose)))


def _per_job(purpose: str) -> int:
    return int(toolchain().memory[purpose] * 2**30)
