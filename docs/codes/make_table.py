"""Prints the table of all codes, from the modules that have them; `docs/codes/README.md` is its output.

python docs/codes/make_table.py > docs/codes/README.md
"""

from __future__ import annotations

from pathlib import Path

from schema_patch import sarif

FOLDER = Path(__file__).parent
HEAD = """# Codes

Written by `python docs/codes/make_table.py > docs/codes/README.md`.

| code | meaning |
|---|---|
"""


def table() -> str:
    """One line a code; the code links to its page where it has one."""
    rows = []
    for code, text in sarif.rules().items():
        name = f"[{code}]({code}.md)" if (FOLDER / f"{code}.md").is_file() else code
        rows.append(f"| {name} | {text.replace('|', chr(92) + '|')} |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    print(table(), end="")
