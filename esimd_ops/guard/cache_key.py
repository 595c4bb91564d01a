"""Keeps compile caches apart: a graph compiled without the guard must not come back with it, nor the other way round.

Neither torch's nor vLLM's cache keys see an operator's schema, and vLLM's do not see torch's `cache_key_tag` either, so
a digest of what was guarded goes into both. Torch reads its tag (the user's own is kept and extended) when a program
has been traced. vLLM also asks for its environment factors before that, and loads what it then finds: it gets the
digest of that moment. Knows the names of vLLM's functions in each version; what they return changes only where
something is guarded.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch

from .decide import GuardError

MARK = "schema-kit-"
VLLM_FACTOR = "VLLM_SCHEMA_PATCH_DIGEST"
_FUNCTIONS: dict[
    str, Callable[[Any, str], Any]
] = {  # of vLLM, a newer and an older: how a digest goes into what it gives
    "compile_factors": lambda factors, value: {**factors, VLLM_FACTOR: value},
    "compute_hash": lambda found, value: f"{found}-{value}",
}


def digest(schemas: Iterable[str]) -> str:
    """A short digest of schemas, in whatever order they were found."""
    return hashlib.sha256("\n".join(sorted(schemas)).encode()).hexdigest()[:16]


def set_tag(value: str | None) -> None:
    """Puts a digest into torch's cache keys; None takes it out again."""
    config = torch.compiler.config
    kept = [part for part in config.cache_key_tag.split("+") if part and not part.startswith(MARK)]
    config.cache_key_tag = "+".join([*kept, *([MARK + value] if value else [])])


def follow(current: Callable[[], str | None]) -> None:
    """From now on vLLM's cache keys hold what `current` returns. Does nothing in a process without vLLM, or twice.

    Raises GuardError where vLLM has neither of the functions that it is known to ask.
    """
    envs = sys.modules.get("vllm.envs")
    if envs is None:
        return
    for name, extend in _FUNCTIONS.items():
        ask = getattr(envs, name, None)
        if ask is not None:
            if not hasattr(ask, "follows_schema_kit"):
                setattr(envs, name, _extended(ask, extend, current))
            return
    raise GuardError(
        "vllm.envs has neither compile_factors nor compute_hash, so the guard cannot keep vLLM's compile cache apart: "
        "purge it (schema-patch caches --purge) and set VLLM_DISABLE_COMPILE_CACHE=1"
    )


def _extended(ask: Callable[[], Any], extend: Callable[[Any, str], Any], current: Callable[[], str | None]) -> Any:
    @functools.wraps(ask)
    def extended() -> Any:
        value = current()
        return extend(ask(), value) if value else ask()

    extended.follows_schema_kit = True  # type: ignore[attr-defined]
    return extended
