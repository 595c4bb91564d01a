"""Recorded calls, replayed by torch.library.opcheck: OB103."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import msgspec

from schema_patch.model import Finding, Location


class OpcheckFailure(msgspec.Struct, frozen=True):
    """One call: `checks` are opcheck's own names with the first line of what they say; `test`: where it was made."""

    op: str
    test: str
    checks: dict[str, str]


class Replay:
    """The calls of one test of the operators of some namespaces, to be replayed when it is through."""

    def __init__(self, namespaces: Collection[str]) -> None:
        self._namespaces = namespaces
        self._kept: list[tuple[Any, dict[str, Any]]] = []

    def save(self, op: Any, values: dict[str, Any]) -> Callable[[], None]:
        """A copy of a call, before it is made; what comes of it keeps the copy."""
        from . import memory, saved

        if op._namespace not in self._namespaces or not saved.is_plain(values):
            return lambda: None
        with memory.aside():
            copies = saved.copied(values, on_cpu=False)
        return lambda: self._kept.append((op, copies))

    def run(self, test: str) -> list[OpcheckFailure]:
        import torch

        kept, self._kept = self._kept, []
        refused = []
        for op, arguments in kept:
            told = torch.library.opcheck(op, (), arguments, raise_exception=False)
            failed = {check: _line(words) for check, words in told.items() if words != "SUCCESS"}
            if failed:
                refused.append(OpcheckFailure(op.name(), test, failed))
        return refused


def findings(refused: Iterable[OpcheckFailure]) -> list[Finding]:
    """One for each operator and check, with the first test that shows it."""
    first: dict[tuple[str, str], Finding] = {}
    for each in refused:
        for check, words in each.checks.items():
            path, _, test = each.test.partition("::")
            message = f"opcheck, {check}: {words} (in {test})"
            first.setdefault((each.op, check), Finding("OB103", Location(path), each.op, message))
    return list(first.values())


def _line(words: object) -> str:
    return f"{type(words).__name__}: {str(words).strip().splitlines()[0] if str(words).strip() else ''}"
