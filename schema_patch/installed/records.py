"""RECORD, the list of an installed distribution's files with their hashes: the row of a file, and new hashes in it.

Knows the form of that list (PEP 376, PEP 427). Does not know what the files hold.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from schema_patch.model import Edit, Span
from schema_patch.text import edits, files


@dataclass(frozen=True, slots=True)
class Row:
    """Where a RECORD states the hash of a file: `stated`, as `sha256=…`, at `span` in the list."""

    record: Path
    span: Span
    stated: str


def digest(data: bytes) -> str:
    """The hash of a file as RECORD states it."""
    return _stated(hashlib.sha256(data).digest())


def _stated(found: bytes) -> str:
    return f"sha256={base64.urlsafe_b64encode(found).decode().rstrip('=')}"


def of(library: Path) -> Row | None:
    """The row of an installed file, in the RECORD of the distribution that it belongs to."""
    for site in library.parents:
        for record in sorted(site.glob("*.dist-info/RECORD")):
            row = _row(record, os.path.relpath(library, site))
            if row:
                return row
    return None


def _row(record: Path, name: str) -> Row | None:
    data = record.read_bytes()
    start = 0
    for line in data.splitlines(keepends=True):
        if os.path.basename(name).encode() in line:
            fields = next(csv.reader([line.decode("utf-8", "surrogateescape")]), [])
            if len(fields) > 1 and os.path.normpath(fields[0]) == name and "=" in fields[1]:
                at = start + line.index(fields[1].encode(), len(fields[0].encode()))
                return Row(record, Span(at, at + len(fields[1])), fields[1])
        start += len(line)
    return None


def follow(library: Path, earlier: Collection[str]) -> None:
    """States the hash of a file as it is now, where its RECORD states an earlier one; those in hexadecimal digits."""
    row = of(library)
    if row:
        files.sweep(row.record)
    if row is None or row.stated not in {_stated(bytes.fromhex(one)) for one in earlier}:
        return
    new = digest(library.read_bytes())
    if new != row.stated:
        record = files.load(str(row.record))
        files.Replacing().replace(record, edits.apply(record.data, [Edit(row.span, new.encode())]))


def written(files: Mapping[str, tuple[str, int]], record: str) -> bytes:
    """The text of a RECORD at `record`, of files with their hash and size; its own row states neither."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerows([(name, *row) for name, row in files.items()])
    out.writerow([record, "", ""])
    return text.getvalue().encode("utf-8", "surrogateescape")
