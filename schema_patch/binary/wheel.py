"""A wheel with other schemas in its libraries: a copy with a version of its own, whose RECORD states what it holds."""

from __future__ import annotations

import os
import re
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from schema_patch.elf import placed, reader
from schema_patch.installed import packages, records
from schema_patch.installed.kind import ZIP, magic
from schema_patch.installed.packages import BROKEN_ZIP, DIST_INFO, Library
from schema_patch.model import ToolError
from schema_patch.schemas.selection import Selection
from schema_patch.schemas.table import Table
from schema_patch.text import files
from schema_patch.text.files import SourceFile

from . import plan, proof
from .plan import Make
from .tree import InstalledPlan, Progress

LABEL = "schemas"
# Among the headers: what a description says of versions is left alone.
VERSION = re.compile(rb"(\A(?:[^\r\n].*\n)*?Version:[ \t]*)(\S+)", re.IGNORECASE)
NAME = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)(?P<rest>(-\d[^-]*)?-[^-]+-[^-]+-[^-]+\.whl)")  # PEP 427


def is_wheel(path: str) -> bool:
    """Whether a path is an archive as wheels are."""
    return not os.path.isdir(path) and magic(path) == ZIP


def plan_all(path: str, table: Table, ops: Selection, make: Make, progress: Progress = lambda _: None) -> InstalledPlan:
    """Plans the change of the libraries in a wheel. Its plans are called by wheel and member, and are no files."""
    result = InstalledPlan()
    for one in packages.find(path).libraries:
        progress(one.path)
        try:
            _library(one, table, ops, make, result)
        except ToolError as error:  # torch cannot load what is foreign, nor does it know what is hidden
            if not one.hidden and not isinstance(error, reader.ForeignElf):
                result.errors.append(error)
    return result


def _library(one: Library, table: Table, ops: Selection, make: Make, result: InstalledPlan) -> None:
    with packages.local(one) as copy:
        facts, rows = placed.read(copy, one.path)
        result.facts.append(facts)
        if not plan.wanted(facts, table, ops, make):
            return
        file = SourceFile(one.path, Path(copy), Path(copy).read_bytes())
        proof.refuse_signed(file)
        result.add(plan.library(file, facts, rows, table, ops, make), loads=False)


def write(planned: InstalledPlan, path: str, out: str) -> Path:
    """Writes the copy of a wheel into a folder, each library in it proved first. Raises ToolError."""
    new = {one.file.path.removeprefix(f"{path}/"): one for one in planned.files}
    with tempfile.TemporaryDirectory(prefix="schema-patch-") as folder:
        for one in planned.files:
            member = Path(folder) / "library.so"
            member.write_bytes(one.new)
            if one.prove:
                one.prove(str(member))
        try:
            with zipfile.ZipFile(path) as archive:
                return _copied(archive, {name: one.new for name, one in new.items()}, path, Path(folder), Path(out))
        except (*BROKEN_ZIP, OSError) as error:
            raise ToolError(f"cannot write the new wheel: {error}", path) from error


def _copied(archive: zipfile.ZipFile, new: Mapping[str, bytes], path: str, folder: Path, out: Path) -> Path:
    names = archive.namelist()
    signed = [name for name in names if name.endswith(records.SIGNATURES)]
    info = next((name.split("/")[0] for name in names if re.fullmatch(r"[^/]+\.dist-info/RECORD", name)), "")
    match = DIST_INFO.fullmatch(info)
    if signed or not match:
        raise ToolError(f"expected a wheel with a RECORD and unsigned, found {signed[0] if signed else 'none'}", path)
    old, version = match["version"], labelled(match["version"])
    stem = f"{match['name']}-{old}"
    target = folder / _renamed(path, out)
    hashes: dict[str, tuple[str, int]] = {}
    with zipfile.ZipFile(target, "w") as copy:
        for member in archive.infolist():
            name = re.sub(rf"^{re.escape(stem)}(?=\.(dist-info|data)/)", f"{match['name']}-{version}", member.filename)
            data = new.get(member.filename) or archive.read(member)
            if member.filename == f"{info}/METADATA":
                data, count = VERSION.subn(lambda found: found[1] + labelled(found[2].decode()).encode(), data)
                if not count:
                    raise ToolError("expected a header Version, found none", f"{path}/{member.filename}")
            row = zipfile.ZipInfo(name, member.date_time)
            row.external_attr, row.compress_type, row.create_system = (
                member.external_attr, member.compress_type, member.create_system,
            )  # fmt: skip
            if member.filename == f"{info}/RECORD":
                last = row
                continue
            copy.writestr(row, data)
            if not member.is_dir():
                hashes[name] = (records.digest(data), len(data))
        copy.writestr(last, records.written(hashes, last.filename))
    out.mkdir(parents=True, exist_ok=True)
    files.write(out / target.name, target.read_bytes())
    return out / target.name


def _renamed(path: str, out: Path) -> str:
    """What the new wheel is called; never so that it would take the place of the old one."""
    match = NAME.fullmatch(os.path.basename(path))
    if not match:
        raise ToolError("expected a wheel called NAME-VERSION-PYTHON-ABI-PLATFORM.whl, as pip does", path)
    name = f"{match['name']}-{labelled(match['version'])}{match['rest']}"
    if os.path.realpath(out / name) == os.path.realpath(path):
        raise ToolError(f"the new wheel has the same name: say another folder than {out}", path)
    return name


def labelled(version: str) -> str:
    """A version with the kit's local label (PEP 440), once."""
    public, _, local = version.partition("+")
    parts = [part for part in local.split(".") if part and part != LABEL]
    return f"{public}+{'.'.join([*parts, LABEL])}"
