"""What `apply` did to a tree, kept in the tree, so that `revert` can give back the original bytes.

One entry a file and run, written before the file is, so that an interrupted run can be reverted too. An entry holds
digests of the file before and after and the edits that undo the change; it holds no source but the replaced pieces.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from . import edits, files
from .model import Edit, Span, ToolError

NAME = ".schema-patch.journal.json"
VERSION = 1


class Undo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One edit that takes a change back."""

    start: int
    end: int
    new: bytes


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was done to one file; `path` is relative to the journal."""

    path: str
    before: str
    after: str
    undo: tuple[Undo, ...]


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    entries: list[Entry]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Journal:
    """The journal of one tree. Reads what is there; every `record` is on disk before it returns."""

    def __init__(self, root: str) -> None:
        self.root = Path(root if os.path.isdir(root) else os.path.dirname(root) or ".").resolve()
        self.file = self.root / NAME
        self.entries = _read(self.file)

    def record(self, file: files.SourceFile, new: bytes, made: Iterable[Edit]) -> None:
        """Notes that `file` is about to become `new` by these edits. Raises ToolError where that cannot be written."""
        undo = tuple(Undo(e.span.start, e.span.end, e.new) for e in edits.inverse(file.data, made))
        path = os.path.relpath(file.real, self.root)
        self.entries.append(Entry(path, digest(file.data), digest(new), undo))
        self.save()

    def forget_last(self) -> None:
        """Takes back the last `record`: its file was not written."""
        self.entries.pop()
        self.save()

    def save(self) -> None:
        """Writes the journal; an empty one is removed."""
        if self.entries:
            document = _Document(VERSION, self.entries)
            files.write(self.file, msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
        else:
            self.file.unlink(missing_ok=True)

    def revert(self) -> tuple[list[str], list[ToolError]]:
        """Takes everything back, last change first. Returns the files restored, and why others were not.

        A file that holds neither the patched nor the original bytes is left alone, with its entries.
        """
        restored: list[str] = []
        errors: list[ToolError] = []
        kept: list[Entry] = []
        stuck: set[str] = set()
        for entry in reversed(self.entries):
            if entry.path in stuck:
                kept.append(entry)
                continue
            try:
                if self._undo(entry):
                    restored.append(entry.path)
            except ToolError as error:
                errors.append(error)
                stuck.add(entry.path)
                kept.append(entry)
        self.entries = kept[::-1]
        self.save()
        return sorted(set(restored)), errors

    def _undo(self, entry: Entry) -> bool:
        path = str(self.root / entry.path)
        file = files.read(path)
        if digest(file.data) == entry.before:
            return False
        if digest(file.data) != entry.after:
            raise ToolError("the file changed since it was patched: not reverted, take the change out by hand", path)
        original = edits.apply(file.data, [Edit(Span(u.start, u.end), u.new) for u in entry.undo])
        if digest(original) != entry.before:
            raise ToolError(f"the journal {self.file} does not give back the original bytes: not reverted", path)
        files.replace(file, original)
        return True


def _read(file: Path) -> list[Entry]:
    if not file.exists():
        return []
    try:
        document = msgspec.json.decode(file.read_bytes(), type=_Document)
    except (OSError, msgspec.MsgspecError) as error:
        raise ToolError(f"the journal cannot be read: {error}", str(file)) from error
    if document.version != VERSION:
        raise ToolError(f"expected a journal of version {VERSION}, found {document.version}", str(file))
    return document.entries
