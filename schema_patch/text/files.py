"""Source files on disk: find them, read them, write them whole or not at all. Knows neither C++ nor Python."""

from __future__ import annotations

import glob
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from schema_patch.model import ToolError

from .ignored import BUILDS, Ignored

SUFFIXES = frozenset(
    ".c .cc .cpp .cxx .c++ .cu .cuh .h .hh .hpp .hxx .h++ .hip .inc .inl .ipp .mm .sycl .tpp .txx".split()
)  # fmt: skip
PYTHON = frozenset({".py"})
SOURCES = SUFFIXES | PYTHON
SKIPPED = frozenset(
    ".git .hg .svn .tox .nox .eggs .venv venv site-packages dist-packages node_modules __pycache__".split()
)

ELF = b"\x7fELF"
Prove = Callable[[str], None]
Progress = Callable[[str], None]  # hears of each file before it is read


class Steps:
    """Hears of each file before it is read, and how many there are; shows nothing itself."""

    def __call__(self, path: str) -> None: ...

    def expect(self, count: int) -> None: ...


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file as it was read. `path` is how the user names it; `real` is the file behind symbolic links."""

    path: str
    real: Path
    data: bytes


def has_suffix(name: str, suffixes: Collection[str] = SUFFIXES) -> bool:
    """Whether a file is one of these by its name; the default is C++."""
    return os.path.splitext(name)[1].lower() in suffixes


def in_tree(path: str, suffixes: Collection[str] = SUFFIXES) -> bool:
    """Whether a walk from the root of a tree comes to this file, whose path is relative to it."""
    *folders, name = path.split("/")
    return has_suffix(name, suffixes) and (SKIPPED | BUILDS).isdisjoint(folders)


def walk(root: str, onerror: Callable[[OSError], None] | None = None) -> Iterator[tuple[str, list[str], list[str]]]:
    """os.walk in a sorted order, without what holds other people's files, was built, or is ignored by git."""
    ignored = Ignored(root)
    for folder, folders, names in os.walk(root, onerror=onerror):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not ignored.folder(folder, name))
        yield folder, folders, sorted(name for name in names if not ignored.file(folder, name))


