"""Recorded calls, replayed by torch.library.opcheck: OB103."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from schema_patch.model import Finding, Location


class Refused(msgspec.Struct, frozen=True):
    """One call: `checks` are opcheck's own names with the first line of what they say; `test`: where it was made."""

    op: str
    test: str
    checks: dict[str, str]


class Replay:
    """The calls of one test of the operators of some namespaces, to be replayed when it is through."""

    def __init__(self, namespaces: Collection[str]) -> None:
        self._namespaces = namespaces
        self._kept: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def keep(self, op: Any, values: dict[str, Any]) -> None:
        """A copy of a call, before it is made."""
        from . import memory, saved

        if op._namespace not in self._namespaces or not saved.is_plain(values):
            return
        with memory.aside():
            copies = saved.copied(values, on_cpu=False)
        by_name = {argument.name for argument in op._schema.arguments if argument.kwarg_only}
        named = {name: value for name, value in copies.items() if name in by_name}
        self._kept.append((op, tuple(value for name, value in copies.items() if name not in by_name), named))

    def run(self, test: str) -> list[Refused]:
        import torch

        kept, self._kept = self._kept, []
        refused = []
        for op, args, kwargs in kept:
            told = torch.library.opcheck(op, args, kwargs, raise_exception=False)
            failed = {check: _line(words) for check, words in told.items() if words != "SUCCESS"}
            if failed:
                refused.append(Refused(op.name(), test, failed))
        return refused


def findings(refused: Iterable[Refused]) -> list[Finding]:
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
