"""What people call the devices that code is compiled for: "20.2.0" -> "bmg-g31", and back. From policies/targets.toml.

Knows names, and which code runs where: native code on the device of its architecture and release, SPIR-V anywhere.
Does not know where code is found.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import cache

import msgspec

from schema_patch.model import ToolError
from schema_patch.schemas import policies

from .zebin import SPIRV


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One device: the first name is the one that is printed."""

    ip: str
    names: tuple[str, ...]
    cards: str = ""


class _Targets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    target: tuple[Target, ...]
    families: dict[str, tuple[str, ...]] = {}


@cache
def known() -> _Targets:
    """The names that ship with the kit. Raises ToolError where the file breaks its own rules."""
    return policies.load("targets", _Targets)


def wanted(word: str) -> dict[str, str]:
    """The devices that a person means by a word, as {"20.2": "bmg-g31"}. Raises ToolError for an unknown one."""
    name = word.lower().replace("_", "-").removeprefix("intel-gpu-")
    version = re.fullmatch(r"(\d+\.\d+)(?:\.\d+)?", name.replace("-", "."))
    if version:
        return {version[1]: title(version[1])}
    name = re.sub(r"-[a-d]\d$", "", name)  # a stepping: bmg-g21-a0
    policy = known()
    found = [target.ip for target in policy.target if name in target.names]
    ips = found or list(policy.families.get(name, ()))
    if not ips:
        names = [name for target in policy.target for name in target.names] + list(policy.families)
        near = difflib.get_close_matches(name, names, 1)
        hint = f"; did you mean {near[0]}?" if near else f", such as {', '.join(names[-8:])}"
        raise ToolError(f"expected the name of a device, found {word!r}{hint}")
    return {ip: title(ip) for ip in ips}


def title(code: str) -> str:
    """What people call the device of some code: "20.2.0" is bmg-g31. Other families keep their name."""
    ip = ".".join(code.split(".")[:2])
    return next((target.names[0] for target in known().target if target.ip == ip), code)


def runs(code: str, ip: str) -> bool:
    """Whether code for one target runs on a device."""
    if code == SPIRV or code.startswith(f"{ip}."):
        return True
    return ip in known().families.get(code, ())  # an image called `64.bmg`, without a note that names its device


def lacking(kernels: Mapping[str, Iterable[str]], ip: str) -> list[str]:
    """The kernels that have no code for a device, given the targets of each."""
    return [kernel for kernel, codes in kernels.items() if not any(runs(code, ip) for code in codes)]


def summary(targets: Mapping[str, int]) -> str:
    """In words: "bmg-g21 (20.1.0), SPIR-V: 48 kernels each"."""
    named = {code: title(code) for code in targets}
    words = [f"{name} ({code})" if name != code else name for code, name in named.items()]
    counts = set(targets.values())
    if len(counts) == 1:
        (count,) = counts
        return f"{', '.join(words)}: {count} kernel{'' if count == 1 else 's'}{' each' if len(words) > 1 else ''}"
    return ", ".join(f"{word}: {count} kernels" for word, count in zip(words, targets.values(), strict=True))