def named(root: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    """The files at a path whose names end so; what leads out of the tree is taken too, for reading."""
    if not os.path.isdir(root):
        yield from (root,) if root.endswith(suffixes) else ()
        return
    for folder, _, names in walk(root):
        paths = (os.path.join(folder, name) for name in names if name.endswith(suffixes))
        yield from filter(os.path.isfile, paths)


def find(root: str, suffixes: Collection[str] = SUFFIXES) -> Iterator[str]:
    """The files at a path with these suffixes, sorted. Raises ToolError.

    A file named by the user is C++ whatever its suffix, unless that is one of Python's.
    """
    if not os.path.exists(root):
        broken = os.path.islink(root)
        raise ToolError("the symbolic link leads nowhere" if broken else "no such file or directory", root)
    if not os.path.isdir(root):
        if has_suffix(root, PYTHON) == (suffixes is PYTHON):
            yield root
        return
    real_root = os.path.realpath(root)
    for folder, folders, names in walk(root, _raise):
        for name in folders:
            link = os.path.join(folder, name)
            if os.path.islink(link) and not (os.path.realpath(link) + os.sep).startswith(real_root + os.sep):
                raise ToolError("the symbolic link leads to a directory out of the tree: name it to have it read", link)
        for name in names:
            path = os.path.join(folder, name)
            if not has_suffix(name, suffixes):
                continue
            if os.path.islink(path) and not os.path.realpath(path).startswith(real_root + os.sep):
                if os.path.exists(path):  # a tool that is given a tree must not write outside it
                    raise ToolError("the symbolic link leads out of the tree: name its file to have it read", path)
                continue
            yield path


def paths(roots: Iterable[str], errors: list[ToolError], suffixes: Collection[str] = SUFFIXES) -> Iterator[str]:
    """The files at several paths, each once; what is in the way at one of them is an error, and the next is taken."""
    seen: set[str] = set()
    for root in roots:
        try:
            for path in find(root, suffixes):
                real = os.path.realpath(path)
                if real not in seen:
                    seen.add(real)
                    yield path
        except ToolError as error:
            errors.append(error)


def texts(
    roots: Iterable[str], errors: list[ToolError], progress: Progress, suffixes: Collection[str] = SUFFIXES
) -> Iterator[SourceFile]:
    """The same files as read; one that cannot be is an error too."""
    for path in paths(roots, errors, suffixes):
        progress(path)
        try:
            yield read(path, "Python" if suffixes is PYTHON else "C++ source")
        except ToolError as error:
            errors.append(error)


def read(path: str, what: str = "C++ source") -> SourceFile:
    """Reads a text file. Raises ToolError where it cannot be read or is binary."""
    file = load(path)
    return given(path, file.real, file.data, what)


def load(path: str) -> SourceFile:
    """Reads a file, whatever it holds. Raises ToolError."""
    real = Path(os.path.realpath(path))
    try:
        path.encode()
    except UnicodeEncodeError as error:
        shown = os.fsencode(path).decode("ascii", "backslashreplace")
        raise ToolError("expected a file name in UTF-8: rename it", shown) from error
    if not real.is_file():
        raise ToolError("expected a regular file", path)
    try:
        data = real.read_bytes()
    except OSError as error:
        raise ToolError(f"cannot read: {error.strerror}", path) from error
    return SourceFile(path, real, data)


def given(path: str, real: Path, data: bytes, what: str = "C++ source") -> SourceFile:
    """A file whose bytes are there already, as one of an archive. Raises ToolError where it is no text."""
    if b"\0" in data:
        raise ToolError(f"expected {what}, found a binary file (it holds NUL bytes)", path)
    return SourceFile(path, real, data)


class Replacing:
    """Puts new files in the places of old ones. Names of one file, as hard links are, stay names of one."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, int, bytes], Path] = {}

    def replace(self, file: SourceFile, data: bytes, prove: Prove | None = None) -> None:
        """Puts `data` in the file's place if it still holds what was read. Raises ToolError; then nothing has changed.

        `prove` is given the path of the new file before it takes the place of the old one.
        """
        if load(file.path).data != file.data:
            raise ToolError("the file changed while it was being patched: nothing written, run again", file.path)
        status = file.real.stat()
        key = (status.st_dev, status.st_ino, data)
        if key in self._made:
            _link(self._made[key], file.real)
        else:
            write(file.real, data, file.path, prove)
        self._made[key] = file.real


def _link(source: Path, target: Path) -> None:
    """Makes `target` another name of `source`, in one step."""
    temporary = target.with_name(f".{target.name}.{os.getpid():08d}.tmp")
    try:
        os.link(source, temporary)
        os.replace(temporary, target)
    except OSError as error:
        raise ToolError(f"cannot link: {error.strerror}; the file is as it was", str(target)) from error


def write(target: Path, data: bytes, name: str | None = None, prove: Prove | None = None) -> None:
    """Writes a file whole or not at all: a temporary file beside it, fsync, rename. Mode and owner are kept.

    Links stay links. A device or a pipe, such as /dev/stdout, is written into: a file in its place would be its end.
    Times are kept of a library alone: nothing is built from it, and of a source `make` must see that it changed.
    """
    name = name or str(target)
    temporary = None
    try:
        if target.exists() and not (target.is_file() or target.is_dir()):
            target.write_bytes(data)
            return
        target = Path(os.path.realpath(target))
        before = target.stat() if target.exists() else None
        mode = stat.S_IMODE(before.st_mode) if before else 0o644
        if target.exists() and not os.access(target, os.W_OK):
            raise ToolError("cannot write: the file is read-only", name)
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        made = os.stat(temporary)
        if before and hasattr(os, "chown") and (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
            os.chown(temporary, before.st_uid, before.st_gid)  # it stays whose it was
        os.chmod(temporary, mode)
        if prove:
            prove(temporary)
        if before and data.startswith(ELF):
            shutil.copystat(target, temporary)  # lists of access and other attributes too
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        raise ToolError(f"cannot write: {error.strerror}; the file is as it was", name) from error
    finally:
        if temporary:
            with suppress(OSError):
                os.unlink(temporary)


def cache_home() -> Path:
    """Where programs of this user keep what they can make again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"))


@contextmanager
def scratch(suffix: str = "") -> Iterator[str]:
    """A place for a file that is read by its name: one from `tempfile` cannot be opened twice on every system."""
    with tempfile.TemporaryDirectory(prefix="schema-patch-") as folder:
        yield os.path.join(folder, f"copy{suffix}")


def sweep(target: Path) -> None:
    """Removes what a killed process left of its temporary files beside a file."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.????????.tmp"):
        with suppress(OSError):
            left.unlink()


def _raise(error: OSError) -> None:
    raise ToolError(f"cannot read: {error.strerror}", error.filename) from error
