"""Archives read in one go, also from a pipe: tar of a tree, an sdist, or an image of Docker or OCI with its layers.

Knows tar, whiteouts, and which layers make an image. Each library is copied out alone, read, and forgotten; what a
later layer deletes or replaces does not count. A blob that is named by its SHA-256 must have it. Does not know which
distributions or operators matter.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import os
import posixpath
import re
import struct
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from tarfile import EOFHeaderError as EndOfArchive  # type: ignore[attr-defined]
from tarfile import TarFile
from typing import IO, TYPE_CHECKING, Any, cast

from schema_patch.elf.reader import ElfFacts, ForeignElf
from schema_patch.model import ToolError
from schema_patch.text import files

from . import packages
from .kind import GZIP, MAGIC, MAYBE_SHARED, SHARED, ZSTD, is_archive
from .layers import Layer, mentions
from .packages import TEXT, Contents, Library, Owner, Read

if TYPE_CHECKING:
    from typing_extensions import Self

BLOB = re.compile(r"blobs/(?P<algorithm>\w+)/(?P<digest>[0-9a-f]+)|[^/]+/layer\.tar|[0-9a-f]{64}\.tar")
WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
SITE = ("site-packages/", "dist-packages/")
LARGEST_TEXT = 8 << 20  # of a script, a source, or a manifest
BROKEN: tuple[type[Exception], ...] = (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError)


def find(stream: IO[bytes], name: str, read: Read, progress: Callable[[str], None] | None = None) -> Contents:
    """The libraries in a tar archive that is called `name`. Raises ToolError where it is broken."""

    def heard(copy: str, where: str) -> ElfFacts:
        if progress:
            progress(where)
        return read(copy, where)

    top = _tar(stream, name, heard, nested=True)
    images = list(_images(top, name))
    found = Contents()
    for number, layers in enumerate(images or [[top]], 1):
        whole = Layer()
        for layer in layers:
            whole.cover(layer)
        _file(whole, f"{name}[{number}]" if len(images) > 1 else name, found)
    found.installed |= bool(images)
    found.complete = bool(images)
    return found


def _file(whole: Layer, label: str, found: Contents) -> None:
    owners: dict[str, tuple[Owner, str]] = {}
    is_sdist = any(path.count("/") == 1 and path.endswith("/PKG-INFO") for path in whole.paths)
    for path, data in whole.texts.items():
        folder, base = posixpath.split(path)
        if base == "RECORD":
            site, dist_info = posixpath.split(folder)
            owners.update(packages.owned(site, dist_info, io.StringIO(data.decode("utf-8", "surrogateescape"))))
            found.installed |= packages.is_torch(dist_info)
        elif is_sdist and files.in_tree(path.partition("/")[2], files.SOURCES):
            found.sources[f"{label}/{path}"] = data
        if path.endswith(".py") and mentions(data):
            found.scripts[f"{label}/{path}"] = partial(bytes, data)
    if is_sdist:
        found.errors += [
            ToolError(f"too large to be read: over {LARGEST_TEXT} bytes", f"{label}/{path}")
            for path in sorted(whole.too_large)
        ]
    _linked(whole, label, found)
    owners = {whole.behind(path): owned for path, owned in owners.items()} | owners
    for path, facts in sorted(whole.libraries.items()):
        name = f"{label}/{path}"
        if not MAYBE_SHARED.search(path) and not (isinstance(facts, ElfFacts) and facts.registers):
            continue  # a program, or what is no library
        if isinstance(facts, ForeignElf):
            found.skipped.append((name, facts.message))
        elif isinstance(facts, ToolError):
            found.errors.append(facts)
        else:
            owner, digest = owners.get(path, (None, ""))
            found.libraries.append(Library(name, owner, key=path, digest=digest))
            found.facts[name] = replace(facts, path=name)
    found.names |= {posixpath.basename(path) for path in whole.paths if MAYBE_SHARED.search(path)}
    wheels = [path for path in whole.paths if path.endswith(".whl")]
    found.skipped += [(f"{label}/{path}", "a wheel inside an archive: not looked into") for path in sorted(wheels)]


def _linked(whole: Layer, label: str, found: Contents) -> None:
    """Makes libraries of the files that symbolic links call so."""
    for path in sorted(filter(MAYBE_SHARED.search, whole.links)):
        target = whole.behind(path)
        facts = whole.libraries.get(target)
        if facts:
            whole.libraries[path] = facts
        elif target not in whole.paths and any(site in path for site in SITE):
            found.unfollowed.append((f"{label}/{path}", f"a link to {target}, which is not there"))


def _tar(stream: IO[bytes], where: str, read: Read, *, nested: bool) -> Layer:
    layer = Layer()

    class Member(tarfile.TarInfo):
        """Notes whether the block of zeros came that ends an archive: tarfile takes a cut one for a whole one."""

        ended = False

        @classmethod
        def fromtarfile(cls, tarfile: TarFile) -> Self:
            try:
                return super().fromtarfile(tarfile)
            except EndOfArchive:
                cls.ended = True
                raise

    try:
        with tarfile.open(fileobj=_plain(stream), mode="r|*", tarinfo=Member) as tar:
            while member := _next(tar):
                folder, base = posixpath.split(posixpath.normpath(member.name).lstrip("/"))
                path = posixpath.join(layer.behind(folder), base)
                if base == OPAQUE:
                    layer.opaque.add(folder)
                elif base.startswith(WHITEOUT):
                    layer.removed.add(posixpath.join(folder, base.removeprefix(WHITEOUT)))
                elif member.isdir():
                    layer.folders.add(path)
                    layer.links.pop(path, None)
                elif _begun(layer, member, path, where):
                    if not layer.installed and posixpath.dirname(path).endswith(".dist-info"):
                        layer.be_installed()
                    known = member.type in tarfile.SUPPORTED_TYPES  # any other is taken out as a file
                    file = tar.extractfile(member) if member.isreg() or not known else None
                    if file:
                        with file:
                            _member(file, path, member.size, where, layer, read, nested)
    except BROKEN + _zstd_errors() as error:
        raise ToolError(f"expected a tar archive, found a broken one: {error}", where) from error
    if not Member.ended:
        raise ToolError("expected the blocks of zeros that end a tar archive, found none: it was cut", where)
    return layer


def _begun(layer: Layer, member: tarfile.TarInfo, path: str, where: str) -> bool:
    """Notes a file or a link; False for one that was there already."""
    linked = layer.written(member.linkname) if member.islnk() else ""
    if linked == path:
        return False
    layer.begin(path)
    if member.issym():
        target = posixpath.join("/", posixpath.dirname(path), member.linkname)
        layer.links[path] = posixpath.normpath(target).lstrip("/")
    elif linked:
        layer.link(path, linked, f"{where}/{path}")
    return True


def _next(tar: tarfile.TarFile) -> tarfile.TarInfo | None:
    try:
        return tar.next()
    except (ValueError, struct.error, IndexError) as error:  # what tarfile raises for numbers that are none
        raise tarfile.ReadError(str(error)) from error


def _member(file: IO[bytes], path: str, size: int, where: str, layer: Layer, read: Read, nested: bool) -> None:
    blob = BLOB.fullmatch(path) if nested else None
    base = posixpath.basename(path)
    if blob:
        start = cast(Any, file).peek(512)[:512]
        if is_archive(start):
            try:
                layer.blobs[path] = _blob(file, blob, f"{where}/{path}", where, read)
            except ToolError as error:
                layer.blobs[path] = error
        elif size < LARGEST_TEXT:
            layer.texts[path] = file.read()
    elif size < LARGEST_TEXT and (path.endswith(".dist-info/RECORD") or path in ("manifest.json", "index.json")):
        layer.texts[path] = file.read()
    elif files.has_suffix(base, files.SOURCES) and not MAYBE_SHARED.search(base):
        whole = nested and not layer.installed  # it may be an sdist, of which every file counts
        if size >= LARGEST_TEXT:
            layer.too_large.add(path)
        elif whole or base.endswith(".py"):
            data = file.read()
            if whole or mentions(data):
                layer.texts[path] = data
    else:
        _library(file, path, f"{where}/{path}", layer, read)


def _library(file: IO[bytes], path: str, where: str, layer: Layer, read: Read) -> None:
    start = cast(Any, file).peek(64)[:64]
    if not start.startswith(MAGIC):
        if SHARED.search(path) and not TEXT.fullmatch(start):
            layer.libraries[path] = ToolError(f"expected an ELF file, found one that begins with {start[:4]!r}", where)
        return
    with files.scratch(".so") as copy:
        try:
            packages.unpack(file, copy, where)
            layer.libraries[path] = read(copy, where)
        except ToolError as error:
            layer.libraries[path] = error


class _Hashed(io.RawIOBase):
    """A stream that counts the SHA-256 of what is read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream, self.digest = stream, hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.stream.read(len(buffer))
        self.digest.update(data)
        buffer[: len(data)] = data
        return len(data)


