"""Says, when the program ends, which namespaces and operators were to be guarded and never came.

A misspelt namespace looks like a library that is loaded later, until then.
"""

from __future__ import annotations

import atexit
import difflib
import logging
from collections.abc import Callable, Iterable

import torch

from esimd_ops import environment
from schema_patch.schemas.table import Table

log = logging.getLogger("schema_kit")
_expected: dict[str, str] = {}  # namespace -> who named it
_tables: list[Table] = []  # of the user: each of their operators should come, where its namespace does
_pending: list[Callable[[], Iterable[str]]] = []  # asked at the end
_known: list[Callable[[str], Iterable[str]]] = []


def expect(namespaces: Iterable[str], who: str, tables: Iterable[Table] = ()) -> None:
    """From now on these namespaces are to come. `who` names them in the message."""
    if not _expected and not _tables:
        atexit.register(_report)
    _expected.update((name, who) for name in namespaces if name not in _expected)
    _tables.extend(table for table in tables if table not in _tables)


def forget() -> None:
    """Nothing is expected any more."""
    _expected.clear()
    _tables.clear()
    atexit.unregister(_report)


def ask(pending: Callable[[], Iterable[str]], known: Callable[[str], Iterable[str]]) -> None:
    """Where to ask at the end: for namespaces without an operator, and for the operators known of a namespace."""
    _pending[:], _known[:] = [pending], [known]


def _report() -> None:
    if environment.is_compile_worker():
        return
    pending = set(_pending[0]())
    for name in (name for name in _expected if name in pending):
        log.error("%s: no operator of the namespace %s was ever registered%s", _expected[name], name, _near(name))
    for table in _tables:
        came = [name for name in table.all_namespaces if name in _expected and name not in pending]
        known = {op for name in came for op in _known[0](name)}
        if came and (gone := sorted(set(table.entries) - known)):
            text = "%s: no operator %s of %s was ever registered with the arguments of the table"
            log.error(text, _expected[came[0]], ", ".join(gone), ", ".join(came))


def _near(name: str) -> str:
    spaces = {schema.name.partition("::")[0] for schema in torch._C._jit_get_all_schemas()}
    near = difflib.get_close_matches(name, spaces, 1)
    return f"; did you mean {near[0]}?" if near else ""
