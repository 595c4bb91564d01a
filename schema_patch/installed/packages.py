"""A directory, a wheel or a .so -> the ELF files in it, and the distribution that each belongs to.

Knows how Python installs files and finds them: links, `.pth` files and editable installs (pth.py) are followed. Does
not know what is inside a library, nor which distributions matter, nor archives that are read in one go (archives.py).
"""

from __future__ import annotations

import csv
import io
import lzma
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO

from schema_patch.elf.reader import ElfFacts
from schema_patch.model import ToolError
from schema_patch.text import files

from . import pth, records
from .kind import MAGIC, MAYBE_SHARED, SHARED, SOURCES, ZIP, magic

Read = Callable[[str, str], ElfFacts]
TEXT = re.compile(rb"[\t\n\r -~]{4,}")
DIST_INFO = re.compile(r"(?P<name>[^/]+?)-(?P<version>[^-/]+)\.dist-info")
LARGEST = 4 << 30  # of a library; the largest published has under one GiB
LARGEST_TEXT = 32 << 20  # of a script, or of the list of a distribution's files
# What zipfile raises; the last two for names and numbers that are none.
BROKEN_ZIP = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError),
    *(NotImplementedError, RuntimeError, ValueError, struct.error),
)


@dataclass(frozen=True, slots=True)
class Owner:
    """A distribution; `name` in normal form (PEP 503)."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class Library:
    """An ELF file. `path` is what reports call it; `named`: it, or its wheel, was asked for and not met on a walk.

    `key`: its path inside what was asked for, the same in two builds. `digest`: what its RECORD says of its content.
    `file`: where it really is, if not at `path`. `root`: of the folders that Python looks into, which one this is in.
    `hidden`: its name does not say what it is, so that it counts if it registers operators.
    """

    path: str
    owner: Owner | None = None
    named: bool = False
    wheel: str = ""
    member: str = ""
    key: str = ""
    digest: str = ""
    file: str = ""
    root: int = 0
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Placed:
    """A library that was read, and what owns it; `judged`: its operators were looked at, not only what it links."""

    facts: ElfFacts
    owner: str
    judged: bool = True


@dataclass(slots=True)
class Contents:
    """What a path holds: libraries by path, what was passed over (path, why), and what could not be looked into.

    `unfollowed`: where Python would look and this did not. `names`: of all files that a loader may find there, also
    links to them. `scripts`: the Python files, read when called. `installed`: torch is installed here, so that the
    runtime that it is built for must be here too. `resigned`: lists of files that are not what was signed.

    Of an archive, which is read in one go, `facts` of each library by path, and `sources`, the C++ and Python files of
    an sdist that `check` would read of its tree; `complete`: it is an image, and nothing is there but what is in it.
    """

    libraries: list[Library] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    errors: list[ToolError] = field(default_factory=list)
    unfollowed: list[tuple[str, str]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    scripts: dict[str, Callable[[], bytes]] = field(default_factory=dict)
    installed: bool = False
    resigned: list[str] = field(default_factory=list)
    facts: dict[str, ElfFacts] = field(default_factory=dict)
    sources: dict[str, bytes] = field(default_factory=dict)
    complete: bool = False


def find(path: str) -> Contents:
    """The libraries of a directory, a wheel or a single file. Raises ToolError where the path is none of these."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            return _walk(path)
        start = magic(path) if stat.S_ISREG(mode) else b""
    except OSError as error:
        raise ToolError(f"cannot be read: {error.strerror}", path) from error
    if start == ZIP:
        return _wheel(path, named=True)
    if start == MAGIC:
        return Contents([Library(path, named=True, key=os.path.basename(path))], names={os.path.basename(path)})
    what = f"a file that begins with {start!r}" if stat.S_ISREG(mode) else "something that is not a regular file"
    raise ToolError(f"expected a directory, a wheel or an ELF library, found {what}", path)


@contextmanager
def local(library: Library) -> Iterator[str]:
    """The path of a file with the library's bytes: itself, or a temporary copy out of its wheel."""
    if not library.wheel:
        yield library.file or library.path
        return
    with files.scratch(".so") as copy:
        try:
            with zipfile.ZipFile(library.wheel) as archive, archive.open(library.member) as member:
                unpack(member, copy, library.path)
        except (*BROKEN_ZIP, OSError) as error:
            raise ToolError(f"cannot be taken out of its wheel: {error}", library.path) from error
        yield copy