def _blob(file: IO[bytes], blob: re.Match[str], where: str, image: str, read: Read) -> Layer:
    """A layer, which must be what its name says. What it holds is called by its path in the image."""
    hashed = _Hashed(file)
    layer = _tar(cast(IO[bytes], io.BufferedReader(hashed, 1 << 20)), image, read, nested=False)
    while hashed.read(1 << 20):  # what lies behind the end of the tar
        pass
    if blob["algorithm"] == "sha256" and hashed.digest.hexdigest() != blob["digest"]:
        raise ToolError(f"expected a layer with the SHA-256 of its name, found {hashed.digest.hexdigest()}", where)
    return layer


def _plain(stream: IO[bytes]) -> IO[bytes]:
    """The stream itself, or what is in it if it may be compressed in parts, of which tarfile reads the first."""
    start = cast(Any, stream).peek(4)[:4]
    if start.startswith(GZIP):
        return cast(IO[bytes], io.BufferedReader(gzip.GzipFile(fileobj=stream)))
    if start != ZSTD:
        return stream
    try:
        import zstandard
    except ImportError as error:
        raise ToolError("the archive is compressed with zstd: install zstandard to have it read") from error
    return cast(
        IO[bytes], io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True))
    )


def _zstd_errors() -> tuple[type[Exception], ...]:
    module = sys.modules.get("zstandard")  # what was not imported has raised nothing
    return (module.ZstdError,) if module else ()


