"""`observe` as Python calls it, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from schema_patch.model import Report
from schema_patch.schemas.table import Table

from . import judge, tables
from .record import SeenRecord
from .schedule import EVERY, FIRST, Schedule
from .session import Save, Session, namespaces


class Seen:
    """What was seen so far, or in all."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def record(self) -> SeenRecord:
        return self.session.record()

    def report(self, *, strict: bool = False) -> Report:
        """The verdicts, in the words of every other command."""
        return judge.report(self.record, strict=strict)

    def table(self) -> Table:
        """What the operators do, for `guard.enable(table=...)`. Raises ToolError where a table cannot say it."""
        return tables.table(self.record)

    def write(self, path: str | Path) -> None:
        """The table as a file; one that is there already is added to. Raises ToolError where the two contradict."""
        tables.write(self.table(), Path(path))


@contextmanager
def observe(
    namespace: str | Iterable[str] = (),
    *,
    first: int = FIRST,
    every: int = EVERY,
    budget: float | None = None,
    save: Save | None = None,
) -> Iterator[Seen]:
    """Watches the calls of these namespaces' operators, in all threads; of all but torch's own where none is named.

    first, every: of each operator and shape the first so many calls are watched, then one in so many (0: none).
    budget: the share of run time that it may cost, such as 0.05, from the first call on: what is over is not watched.
    """
    words = (namespace,) if isinstance(namespace, str) else tuple(namespace)
    session = Session(namespaces(words), Schedule(first, every, budget), save)
    session.start()
    try:
        yield Seen(session)
    finally:
        session.stop()
