"""docs/operators.md describes every operator."""

import re
from pathlib import Path

from schema_patch.schemas import table

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operators.md").read_text()
KNOWN = table.load().entries


def test_every_operator_is_described():
    named = set(re.findall(r"`((?:esimd|topk|q4)_\w+)`", PAGE))
    fused = {f"{name}{suffix}" for name in named for suffix in ("_fused2", "_fused3") if f"`{suffix}`" in PAGE}
    assert set(KNOWN) <= named | fused