def _images(top: Layer, where: str) -> Iterator[list[Layer]]:
    """The images that the manifests in an archive describe: the layers of each from the bottom up."""
    try:
        if "manifest.json" in top.texts:  # docker save; one that is also OCI says the same twice
            for entry in json.loads(top.texts["manifest.json"]):
                yield [_layer(top, where, name) for name in entry["Layers"]]
        elif "index.json" in top.texts:
            pending = list(json.loads(top.texts["index.json"])["manifests"])
            while pending:
                descriptor = pending.pop(0)
                document = json.loads(top.texts[_path(descriptor)])
                pending += document.get("manifests", ())
                rows = [(row.get("mediaType", ""), _path(row)) for row in document.get("layers", ())]
                odd = [kind for kind, _ in rows if "tar" not in kind]
                if odd and not all(kind.endswith("json") for kind, _ in rows):  # as what vouches for an image is
                    raise ToolError(f"expected layers that are tar archives, found {odd[0] or 'one of no type'}", where)
                if rows and not odd:
                    yield [_layer(top, where, name) for _, name in rows]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolError(f"expected the manifest of an image, found {type(error).__name__}: {error}", where) from error


def _path(descriptor: dict[str, str]) -> str:
    return "blobs/" + descriptor["digest"].replace(":", "/")


def _layer(top: Layer, where: str, name: str) -> Layer:
    layer = top.blobs.get(os.path.normpath(name))
    if layer is None:
        raise ToolError(f"expected the layer {name} that the image's manifest names, found none", where)
    if isinstance(layer, ToolError):
        raise layer
    return layer
