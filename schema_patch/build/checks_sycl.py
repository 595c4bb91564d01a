"""doctor's checks of what SYCL needs: the compiler, its runtime, the devices it compiles for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from schema_patch.elf import targets
from schema_patch.installed import policy
from schema_patch.model import Severity, ToolError

from .diagnosis import Cards, Diagnosis, toolchain
from .driver.runtime import major
from .toolchain import Facts, arch_words


def torch_runtime(facts: Facts, purpose: str) -> Iterator[Diagnosis]:
    """The SYCL runtime that torch loads is the one that the toolchain's binaries need."""
    if facts.torch is None or not facts.torch.xpu or purpose == "bmg":  # where the front end follows torch's runtime
        return
    expected, loaded = policy.load().sycl.major, facts.torch.sycl
    if not loaded:
        why = "torch with XPU loads its SYCL runtime when it is imported; which one this build must match is unknown"
        yield Diagnosis("torch-runtime", Severity.WARNING, "torch loads no libsycl.so when it is imported", why)
    elif {major(path) for path in loaded} == {expected}:
        yield Diagnosis("torch-runtime", Severity.NOTE, f"torch loads {' '.join(loaded)}")
    else:
        compiler = toolchain().compiler
        why = f"icpx {compiler} links libsycl.so.{expected}; two runtimes in one process crash when a queue crosses"
        fix = f"install a torch whose runtime is libsycl.so.{expected} (intel-sycl-rt {compiler}.x)"
        yield Diagnosis("torch-runtime", Severity.ERROR, f"torch loads {' '.join(loaded)}", why, fix)


def compiler(facts: Facts, purpose: str) -> Iterator[Diagnosis]:
    """icpx is of the one release that fits."""
    if purpose != "xpu":
        return
    wanted, icpx = toolchain().compiler, facts.programs.get("icpx")
    install = f"apt-get install intel-oneapi-compiler-dpcpp-cpp-{wanted} && export PATH={_oneapi_bin(wanted)}:$PATH"
    if icpx is None:
        why = "SYCL sources are compiled by it"
        yield Diagnosis("icpx", Severity.ERROR, "no icpx on the path", why, install)
    elif not icpx.version:
        why = "its version decides which libsycl.so the binary needs"
        yield Diagnosis("icpx", Severity.ERROR, f"{icpx.path} does not tell its version: {icpx.said}", why, install)
    elif not f"{icpx.version}.".startswith(f"{wanted}."):
        runtime = "libsycl.so.9" if int(icpx.version.split(".")[0]) >= 2026 else "another libsycl.so"
        why = f"it links {runtime}; {wanted}.x links libsycl.so.{policy.load().sycl.major}, as this kit and torch need"
        yield Diagnosis("icpx", Severity.ERROR, f"icpx {icpx.version} ({icpx.path}), expected {wanted}.x", why, install)
    else:
        yield Diagnosis("icpx", Severity.NOTE, f"icpx {icpx.version} ({icpx.path})")


def runtimes(facts: Facts, _: str) -> Iterator[Diagnosis]:
    """No other SYCL runtime stands on LD_LIBRARY_PATH before torch's own."""
    strangers = [path for path in facts.path_runtimes if not path.startswith(f"{facts.interpreter.prefix}/")]
    own = dict.fromkeys((*(facts.torch.sycl if facts.torch else ()), *facts.interpreter.libraries))
    own_files = [path for path in own if major(path) and path not in strangers]
    if not strangers:
        return
    majors = {major(path) for path in (*own_files, *strangers)}
    by = "setvars.sh was sourced: " if "SETVARS_COMPLETED" in facts.environment else ""
    fix = f"env -u LD_LIBRARY_PATH -u SETVARS_COMPLETED PATH={_oneapi_bin(toolchain().compiler)}:$PATH COMMAND"
    found = f"{by}{', '.join(strangers)} on LD_LIBRARY_PATH, beside {', '.join(own_files) or 'none of this Python'}"
    if len(majors) > 1 or policy.load().sycl.major not in majors:
        why = "the path comes before torch's own: two SYCL runtimes in one process crash when a queue crosses"
        yield Diagnosis("two-runtimes", Severity.ERROR, found, why, fix)
    else:
        why = "the path comes before torch's own: what is tested here runs with another build of the runtime"
        yield Diagnosis("two-runtimes", Severity.WARNING, found, why, fix)


def headers(facts: Facts, purpose: str) -> Iterator[Diagnosis]:
    """The SYCL headers of the PyPI package and those of the compiler are of one release."""
    icpx, package = facts.programs.get("icpx"), facts.interpreter.packages.get("intel-sycl-rt")
    fits = icpx and _release(icpx.version) == toolchain().compiler  # any other is refused by compiler()
    if purpose == "xpu" and icpx and fits and package and _release(package) != toolchain().compiler:
        found = f"intel-sycl-rt {package} beside icpx {icpx.version}"
        why = "both bring SYCL headers; of two releases, they redefine each other's names"
        fix = f"{facts.interpreter.executable} -m pip install 'intel-sycl-rt=={_release(icpx.version)}.*'"
        yield Diagnosis("headers", Severity.WARNING, found, why, fix)
    elif purpose == "host" and (not package or _release(package) != toolchain().compiler):
        why = "the kit's own operators (esimd_ops) are built against it on a machine without icpx; other trees need not"
        fix = f"{facts.interpreter.executable} -m pip install 'intel-sycl-rt=={toolchain().compiler}.*'"
        yield Diagnosis("headers", Severity.WARNING, f"intel-sycl-rt {package or 'is not installed'}", why, fix)