def unpack(source: IO[bytes], path: str, where: str) -> None:
    """Copies a library out of an archive. Raises ToolError where it is larger than any library."""
    size = 0
    with open(path, "wb") as copy:
        while piece := source.read(1 << 20):
            size += len(piece)
            if size > LARGEST:
                raise ToolError(f"expected a library of at most {LARGEST} bytes, found a larger one", where)
            copy.write(piece)


def _walk(root: str) -> Contents:
    found = Contents()
    owners: dict[str, tuple[Owner, str]] = {}
    candidates: dict[str, str] = {}  # each with the folder that Python finds it from
    pending, walked = [root], set[str]()
    for start in pending:  # which grows
        for folder, subfolders, names in _folders(start, walked, found):
            for name in subfolders:
                if name.endswith(".dist-info"):
                    owners.update(_record(folder, name, found))
                    found.installed |= is_torch(name)
            candidates |= {os.path.join(folder, name): start for name in names if not name.endswith(SOURCES)}
            for name in names:
                if name.endswith(".py"):
                    path = os.path.join(folder, name)
                    found.scripts[path] = partial(_contents, path)
                elif name.endswith(pth.SUFFIXES):
                    more, unread = pth.paths(os.path.join(folder, name))
                    pending += [path for path in more if os.path.isdir(path)]
                    candidates |= {path: os.path.dirname(path) for path in more if os.path.isfile(path)}
                    found.unfollowed += [(os.path.join(folder, name), why) for why in unread]
    called = (path for path in (*candidates, *owners) if MAYBE_SHARED.search(path) and os.path.exists(path))
    found.names = {os.path.basename(path) for path in called}
    owners = {os.path.realpath(path): owned for path, owned in owners.items()} | owners
    roots = list(dict.fromkeys((*pending, *candidates.values())))
    seen: set[str] = set()
    for path in sorted(candidates, key=lambda path: (os.path.islink(path), path)):  # a link after its file
        real = os.path.realpath(path)
        if real in seen or (os.path.exists(real) and not os.path.isfile(real)):
            continue
        seen.add(real)
        before = len(found.libraries)
        try:
            owner, digest = owners.get(os.path.normpath(path)) or owners.get(real) or (None, "")
            _take(path, owner, digest, candidates[path], found)
            found.libraries[before:] = [
                replace(one, root=roots.index(candidates[path])) for one in found.libraries[before:]
            ]
        except OSError as error:
            found.errors += [_unreadable(error)] if MAYBE_SHARED.search(path) else []
        except ToolError as error:
            found.errors.append(error)
    found.libraries.sort(key=lambda library: library.path)
    return found


def _folders(start: str, walked: set[str], found: Contents) -> Iterator[tuple[str, list[str], list[str]]]:
    """os.walk that goes through links to folders, as imports do, and into each folder once."""
    for folder, subfolders, names in os.walk(
        start, onerror=lambda error: found.errors.append(_unreadable(error)), followlinks=True
    ):
        real = os.path.realpath(folder)
        if real in walked:
            subfolders.clear()
            continue
        walked.add(real)
        subfolders.sort(key=lambda name: (os.path.islink(os.path.join(folder, name)), name))
        yield folder, subfolders, names


def _take(path: str, owner: Owner | None, digest: str, root: str, found: Contents) -> None:
    """Files a candidate of a walk by its first bytes."""
    start, named = magic(path), bool(MAYBE_SHARED.search(path))
    if path.endswith(".whl") or (path.endswith(".egg") and start == ZIP):
        wheel = _wheel(path, named=False)
        found.libraries += wheel.libraries
        found.scripts |= wheel.scripts
        found.skipped += wheel.skipped
    elif start == MAGIC:
        key = os.path.relpath(path, root)
        found.libraries.append(Library(path, owner, key=key, digest=digest, hidden=not named))
    elif not SHARED.search(os.path.basename(path)):
        pass
    elif _is_text(path):
        found.skipped.append((path, "a text file (a linker script?)"))
    else:
        raise ToolError(f"expected an ELF file, found one that begins with {start!r}; install it again", path)


