"""Results of a long run by name, one a line: a run that was ended goes on behind the last."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

KIT = Path(__file__).parents[2] / "schema_patch"
MANY = 40  # asked for at once


def state() -> str:
    """Names the kit as it is now: what another one said is not what this one says."""
    digest = hashlib.sha256()
    for path in sorted([*KIT.rglob("*.py"), *KIT.rglob("*.toml")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def kept(path: Path, names: Iterable[str], ask: Callable[[Sequence[str]], Iterable[Any]]) -> Iterator[tuple[str, Any]]:
    """Each name with its result, asked for in order and `MANY` at once where the file has none."""
    path.touch()
    lines = path.read_text().splitlines(keepends=True)
    rows = dict(json.loads(line) for line in lines if line.endswith("\n"))
    path.write_text("".join(line for line in lines if line.endswith("\n")))
    names = list(names)
    for first in range(0, len(names), MANY):
        part = names[first : first + MANY]
        new = [name for name in part if name not in rows]
        with path.open("a") as file:
            for name, result in zip(new, ask(new) if new else (), strict=True):
                file.write(json.dumps([name, result]) + "\n")
                file.flush()
                rows[name] = result
        yield from ((name, rows[name]) for name in part)
