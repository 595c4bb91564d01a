"""The operators that are named in compile caches on disk, the guard's twins under the names of their operators."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from esimd_ops.guard.decide import TWINS, operator_of
from schema_patch.installed import caches
from schema_patch.installed.caches import Cache


def traced(found: Iterable[Cache]) -> dict[str, list[Cache]]:
    """namespace::name -> the caches in whose graphs it is called."""
    named: dict[str, list[Cache]] = {}
    for cache in found:
        for op in dict.fromkeys(operator_of(op) if op.startswith(f"{TWINS}::") else op for op in cache.operators):
            named.setdefault(op, []).append(cache)
    return named


def find(directories: Iterable[str], namespaces: Collection[str], environment: Mapping[str, str]) -> list[Cache]:
    """The caches in these directories, or in the usual places. Raises ToolError for a directory that is none."""
    return caches.find(directories, {*namespaces, TWINS}, environment)
