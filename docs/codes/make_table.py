"""Prints the table of all codes, from the modules that have them; `docs/codes/README.md` is its output.

python docs/codes/make_table.py > docs/codes/README.md
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

FOLDER = Path(__file__).parent
PACKAGES = ("schema_patch", "esimd_ops", "esimd_soak")
DOCUMENTED = re.compile(r"^ *([A-Z]{2}\d{3})  (\S.*(?:\n {11}\S.*)*)$", re.MULTILINE)
HEAD = """# Codes

Written by `python docs/codes/make_table.py > docs/codes/README.md`. SP: `schema-patch`, `verify-schemas`. PA, PB, HR
and KR: `python -m esimd_ops check`, `probe`, `races` and `kernels`.

| code | meaning |
|---|---|
"""


def codes() -> dict[str, str]:
    """Every code of the kit and what it says, from the modules' documentation."""
    found: dict[str, str] = {}
    for package in PACKAGES:
        for file in sorted((FOLDER.parents[1] / package).rglob("*.py")):
            documentation = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
            found |= {code: " ".join(text.split()) for code, text in DOCUMENTED.findall(documentation)}
    return dict(sorted(found.items(), key=lambda item: (not item[0].startswith("SP"), item[0])))


def table() -> str:
    """One line a code, which links to its page."""
    rows = [f"| [{code}]({code}.md) | {text.replace('|', chr(92) + '|')} |\n" for code, text in codes().items()]
    return HEAD + "".join(rows)


if __name__ == "__main__":
    print(table(), end="")
