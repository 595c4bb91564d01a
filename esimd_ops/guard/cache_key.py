"""Keeps compile caches apart: a graph compiled without the guard must not come back with it, nor the other way round.

Neither torch's nor vLLM's cache keys see an operator's schema. Both take a word from outside: torch's `cache_key_tag`
(the user's own tag is kept and extended), and vLLM's environment registry, whose values go into the hash of its
artifacts.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable

import torch

MARK = "schema-kit-"
VLLM_VARIABLE = "VLLM_SCHEMA_PATCH_DIGEST"


def digest(schemas: Iterable[str]) -> str:
    """A short digest of schemas, in whatever order they were found."""
    return hashlib.sha256("\n".join(sorted(schemas)).encode()).hexdigest()[:16]


def set_digest(value: str | None) -> None:
    """Puts a digest into the cache keys; None takes it out again."""
    config = torch.compiler.config
    kept = [part for part in config.cache_key_tag.split("+") if part and not part.startswith(MARK)]
    config.cache_key_tag = "+".join([*kept, *([MARK + value] if value else [])])
    if value:
        os.environ[VLLM_VARIABLE] = value  # for worker processes, which may fork before their plugin runs
    else:
        os.environ.pop(VLLM_VARIABLE, None)
    envs = sys.modules.get("vllm.envs")
    variables = getattr(envs, "environment_variables", None)
    if isinstance(variables, dict):
        variables[VLLM_VARIABLE] = lambda: os.environ.get(VLLM_VARIABLE, "")
