"""What `apply` did to a tree, kept in the tree, so that `revert` can give back the original bytes.

One entry a file and run, written before the file is, so that an interrupted run can be reverted too. An entry holds
digests of the file before and after and the edits that undo the change; it holds no source but the replaced pieces.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from pathlib import Path

import msgspec

from schema_patch.model import Edit, Span, ToolError

from . import edits, files, locks

NAME = ".schema-patch.journal.json"
VERSION = 1


class Undo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One edit that takes a change back."""

    start: int
    end: int
    new: bytes


class FileChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was done to one file; `path` is relative to the journal."""

    path: str
    before: str
    after: str
    undo: tuple[Undo, ...]


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    entries: list[FileChange]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Journal:
    """The journal of a tree: that of the nearest directory above which has one, or a new one at `root`.

    Journals further down are taken over, so that a file is never in two. While it is open (`with`), no other process
    can open one of the same directory.
    """

    def __init__(self, root: str) -> None:
        start = Path(root if os.path.isdir(root) else os.path.dirname(root) or ".").resolve()
        self.root = next((folder for folder in (start, *start.parents) if (folder / NAME).exists()), start)
        self.file = self.root / NAME
        self.entries: list[FileChange] = []
        self.taken_over: list[Path] = []

    def __enter__(self) -> Journal:
        self._held = ExitStack()
        try:
            self._held.enter_context(locks.alone(self.root))
        except OSError as error:
            raise ToolError(f"cannot lock: {error.strerror}", str(self.root)) from error
        files.sweep(self.file)  # no other process writes it now
        try:
            self.entries = _read(self.file)
            for nested in sorted(self.root.rglob(NAME)):
                if nested != self.file:
                    folder = os.path.relpath(nested.parent, self.root)
                    older = [msgspec.structs.replace(e, path=os.path.join(folder, e.path)) for e in _read(nested)]
                    self.entries = older + self.entries
                    self.taken_over.append(nested)
        except ToolError:
            self._held.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def record(self, plans: Iterable[tuple[files.SourceFile, bytes, Iterable[Edit]]]) -> None:
        """Notes what is about to become of each file. Raises ToolError where that cannot be written."""
        for file, new, made in plans:
            undo = tuple(Undo(e.span.start, e.span.end, e.new) for e in edits.inverse(file.data, made))
            path = os.path.relpath(file.real, self.root)
            self.entries.append(FileChange(path, digest(file.data), digest(new), undo))
        self.save()

    def forget(self, unwritten: Collection[files.SourceFile]) -> None:
        """Takes back the last entry of files that were not written after all."""
        for file in unwritten:
            path = os.path.relpath(file.real, self.root)
            last = max(index for index, entry in enumerate(self.entries) if entry.path == path)
            del self.entries[last]
        if unwritten:
            self.save()

    def save(self) -> None:
        """Writes the journal; an empty one is removed, and so are those that it took over."""
        if self.entries:
            document = _Document(VERSION, self.entries)
            files.write(self.file, msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
        else:
            self.file.unlink(missing_ok=True)
        for nested in self.taken_over:
            nested.unlink(missing_ok=True)

    def digests(self, real: Path) -> set[str]:
        """The SHA-256 of all that a file held before and after each run."""
        entries = (entry for entry in self.entries if (self.root / entry.path).resolve() == real)
        return {digest for entry in entries for digest in (entry.before, entry.after)}

    def revert(
        self, only: str | None = None, settle: Callable[[Journal], None] | None = None
    ) -> tuple[list[str], list[ToolError]]:
        """Takes everything back, last change first; `only` what is at this path. Returns the files restored, and why
        others were not. `settle` is called before the journal forgets what it knows of the files.

        A file that holds neither the patched nor the original bytes is left alone, with its entries.
        """
        within = Path(only).resolve() if only else self.root
        restored: list[str] = []
        errors: list[ToolError] = []
        kept: list[FileChange] = []
        replacing = files.Replacing()
        stuck: set[str] = set()
        for path in {entry.path for entry in self.entries}:
            files.sweep((self.root / path).resolve())
        for entry in reversed(self.entries):
            target = (self.root / entry.path).resolve()
            if entry.path in stuck or (target != within and within not in target.parents):
                kept.append(entry)
                continue
            try:
                if self._undo(entry, replacing):
                    restored.append(entry.path)
            except ToolError as error:
                errors.append(error)
                stuck.add(entry.path)
                kept.append(entry)
        if settle:
            settle(self)
        self.entries = kept[::-1]
        self.save()
        return sorted(set(restored)), errors

    def _undo(self, entry: FileChange, replacing: files.Replacing) -> bool:
        path = str(self.root / entry.path)
        if not os.path.exists(path):
            raise ToolError(f"gone since it was patched: put it back, or delete {self.file}", path)
        file = files.load(path)
        if digest(file.data) == entry.before:
            return False
        if digest(file.data) != entry.after:
            by_hand = f"take the change out by hand; where the file was replaced, as by an upgrade, delete {self.file}"
            raise ToolError(f"the file changed since it was patched: not reverted, {by_hand}", path)
        try:
            original = edits.apply(file.data, [Edit(Span(u.start, u.end), u.new) for u in entry.undo])
        except ValueError:
            original = b""
        if digest(original) != entry.before:
            raise ToolError(f"the journal {self.file} does not give back the original bytes: not reverted", path)
        replacing.replace(file, original)
        return True


def _read(file: Path) -> list[FileChange]:
    if not file.exists():
        return []
    if not file.is_file():
        raise ToolError("expected the journal, found no regular file", str(file))
    try:
        document = msgspec.json.decode(file.read_bytes(), type=_Document)
    except (OSError, msgspec.MsgspecError) as error:
        raise ToolError(f"the journal cannot be read: {error}", str(file)) from error
    if document.version != VERSION:
        raise ToolError(f"expected a journal of version {VERSION}, found {document.version}", str(file))
    return document.entries
