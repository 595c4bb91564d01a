"""What each code of a finding means, in words: policies/codes.toml, typed. SARIF and docs/codes are made from it."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from schema_patch.model import Severity
from schema_patch.schemas import policies


class Code(NamedTuple):
    """`level` is how such a finding counts where its module does not say otherwise."""

    text: str
    level: Severity


@cache
def load() -> dict[str, Code]:
    """Every code of the kit: those of schemas and binaries first, then those of operators that were run."""
    levels = policies.load("codes", dict[Severity, dict[str, str]])
    found = {code: Code(text, level) for level, codes in levels.items() for code, text in codes.items()}
    return dict(sorted(found.items(), key=lambda item: (not item[0].startswith("SP"), item[0])))
