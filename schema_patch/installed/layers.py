"""One layer of an archive: what a tar says of each path, and what is left of the layers below once it lies on them.

Knows links, whiteouts, and which Python files matter. Does not know tar.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field, replace

from schema_patch.elf.reader import ElfFacts
from schema_patch.model import ToolError
from schema_patch.text import files

from .kind import MAYBE_SHARED

MENTIONS = (b"torch.ops.", b"torch.library")  # of a Python file that matters to an image
MOST_LINKS = 40  # one after the other, as the kernel has it
PARTS = ("libraries", "texts", "links", "hard")  # what a layer knows of a path


@dataclass(slots=True)
class Layer:
    """What one tar says: files by path, and what it takes away from the layers below. Libraries are ELF files of any
    name, and what is called a library and is none."""

    paths: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    opaque: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)  # those that are named
    libraries: dict[str, ElfFacts | ToolError] = field(default_factory=dict)
    texts: dict[str, bytes] = field(default_factory=dict)
    too_large: set[str] = field(default_factory=set)
    installed: bool = False
    blobs: dict[str, Layer | ToolError] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    hard: dict[str, tuple[str, str]] = field(default_factory=dict)  # links to files of layers below, with their names

    def begin(self, path: str) -> None:
        """A file, or a link: what was there under this path before, earlier in the same tar, it is not any more."""
        self.paths.add(path)
        for name in PARTS:
            getattr(self, name).pop(path, None)
        self.too_large.discard(path)

    def link(self, path: str, target: str, where: str) -> None:
        """A hard link: the content of a file of this layer or of those below, whatever becomes of that one later."""
        target = self.hard[target][0] if target in self.hard else target
        if not self._share(path, target, where, self):
            self.hard[path] = target, where
            if MAYBE_SHARED.search(path):
                missing = "expected the file of a hard link in its layer or one below, found none"
                self.libraries[path] = ToolError(f"{missing}: {target}", where)

    def _share(self, path: str, target: str, where: str, into: Layer) -> bool:
        """Gives what is read of one file to another that is the same; False where nothing is known of it."""
        facts = self.libraries.get(target)
        if facts:
            into.libraries[path] = replace(facts, path=where) if isinstance(facts, ElfFacts) else facts
        return bool(facts)

    def behind(self, path: str) -> str:
        """Where a path leads through symbolic links."""
        for _ in range(MOST_LINKS):
            parts = path.split("/")
            for n in range(1, len(parts) + 1):
                target = self.links.get("/".join(parts[:n]))
                if target is not None:
                    path = "/".join([target, *parts[n:]])
                    break
            else:
                return path
        return path

    def written(self, name: str) -> str:
        """Where a file of this name comes to lie: folders may be links."""
        folder, base = posixpath.split(posixpath.normpath(name).lstrip("/"))
        return posixpath.join(self.behind(folder), base)

    def laid_on(self, lower: Layer) -> None:
        """Calls all by where it comes to lie on another layer, of which links to folders may be left."""
        lower.links = {path: to for path, to in lower.links.items() if path not in self.folders}
        left = Layer(links={path: to for path, to in lower.links.items() if path not in self.paths})
        self.paths = {left.written(path) for path in self.paths}
        for name in PARTS:
            setattr(self, name, {left.written(path): one for path, one in getattr(self, name).items()})

    def be_installed(self) -> None:
        """Distributions are installed here, so it is no sdist: only scripts that name operators matter."""
        self.installed = True
        self.texts = {
            path: data
            for path, data in self.texts.items()
            if not files.has_suffix(path, files.SOURCES) or (path.endswith(".py") and mentions(data))
        }

    def cover(self, upper: Layer) -> None:
        """Puts a layer on top of this one."""
        upper.laid_on(self)
        shared = Layer()
        for path, (target, where) in upper.hard.items():
            self._share(path, self.behind(target), where, shared)
        for name in PARTS[:-1]:
            mine = getattr(self, name)
            for path in [path for path in mine if upper.hides(path)]:
                del mine[path]
            mine.update(getattr(upper, name) | getattr(shared, name))
        self.paths = {path for path in self.paths if not upper.hides(path)} | upper.paths

    def hides(self, path: str) -> bool:
        folders = [path]
        while folders[-1]:
            folders.append(posixpath.dirname(folders[-1]))
        gone = not self.removed.isdisjoint(folders) or not self.opaque.isdisjoint(folders[1:])
        return gone or not self.paths.isdisjoint(folders)


def mentions(data: bytes) -> bool:
    return any(mention in data for mention in MENTIONS)
