"""docs/operators.md names every operator, and its last table is the operator table."""

import re
from pathlib import Path

from schema_patch.schemas import table

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operators.md").read_text()
KNOWN = table.load().entries


def test_every_operator_is_described():
    described, _, _ = PAGE.partition("## What each writes")
    named = set(re.findall(r"`((?:esimd|topk|q4)_\w+)`", described))
    fused = {f"{name}{suffix}" for name in named for suffix in ("_fused2", "_fused3") if f"`{suffix}`" in described}
    assert set(KNOWN) <= named | fused


def test_what_each_writes_is_what_the_table_says():
    _, _, written = PAGE.partition("## What each writes")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in written.splitlines() if "`" in line]
    found = {name.strip("`"): cells for name, *cells in rows if name.strip("`") in KNOWN}
    expected = {
        name: [", ".join(entry.writes) or "-", ", ".join(entry.inplace) or "-", entry.returns]
        for name, entry in KNOWN.items()
    }
    assert found == expected
