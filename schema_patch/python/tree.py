"""The Python files at some paths: which of them register operators, and what. Reads files; judges nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from schema_patch.model import ToolError
from schema_patch.text import files

from . import registrations
from .registrations import PyOperator, PySource


@dataclass
class Python:
    """Every Python file of a run that registers something; `files` counts all that were looked at."""

    sources: list[PySource] = field(default_factory=list)
    data: dict[str, bytes] = field(default_factory=dict)
    files: int = 0
    paths: list[str] = field(default_factory=list)  # of all
    errors: list[ToolError] = field(default_factory=list)

    def add(self, path: str, data: bytes) -> None:
        """Reads one more file."""
        self.files += 1
        self.paths.append(path)
        source = registrations.read(data, path) if registrations.may_register(data) else None
        if source and (source.operators or source.fakes or source.implemented or source.perhaps or source.untold):
            self.sources.append(source)
            self.data[path] = data

    @property
    def operators(self) -> Iterator[PyOperator]:
        return (operator for source in self.sources for operator in source.operators)

    @property
    def unparsed(self) -> Iterator[PyOperator]:
        """Those of a namespace, so that torch is given their schema, which it would not parse."""
        return (o for o in self.operators if o.schema and o.parsed is None and "::" in o.name)


def gather(paths: Iterable[str], step: Callable[[str], None]) -> Python:
    """The Python files at these paths."""
    found = Python()
    for root in paths:
        for path in files.named(root, (".py",)):
            try:
                with open(path, "rb") as stream:
                    data = stream.read()
            except OSError as error:
                found.errors.append(ToolError(f"cannot read: {error.strerror}", path))
                continue
            step(path)
            found.add(path, data)
    return found
