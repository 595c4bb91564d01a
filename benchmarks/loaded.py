"""Published wheels against torch's registry, as `verify-schemas --load` asks it: one row of a table each.

    python benchmarks/loaded.py WHEEL...            wheels of torch extensions, as pip download brings them

Libraries that this torch cannot load, as those for a GPU or another torch, are counted, with the first reason.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from schema_patch.verify import load
from schema_patch.verify.gather import gather

SHOWN = 60  # characters of a reason


def row(wheel: Path) -> tuple[str, int]:
    """A row of the table, and how many operators torch registers otherwise than they were read."""
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(wheel).extractall(folder)
        found = gather([folder], include_all=True)
        speaking = [facts for facts in found.judged if facts.registers]
        told = list(load.ask(speaking))
    failed = [one.errors[0].message.partition("failed: ")[2] for one in told if one.errors]
    loaded = [facts for facts, one in zip(speaking, told, strict=True) if not one.errors]
    read = sum(len(facts.schemas) + len(facts.named) for facts in loaded)
    registered = sum(len(one.facts.schemas) + len(one.facts.named) for one in told if not one.errors)
    differing = [finding for one in told for finding in one.findings]
    why = failed[0].rpartition("/")[2][:SHOWN].replace("|", "/") if failed else ""
    name, version = wheel.name.split("-")[:2]
    unread = sum(len(facts.unread) for facts in speaking)
    all_read = sum(len(facts.schemas) + len(facts.named) for facts in speaking)
    for finding in differing:
        print(f"{wheel.name}: {finding.op}: {finding.message}", file=sys.stderr)
    cells = (f"{name} {version}", len(found.judged), len(speaking), all_read, unread, len(loaded), read, registered)
    return "| " + " | ".join(map(str, (*cells, len(differing), why))) + " |", len(differing)


def main(wheels: list[str]) -> int:
    heads = ("wheel", "libraries", "that register", "read", "told unknown", "loaded", "read of these",
             "torch registers", "differ", "not loaded for")  # fmt: skip
    print(f"| {' | '.join(heads)} |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|---|")
    differing = 0
    for wheel in sorted(wheels):
        line, differs = row(Path(wheel))
        print(line, flush=True)
        differing += differs
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
