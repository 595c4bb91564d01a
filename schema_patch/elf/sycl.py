"""Which SYCL runtime a library was linked with."""

from __future__ import annotations

import re

from .reader import ElfFacts

SYCL = re.compile(r"libsycl(?:-preview)?\.so(?:\.(?P<major>\d+))?")


def sycl_major(library: ElfFacts) -> str | None:
    """The major version of libsycl.so that a library needs: None where it needs none, empty where it names none."""
    for needed in library.needed:
        match = SYCL.fullmatch(needed)
        if match:
            return match["major"] or ""
    return None
