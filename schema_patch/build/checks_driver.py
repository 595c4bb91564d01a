"""doctor's checks of the kit's own SYCL compiler: its front end, the host's clang, ocloc. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from schema_patch.installed import policy
from schema_patch.model import Severity

from .diagnosis import Diagnosis, toolchain
from .driver import hostside, runtime
from .driver.runtime import major
from .toolchain import Facts

OCLOC = "make ocloc   # or install intel-ocloc of a distribution that knows the device"


def front_end(facts: Facts, purpose: str) -> Iterator[Diagnosis]:
    """The front end is there, and is part of the very runtime that torch loads."""
    if purpose != "bmg":
        return
    driver, python = facts.driver, facts.interpreter.executable
    needed = next((major(path) for path in facts.torch.sycl), "") if facts.torch else ""
    release = runtime.RELEASES["9"] if needed == "9" else f"{toolchain().compiler}.*"
    fix = f"{python} -m pip install '{runtime.PACKAGE}=={release}'"
    if driver is None or not driver.front_end:
        why = "SYCL sources are compiled by the front end that is part of the runtime"
        yield Diagnosis("front-end", Severity.ERROR, "no libsycl-jit.so in this Python", why, fix)
    elif needed and driver.runtime != f"libsycl.so.{needed}":
        found = f"intel-sycl-rt {driver.front_end} is {driver.runtime}, and torch loads libsycl.so.{needed}"
        why = "what is compiled for one runtime is not to be used beside the other"
        yield Diagnosis("front-end", Severity.ERROR, found, why, fix)
    else:
        origin = policy.load().sycl.major
        note = "" if driver.runtime == f"libsycl.so.{origin}" else f"; the origin library needs libsycl.so.{origin}"
        yield Diagnosis("front-end", Severity.NOTE, f"DPC++ {driver.front_end} ({driver.runtime}){note}")


def host_compiler(facts: Facts, purpose: str) -> Iterator[Diagnosis]:
    """clang, for the host side of SYCL sources."""
    found = f"clang++ {facts.driver.clang}" if facts.driver and facts.driver.clang else ""
    why = "g++ cannot name the kernels of unnamed lambdas, nor read Intel's ESIMD headers"
    yield from _part(facts, purpose, "clang", "clang", found, why, hostside.RECIPE)


def offline(facts: Facts, purpose: str) -> Iterator[Diagnosis]:
    """ocloc, for machine code."""
    found = facts.driver.offline if facts.driver else ""
    why = "it makes the machine code: without it a library has SPIR-V alone"
    yield from _part(facts, purpose, "ocloc", "offline", found, why, OCLOC)


def _part(facts: Facts, purpose: str, name: str, key: str, found: str, why: str, fix: str) -> Iterator[Diagnosis]:
    if purpose == "bmg" and found:
        yield Diagnosis(name, Severity.NOTE, found)
    elif purpose == "bmg":
        missing = facts.driver.missing if facts.driver else {}
        yield Diagnosis(name, Severity.ERROR, missing.get(key, f"no {name}"), why, fix)
