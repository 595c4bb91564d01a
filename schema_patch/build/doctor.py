"""Facts of a toolchain -> what is wrong with it, line by line. Pure: every check is a function of toolchain.Facts.

Knows what breaks a build or what it builds, from policies/toolchain.toml and runtime.toml. Looks at nothing itself.

A line that is an error refuses the build: it would fail after an hour, or give a library that cannot be loaded, runs on
no card here, or brings a second SYCL runtime into the process. A warning is a trap that some builds step into.
"""

from __future__ import annotations

from . import checks_build, checks_driver, checks_sycl
from .checks_build import fitting_jobs
from .diagnosis import Check, Diagnosis, toolchain
from .toolchain import Facts

__all__ = ["PURPOSES", "Diagnosis", "examine", "fitting_jobs", "settled", "toolchain"]

PURPOSES = ("xpu", "host")  # that a machine itself can speak for; `bmg` is asked for
CHECKS: tuple[Check, ...] = (
    checks_build.torch,
    checks_sycl.torch_runtime,
    checks_sycl.compiler,
    checks_sycl.runtimes,
    checks_sycl.headers,
    checks_sycl.arch_list,
    checks_sycl.ocloc,
    checks_driver.front_end,
    checks_driver.host_compiler,
    checks_driver.offline,
    checks_build.build_tools,
    checks_build.cpu_device,
    checks_build.memory,
    checks_build.stale_caches,
)


def settled(facts: Facts, asked: str, compiler: str = "auto", *, sycl: bool = False) -> str:
    """What a build is for and who compiles its SYCL: `xpu` (icpx), `bmg` (the kit's own compiler) or `host` (nobody).

    Of `auto`, what the tree (`sycl`: it has some), torch, a compiler or a card speak for; icpx where one of the right
    release is found beside a torch with XPU. Who asks for `xpu` means icpx.
    """
    icpx, xpu = facts.programs.get("icpx"), facts.torch is not None and facts.torch.xpu
    if asked == "auto" and not (sycl or xpu or icpx or facts.cards):
        return "host"
    if asked == "host" or (asked == "xpu" and compiler == "auto"):
        return asked
    fits = icpx is not None and f"{icpx.version}.".startswith(f"{toolchain().compiler}.")
    return "xpu" if compiler == "icpx" or (compiler == "auto" and fits and xpu) else "bmg"


def examine(facts: Facts, purpose: str) -> tuple[Diagnosis, ...]:
    """All checks for a build: `xpu` (SYCL extensions, icpx), `bmg` (the kit's own compiler) or `host` (C++, g++)."""
    return tuple(line for check in CHECKS for line in check(facts, purpose))
