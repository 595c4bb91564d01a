"""Results of a long run by name, one a line: a run that was ended goes on behind the last."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections.abc import Callable, Iterable, Sequence
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


def kept(
    path: Path, names: Iterable[str], ask: Callable[[Sequence[str]], Iterable[Any]], jobs: int = 1
) -> dict[str, Any]:
    """Each name with its result, asked for `MANY` at once, in so many processes, where the file has none."""
    path.touch()
    names, rows = list(names), _rows(path)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows.items()))
    new = [name for name in names if name not in rows]
    children = [
        multiprocessing.get_context("fork").Process(target=_ask, args=(path, new[n::jobs], ask)) for n in range(jobs)
    ]
    for child in children if new else ():
        child.start()
    for child in children if new else ():
        child.join()
    rows = _rows(path)
    missing = [name for name in names if name not in rows]
    if missing:
        raise RuntimeError(f"expected a result for each of {len(names)} names, found none for {len(missing)}")
    return {name: rows[name] for name in names}


def _rows(path: Path) -> dict[str, Any]:
    """What a file holds; its last line may have been broken off."""
    return dict(json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n"))


def _ask(path: Path, names: Sequence[str], ask: Callable[[Sequence[str]], Iterable[Any]]) -> None:
    with path.open("ab", buffering=0) as file:  # each line in one write, which other processes do not part
        for first in range(0, len(names), MANY):
            part = names[first : first + MANY]
            for name, result in zip(part, ask(part), strict=True):
                file.write(f"{json.dumps([name, result])}\n".encode())
