"""RECORD, the list of an installed distribution's files with their hashes: the row of a file, and new hashes in it.

Knows the form of that list (PEP 376, PEP 427). Does not know what the files hold.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import IO

from schema_patch.model import Edit, Span, ToolError
from schema_patch.text import edits, files

from .kind import SOURCES

SIGNATURES = ("RECORD.jws", "RECORD.p7s")  # beside it


@dataclass(frozen=True, slots=True)
class Row:
    """Where a RECORD states the hash of a file: `stated`, as `sha256=…`, at `span` in the list."""

    record: Path
    span: Span
    stated: str


def digest(data: bytes) -> str:
    """The hash of a file as RECORD states it."""
    return of_stream(io.BytesIO(data))


def of_stream(file: IO[bytes]) -> str:
    """The same of what is read from a stream."""
    import hashlib

    found = hashlib.sha256()
    while piece := file.read(1 << 20):
        found.update(piece)
    return _stated(found.digest())


def _stated(found: bytes) -> str:
    return f"sha256={base64.urlsafe_b64encode(found).decode().rstrip('=')}"


def signed_otherwise(record: Path) -> bool:
    """Whether a RECORD.jws beside a RECORD states another hash of it (PEP 427). The signature itself is not checked."""
    try:
        payload = json.loads((record.parent / SIGNATURES[0]).read_bytes())["payload"]
        stated = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["hash"]
        return bool(stated != digest(record.read_bytes()))
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        return True


def of(library: Path, near: str) -> list[Row]:
    """The rows of an installed file, by whatever names, in the RECORDs of the distributions around it and around the
    path that the user named: a package folder may be a link from elsewhere."""
    sites = dict.fromkeys((*library.parents, *Path(os.path.abspath(near), "_").parents))
    status = os.stat(library)
    return [
        row for site in sites for record in sorted(site.glob("*.dist-info/RECORD")) for row in _rows(record, status)
    ]


def _rows(record: Path, status: os.stat_result) -> Iterator[Row]:
    done = 0
    try:
        data = record.read_bytes()
        lines = data.splitlines(keepends=True)
        ends = list(accumulate(map(len, lines), initial=0))
        reader = csv.reader(line.decode("utf-8", "surrogateescape") for line in lines)
        for fields in reader:  # of several lines, where a name has such
            first, done = done, reader.line_num
            if len(fields) > 1 and "=" in fields[1] and _is(record.parent.parent, fields[0], status):
                name = fields[0].encode("utf-8", "surrogateescape")
                at = data.index(fields[1].encode(), ends[first] + len(name))
                yield Row(record, Span(at, at + len(fields[1])), fields[1])
    except (csv.Error, OSError) as error:
        raise ToolError(
            f"expected the list of an installed distribution's files, found {error}", str(record)
        ) from error


def _is(site: Path, name: str, status: os.stat_result) -> bool:
    """Whether a name in a RECORD is one of the library with this status."""
    try:
        return not name.endswith(SOURCES) and os.path.samestat(os.stat(os.path.join(site, name)), status)
    except (OSError, ValueError):
        return False


def refuse_unfollowed(library: Path, near: str, where: str) -> None:
    """Raises ToolError where a RECORD could not state the hash of new bytes: signed, of another kind, read-only."""
    for row in of(library, near):
        signed = [name for name in SIGNATURES if (row.record.parent / name).exists()]
        if signed:
            raise ToolError(
                f"the list of its distribution is signed ({row.record.parent / signed[0]}): left as it is", where
            )
        if not row.stated.startswith("sha256="):
            raise ToolError(
                f"expected its SHA-256 in {row.record}, found {row.stated.partition('=')[0]}: left as it is", where
            )
        if not all(os.access(path, os.W_OK) for path in (row.record, row.record.parent)):
            raise ToolError(f"{row.record} states its hash and cannot be written: left as it is", where)


def follow(library: Path, near: str, earlier: Collection[str]) -> None:
    """States the hash of a file as it is now, where RECORDs state an earlier one; those in hexadecimal digits."""
    known, new = {_stated(bytes.fromhex(one)) for one in earlier}, digest(library.read_bytes())
    for row in of(library, near):
        files.sweep(row.record)
        if row.stated in known and row.stated != new:
            record = files.load(str(row.record))
            files.Replacing().replace(record, edits.apply(record.data, [Edit(row.span, new.encode())]))


def written(files: Mapping[str, tuple[str, int]], record: str) -> bytes:
    """The text of a RECORD at `record`, of files with their hash and size; its own row states neither."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerows([(name, *row) for name, row in files.items()])
    out.writerow([record, "", ""])
    return text.getvalue().encode("utf-8", "surrogateescape")
