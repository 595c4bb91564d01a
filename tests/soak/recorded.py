"""Writes runs as the client would have, for tests of what reads them."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from esimd_soak.plan import make
from esimd_soak.store import folder as store
from esimd_soak.store.records import Event, Generation


def run(
    folder: Path,
    cards: dict[str, tuple[int, int]],
    *,
    name: str = "run",
    bad: Callable[[int], bool] | None = None,
    registration: dict[str, Any] | None = None,
    cache: str = "",
    **plan: Any,
) -> Path:
    """`cards`: card -> (collapses, generations), spread evenly unless `bad` says which numbers collapse."""
    servers = [{"url": f"http://s{c}", "name": f"s{c}", "card": c, "compile_cache": cache} for c in cards]
    made = make({"name": name, "server": servers, "stop": {"generations": 1}, **plan}, "test")
    kept = store.open_run(folder, made, registration)
    began = 1_700_000_000.0
    kept.add(Event(began, "began", text="begins"))
    for card, (events, n) in cards.items():
        source = random.Random(card)
        chosen = set(range(n // (2 * max(1, events)), n, n // events)) if events else set()
        chosen = set(sorted(chosen)[:events])
        for i in range(n):
            failed = bad(i) if bad else i in chosen
            start = began + i * 0.25 + source.random()
            kept.add(
                Generation(
                    n=i,
                    server=f"s{card}",
                    card=card,
                    position=i,
                    planned=start,
                    start=start,
                    end=start + 3 + source.random(),
                    tokens=300,
                    finish="length",
                    run=300 if failed else 2,
                    entropy=0.0 if failed else 4.1,
                    kinds=("run",) if failed else (),
                    gaps={200: 299},
                    text="Well, then: " + "!" * 300 if failed else "",
                )
            )
    kept.add(Event(began + 9e5, "health", values={"late_p99_ms": 1, "late_limit_ms": 100}))
    kept.add(Event(began + 9e5, "ended", text="complete"))
    kept.close()
    return folder