def _contents(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _is_text(path: str) -> bool:
    """An ELF header that lost a bit of its first bytes still has zeros in it."""
    with open(path, "rb") as file:
        start = file.read(64)
    return bool(TEXT.fullmatch(start))


def _unreadable(error: OSError) -> ToolError:
    return ToolError(f"cannot be read: {error.strerror}", error.filename)


def _owner(dist_info: str) -> Owner | None:
    match = DIST_INFO.fullmatch(dist_info)
    return Owner(re.sub(r"[-_.]+", "-", match["name"]).lower(), match["version"]) if match else None


def _record(site: str, dist_info: str, found: Contents) -> Iterator[tuple[str, tuple[Owner, str]]]:
    """The libraries that a RECORD on disk names, by path. Without a RECORD nobody owns them."""
    record = os.path.join(site, dist_info, "RECORD")
    if not os.path.isfile(record):
        return
    try:
        found.resigned += [record] if records.signed_otherwise(Path(record)) else []
        with open(record, newline="", encoding="utf-8", errors="surrogateescape") as file:
            yield from owned(site, dist_info, file)
    except (OSError, csv.Error) as error:
        found.errors.append(ToolError(f"expected the list of an installed distribution's files, found {error}", record))


def owned(site: str, dist_info: str, record: Iterable[str]) -> Iterator[tuple[str, tuple[Owner, str]]]:
    """What a RECORD names that may be a library: path, owner, and the SHA-256 that it states."""
    owner = _owner(dist_info)
    for row in csv.reader(record) if owner else ():
        if owner and row and not row[0].endswith(SOURCES):
            digest = row[1] if len(row) > 1 and row[1].startswith("sha256=") else ""
            yield os.path.normpath(os.path.join(site, row[0])), (owner, digest)


def is_torch(dist_info: str) -> bool:
    """Whether a .dist-info folder is torch's own."""
    owner = _owner(dist_info)
    return owner is not None and owner.name == "torch"


def _wheel(path: str, *, named: bool) -> Contents:
    """What a wheel holds, or an egg."""
    found = Contents()
    try:
        archive = _Zip(path)
        names = sorted(archive.namelist())
        owners: dict[str, tuple[Owner, str]] = {}
        owner = None
        for name in names:
            dist_info, _, base = name.partition("/")
            if dist_info.endswith(".dist-info") and base == "RECORD":
                owners.update(owned("", dist_info, io.StringIO(archive.text(name).decode("utf-8", "surrogateescape"))))
                owner = owner or _owner(dist_info)
        for name in (name for name in names if not name.endswith((*SOURCES, "/"))):
            with archive.open(name) as member:
                start = member.read(4)
            where, hidden = f"{path}/{name}", not MAYBE_SHARED.search(name)
            if start == MAGIC or SHARED.search(name):  # elf.read says what is wrong with one that is not ELF
                digest = owners.get(name, (None, ""))[1]
                found.libraries.append(Library(where, owner, named, path, name, name, digest, hidden=hidden))
                found.names |= set() if hidden else {os.path.basename(name)}
            elif start == ZIP and name.endswith((".whl", ".egg")):
                found.skipped.append((where, "a wheel inside an archive: not looked into"))
        for name in names:
            if name.endswith(".py"):
                found.scripts[f"{path}/{name}"] = partial(archive.text, name)
    except (*BROKEN_ZIP, OSError) as error:
        raise ToolError(f"expected a wheel, found a broken archive: {error}", path) from error
    return found


class _Zip(zipfile.ZipFile):
    """An archive that is opened once for all its texts, and takes none into memory that is no text in size."""

    def text(self, name: str) -> bytes:
        where = f"{self.filename}/{name}"
        if self.getinfo(name).file_size > LARGEST_TEXT:
            raise ToolError(f"too large to be read: over {LARGEST_TEXT} bytes", where)
        try:
            return self.read(name)
        except BROKEN_ZIP as error:
            raise ToolError(f"cannot be taken out of its wheel: {error}", where) from error
