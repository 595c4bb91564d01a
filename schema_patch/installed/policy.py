"""What a binary is expected to link, and which distributions are passed over: policies/runtime.toml, typed.

Strict about misspelt keys; knows no file but that one.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache

import msgspec

from schema_patch.schemas import policies


class Sycl(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The SYCL runtime that libraries must link."""

    major: str
    why: str


class Platform(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Distributions that a look through site-packages leaves out; names may hold `*`."""

    why: str
    names: tuple[str, ...]


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """policies/runtime.toml."""

    sycl: Sycl
    platform: tuple[Platform, ...] = ()

    def passes_over(self, distribution: str) -> str | None:
        """Why a distribution is left out, if it is."""
        for group in self.platform:
            if any(fnmatchcase(distribution, name) for name in group.names):
                return group.why
        return None


@cache
def load() -> Policy:
    """The runtime policy that ships with the kit. Raises ToolError where it is misspelt."""
    return policies.load("runtime", Policy)
