"""The planted liars and honest operators of tests/observe, put to `observe` and to what torch has.

    python benchmarks/observe_against.py

Each case is run as the tests run it: once observed, once under torch's SchemaCheckMode, and its calls, recorded,
through `torch.library.opcheck` (its `test_schema`, which is that mode, and all four of its tests). Found: a liar that
is told. False: an honest operator that is; that one has no fake is not held against `opcheck`. Three operators
cannot be put to it: two write beside their arguments, and it calls them on clones, whose memory ends where they end;
one waits for a thread of its own, which waits for the lock of Python when it is given fakes.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch._subclasses.schema_check_mode import SchemaCheckMode

from esimd_ops.observe import observe
from esimd_ops.observe.opcheck import Replay
from schema_patch.model import Severity

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "observe"))
NOT_ON_CLONES = ("past_the_end", "before_the_start", "by_a_thread")
NO_FAKE = (
    "UnsupportedOperatorException",
    "NotImplementedError: Cannot access storage",
    "DataDependent",
    "DynamicOutput",
)


def observed(op: str, run: Callable[[], object]) -> list[str]:
    with observe(["observed_liars", "observed_honest"]) as seen:
        run()
    return [f.message for f in seen.report().findings if f.op == op and f.severity is Severity.ERROR]


def schema_check_mode(run: Callable[[], object]) -> list[str]:
    try:
        with SchemaCheckMode():
            run()
    except RuntimeError as error:
        return [str(error)]
    return []


def opcheck(op: str, run: Callable[[], object]) -> dict[str, str]:
    replay = Replay([op.partition("::")[0]])
    with observe(op.partition("::")[0], save=replay.save):
        run()
    found: dict[str, str] = {}
    for refused in replay.run(op):
        if refused.op == op:
            found |= {check: words for check, words in refused.checks.items() if not words.startswith(NO_FAKE)}
    return found


def main() -> None:
    planted: Any = importlib.import_module("planted")
    with tempfile.TemporaryDirectory() as folder:
        torch.ops.load_library(str(planted.build(Path(folder))))
    kept = planted.define()
    ways: tuple[str, ...] = ("observe", "SchemaCheckMode", "opcheck: test_schema", "opcheck: all four")
    told: dict[str, dict[str, list[str]]] = {way: {"liar": [], "honest": []} for way in ways}
    for space, kind, cases in (
        (planted.LIARS, "liar", planted.LIES),
        (planted.HONEST, "honest", planted.ANSWERS),
    ):
        for name, case in cases.items():
            op, run = f"{space}::{name}", _runs(case, getattr(getattr(torch.ops, space), name.partition(".")[0]))
            answers: dict[str, Any] = {"observe": observed(op, run), "SchemaCheckMode": schema_check_mode(run)}
            checks = {} if name in NOT_ON_CLONES else opcheck(op, run)  # last: some keep the fakes that it gives them
            answers |= {
                "opcheck: test_schema": checks.get("test_schema"),
                "opcheck: all four": checks,
            }
            for way, answer in answers.items():
                told[way][kind] += [name] * bool(answer)
    table = Table("", f"found of {len(planted.LIES)}", f"false of {len(planted.ANSWERS)}", "not found", "false")
    for way in ways:
        missed = [name for name in planted.LIES if name not in told[way]["liar"]]
        false = told[way]["honest"]
        table.add_row(way, str(len(told[way]["liar"])), str(len(false)), ", ".join(missed), ", ".join(false))
    Console(width=160).print(table)
    del kept


def _runs(case: Any, op: Any) -> Callable[[], object]:
    return lambda: case.run(op)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