def arch_list(facts: Facts, purpose: str) -> Iterator[Diagnosis]:
    """TORCH_XPU_ARCH_LIST names devices that can be compiled for, and the cards of this machine."""
    if purpose == "host":
        return
    offer = f"export TORCH_XPU_ARCH_LIST={toolchain().arch}"
    given = facts.environment.get("TORCH_XPU_ARCH_LIST")
    if given is None:
        own = [word for word in facts.torch.arch_list if toolchain().why_crashing(word)] if facts.torch else []
        found = "TORCH_XPU_ARCH_LIST is not set" + (f": torch's own list names {', '.join(own)}" if own else "")
        why = f"torch then compiles for its own list; with mtl-h in it {toolchain().why_crashing('mtl-h')}"
        yield Diagnosis("arch", Severity.ERROR, found, why, offer)
        return
    words = arch_words(given)
    if not words:
        why = "no code for a device is compiled then: each kernel is compiled at its first use on the card"
        yield Diagnosis("arch", Severity.WARNING, "TORCH_XPU_ARCH_LIST is empty", why, offer)
        return
    lines = [*_refused_words(words, offer), *_unserved(facts.cards, words, offer)]
    yield from lines or [Diagnosis("arch", Severity.NOTE, f"TORCH_XPU_ARCH_LIST={given}")]


def _refused_words(words: Sequence[str], offer: str) -> Iterator[Diagnosis]:
    for word in words:
        if why := toolchain().why_crashing(word):
            yield Diagnosis("arch", Severity.ERROR, f"TORCH_XPU_ARCH_LIST names {word}", why, offer)
            continue
        if not _meant(word):
            why = "if it is misspelt, ocloc refuses it after the long part of the build"
            yield Diagnosis(
                "arch", Severity.WARNING, f"TORCH_XPU_ARCH_LIST names {word}, no device known here", why, offer
            )


def _meant(word: str) -> dict[str, str]:
    try:
        return targets.wanted(word)
    except ToolError:
        return {}


def _unserved(cards: Sequence[str], words: Sequence[str], offer: str) -> Iterator[Diagnosis]:
    """Cards in the machine that no word of the list compiles for."""
    served = {ip for word in words for ip in _meant(word)}
    for card in toolchain().card:
        if card.ip not in served and (here := [number for number in cards if number in card.pci]):
            found = f"TORCH_XPU_ARCH_LIST={','.join(words)}, and the machine has {card.name}: 8086:{here[0]}"
            why = f"no code for {targets.title(card.ip)}: a library fails on it, or compiles itself anew from SPIR-V"
            yield Diagnosis("arch", Severity.ERROR, found, why, offer)


def ocloc(facts: Facts, purpose: str) -> Iterator[Diagnosis]:
    """The ahead-of-time compiler is there and knows the devices it will be asked for."""
    if purpose != "xpu":
        return
    program = facts.programs.get("ocloc")
    install = "apt-get install intel-ocloc   # from Intel's repository for client GPUs"
    if program is None:
        why = "icpx calls it to compile for a device: the build fails at its last step"
        yield Diagnosis("ocloc", Severity.ERROR, "no ocloc on the path", why, install)
        return
    unknown = [word for word, ids in facts.ocloc_ids.items() if not ids and not toolchain().why_crashing(word)]
    old = [card for card in toolchain().card if _asked_but_missing(facts, card)]
    if unknown:
        found = f"this ocloc does not know {', '.join(unknown)} ({program.path})"
        why = "the build fails at its last step"
        yield Diagnosis("ocloc", Severity.ERROR, found, why, install)
    elif old:
        found = f"this ocloc knows no {', '.join(card.name for card in old)} ({program.path})"
        why = "what it compiles for the family leaves the card of this machine out"
        yield Diagnosis("ocloc", Severity.ERROR, found, why, install)
    else:
        yield Diagnosis(
            "ocloc", Severity.NOTE, f"ocloc ({program.path}) knows {', '.join(facts.ocloc_ids) or 'it was not asked'}"
        )


def _asked_but_missing(facts: Facts, card: Cards) -> bool:
    """Whether a card here is in a family that was asked for, and not in what ocloc makes of that family."""
    ids = [version for versions in facts.ocloc_ids.values() for version in versions]
    asked = any(card.ip in targets.known().families.get(word, ()) for word in facts.ocloc_ids)
    here = any(number in card.pci for number in facts.cards)
    return asked and here and bool(ids) and not any(version.startswith(f"{card.ip}.") for version in ids)


def _release(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _oneapi_bin(release: str) -> str:
    return f"/opt/intel/oneapi/compiler/{release}/bin"
