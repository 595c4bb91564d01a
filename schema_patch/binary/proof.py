"""Is a new file what was meant? Read again by both readers, and loaded by torch if asked, before the old one goes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from schema_patch.elf import reader, second
from schema_patch.elf.layout import prove_whole
from schema_patch.elf.reader import ElfFacts
from schema_patch.model import Edit, ToolError
from schema_patch.text.edits import apply
from schema_patch.text.files import SourceFile
from schema_patch.verify import load

SIGNED = b"~Module signature appended~\n"
SIGNATURES = (".sig", ".note.signature", ".pgp_sig", ".sha256_sig", ".digital_sig", "signature")
INTEGRITY = ("security.ima", "security.evm")


def refuse_signed(file: SourceFile) -> None:
    """Raises ToolError for a library that somebody signed as it is."""
    sections = [part.name for part in prove_whole(file.data, file.path).sections]
    try:
        attributes = os.listxattr(file.real) if hasattr(os, "listxattr") else []
    except OSError:  # a file system without any
        attributes = []
    integrity = [name for name in attributes if name.startswith(INTEGRITY)]
    signs = integrity or [name for name in sections if name.startswith(SIGNATURES)]
    if signs or file.data.endswith(SIGNED):
        sign = signs[0] if signs else "a signature at its end"
        raise ToolError(f"the library is signed ({sign}): no byte of it may change; build it again", file.path)


def prove(path: str, file: SourceFile, edits: Sequence[Edit], expected: ElfFacts, *, loads: bool) -> None:
    """Raises ToolError where the file at `path` is not what was meant: its bytes, what it registers, all else in it."""
    if Path(path).read_bytes() != apply(file.data, edits):
        raise ToolError("expected the bytes that were planned, found others: not written, run again", file.path)
    found = reader.read(path, file.path)
    same = {*found.schemas} == {*expected.schemas}
    if not same or replace(found, schemas=()) != replace(
        expected, path=file.path, schemas=(), differences=(), read_once=False
    ):
        message = "the new bytes would not register what was meant: nothing written; please report this library"
        raise ToolError(message, file.path)
    differing = [*second.differences(path, file.path), *second.misplaced(path, [edit.span for edit in edits])]
    if differing:
        raise ToolError(f"two readers of the new file differ in its {differing[0]}: nothing written", file.path)
    for told in load.ask([replace(found, path=path)]) if loads else ():
        troubles = [*(error.message for error in told.errors), *(finding.message for finding in told.findings)]
        if troubles:
            raise ToolError(f"with the new bytes, {troubles[0]}: nothing written", file.path)
