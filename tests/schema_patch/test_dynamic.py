"""The dynamic section, against pyelftools, readelf and lief, on libraries built here and on those of this environment."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from mmap import ACCESS_READ, mmap
from pathlib import Path

import lief
import pytest
from elf_files import VOID, build
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

from schema_patch.elf import dynamic, layout, reader
from schema_patch.model import ToolError

SMALL = 40 << 20


def installed() -> list[Path]:
    """Some libraries of every package here, the SYCL runtime among them."""
    site = Path(sys.prefix) / "lib"
    found = sorted(p for p in site.rglob("*.so*") if not p.is_symlink() and p.read_bytes()[:4] == b"\x7fELF")
    return [p for p in found if p.stat().st_size < SMALL][::40]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    more = 'int torch_fn(int x) { return x; } extern int puts(const char *); int say(void) { return puts("x"); }'
    return build(
        tmp_path_factory.mktemp("dyn"), [VOID], needed=("libsycl.so.8",), more=more, flags=("-Wl,-soname,libmine.so.3",)
    )


def read(path: Path) -> tuple[mmap, layout.Layout, dynamic.Dynamic]:
    with path.open("rb") as file:
        data = mmap(file.fileno(), 0, access=ACCESS_READ)
    shape = layout.prove_whole(data, str(path))
    return data, shape, dynamic.read(data, shape, str(path))


def test_pyelftools_says_the_same(built: Path) -> None:
    for path in [built, *installed()]:
        data, shape, dyn = read(path)
        with path.open("rb") as file:
            oracle = ELFFile(file)  # type: ignore[no-untyped-call]
            section = oracle.get_section_by_name(".dynamic")  # type: ignore[no-untyped-call]
            tags = list(section.iter_tags()) if section else []
            assert list(dyn.needed) == [tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"], path
            assert dyn.soname == next((tag.soname for tag in tags if tag.entry.d_tag == "DT_SONAME"), ""), path
            table = oracle.get_section_by_name(".dynsym")  # type: ignore[no-untyped-call]
            names = [
                symbol.name
                for symbol in (table.iter_symbols() if table else ())
                if symbol["st_value"] and symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] != "STB_LOCAL"
            ]
            assert [s.name for s in dynamic.symbols(data, shape, dyn, str(path))] == names, path
            versions = [s for s in oracle.iter_sections() if isinstance(s, GNUVerNeedSection)]  # type: ignore[no-untyped-call]
            found = {
                need.name: sorted(aux.name for aux in auxes) for s in versions for need, auxes in s.iter_versions()
            }
            assert {name: sorted(needed) for name, needed in dyn.versions} == found, path


def test_lief_says_the_same(built: Path) -> None:
    for path in [built, *installed()[::3]]:
        data, shape, dyn = read(path)
        binary = lief.ELF.parse(str(path))
        assert binary
        assert list(dyn.needed) == list(binary.libraries), path
        exported = {s.name for s in dynamic.symbols(data, shape, dyn, str(path))}
        assert {s.name for s in binary.exported_symbols if s.value} <= exported | {""}, path


def test_readelf_says_the_same(built: Path) -> None:
    words = subprocess.run(["readelf", "-dW", built], capture_output=True, text=True, check=True).stdout
    facts = reader.read(built)
    assert list(facts.needed) == re.findall(r"NEEDED.*\[(.*)\]", words)
    assert facts.soname == "libmine.so.3"
    assert dict(facts.versions)["libc.so.6"] == ("GLIBC_2.2.5",)


def test_the_number_of_symbols_without_section_headers(built: Path, tmp_path: Path) -> None:
    sysv = build(tmp_path, [VOID], more="int torch_fn(int x) { return x; }", flags=("-Wl,--hash-style=sysv",))
    none = build(tmp_path / "n", [VOID], flags=("-Wl,--hash-style=gnu", "-fvisibility=hidden"))
    for path in (built, sysv, none, *installed()[::3]):
        data, shape, dyn = read(path)
        whole = [s.name for s in dynamic.symbols(data, shape, dyn, "x")]
        assert [s.name for s in dynamic.symbols(data, replace(shape, sections=()), dyn, "x")] == whole, path


def test_exported_symbols_are_told_when_asked(built: Path) -> None:
    assert reader.read(built).symbols == ()
    names = {symbol.name for symbol in reader.read(built, deep=True).symbols}
    assert {"torch_fn", "say"} <= names
    assert "puts" not in names


def test_only_what_is_linked_can_be_asked_for(built: Path) -> None:
    facts = reader.read(built, linked=True)
    assert (facts.schemas, facts.needed) == ((), reader.read(built).needed)


def tags_of(data: bytes) -> Iterator[tuple[int, int]]:
    shape = layout.prove_whole(data, "x")
    assert shape.dynamic
    for at in range(shape.dynamic.start, shape.dynamic.end, 16):
        yield at, int.from_bytes(data[at : at + 8], "little")


@pytest.mark.parametrize(
    ("tag", "value", "says"),
    [(5, 1 << 40, "dynamic tag 0x5"), (10, 1 << 40, "dynamic tag 0x5"), (10, 0, "name of a library"), (1, 1 << 30, "name of a library"),
     (14, 1 << 30, "name of a library"), (0x6FFFFFFE, 1 << 40, "versions of symbols"), (5, None, "table of names")],
)  # fmt: skip
def test_a_damaged_dynamic_section_is_refused(
    built: Path, tmp_path: Path, tag: int, value: int | None, says: str
) -> None:
    data = bytearray(built.read_bytes())
    at = next(at for at, found in tags_of(bytes(data)) if found == tag)
    if value is None:
        data[at : at + 8] = (0x70000001).to_bytes(8, "little")
    else:
        data[at + 8 : at + 16] = value.to_bytes(8, "little")
    (tmp_path / "x.so").write_bytes(data)
    with pytest.raises(ToolError, match=says):
        reader.read(tmp_path / "x.so")


def test_versions_that_lead_in_circles_end(built: Path, tmp_path: Path) -> None:
    data = bytearray(built.read_bytes())
    shape = layout.prove_whole(bytes(data), "x")
    at = shape.named(".gnu.version_r")
    assert at
    data[at.start + 2 : at.start + 4] = b"\xff\xff"
    (tmp_path / "x.so").write_bytes(data)
    assert len(dict(reader.read(tmp_path / "x.so").versions)["libc.so.6"]) <= 1000
