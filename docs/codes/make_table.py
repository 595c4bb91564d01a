"""Prints the table of all codes; `docs/codes/README.md` is its output.

python docs/codes/make_table.py > docs/codes/README.md
"""

from __future__ import annotations

from schema_patch.model import Severity
from schema_patch.schemas import codes

HEAD = """# Codes

Written by `python docs/codes/make_table.py > docs/codes/README.md` from `schema_patch/schemas/policies/codes.toml`. SP:
`schema-patch`, `verify-schemas`. PA, PB, HR, KR and OB: `python -m esimd_ops check`, `probe`, `races`,
`kernels` and `observe`.

| code | meaning |
|---|---|
"""


def table() -> str:
    """One line a code, which links to its page."""
    rows = []
    for code, (text, level) in codes.load().items():
        counts = "" if level is Severity.ERROR else f" ({level.value})"
        rows.append(f"| [{code}]({code}.md) | {text}{counts} |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    print(table(), end="")
