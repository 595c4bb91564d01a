"""What is read out of a library, against pyelftools; and that nothing broken is believed."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import nobody
import pytest
from elf_files import ALIAS, OTHER, SPACE, VOID, WRONG, build, sstrip
from elftools.elf.elffile import ELFFile

from schema_patch.elf import reader
from schema_patch.model import ToolError


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needed = ("libsycl.so.8", "libze_loader.so.1")
    flags = ("-Wl,-rpath,$ORIGIN/../lib", "-Wl,--enable-new-dtags")
    return build(tmp_path_factory.mktemp("elf"), [WRONG, OTHER], needed=needed, flags=flags)


def texts(path: Path) -> list[str]:
    return sorted(found.text for found in reader.read(path).schemas)


def copy(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_facts_equal_those_of_pyelftools(library: Path) -> None:
    facts = reader.read(library)
    with library.open("rb") as file:
        oracle = ELFFile(file)  # type: ignore[no-untyped-call]
        tags = list(oracle.get_section_by_name(".dynamic").iter_tags())  # type: ignore[no-untyped-call]
        assert list(facts.needed) == [tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"]
        assert facts.runpath == next(tag.runpath for tag in tags if tag.entry.d_tag == "DT_RUNPATH")
        assert facts.stripped == (oracle.get_section_by_name(".symtab") is None)  # type: ignore[no-untyped-call]
    assert facts.needed[:2] == ("libsycl.so.8", "libze_loader.so.1")
    assert (facts.path, facts.machine, facts.size) == (str(library), "x86-64", library.stat().st_size)
    assert {(s.text, s.namespace, s.schema.op) for s in facts.schemas} == {
        (WRONG, SPACE, "esimd_gemv_int4"),
        (OTHER, SPACE, "rms_norm"),
    }


def test_rpath_is_read_where_there_is_no_runpath(tmp_path: Path) -> None:
    path = build(tmp_path, [VOID], flags=("-Wl,-rpath,/opt/x", "-Wl,--disable-new-dtags"))
    assert reader.read(path).runpath == "/opt/x"
    assert reader.read(build(tmp_path, [VOID])).runpath == ""


@pytest.mark.parametrize("how", ["strip", "-s", "sstrip", "sstrip and cut", "one segment"])
def test_a_stripped_library_says_the_same(tmp_path: Path, how: str) -> None:
    flags = {"-s": ("-s",), "one segment": ("-Wl,-z,noseparate-code",)}.get(how, ())
    path = build(tmp_path, [ALIAS, OTHER], flags=flags)
    if how == "strip":
        subprocess.run(["strip", path], check=True)
    elif how != "-s":
        sstrip(path, cut=how == "sstrip and cut")
    assert texts(path) == sorted([ALIAS, OTHER])
    assert reader.read(path).stripped


def test_only_what_is_registered_counts(tmp_path: Path) -> None:
    """Wherever else a text stands, it is none: in a doc string too, which is no other than a schema's."""
    more = "\n".join(
        [
            f'char in_data[] = "data_{OTHER}";',
            f'const char *docs(void) {{ return "docs_{OTHER}"; }}',
            f'__attribute__((section(".note.mine,\\"\\",@progbits#"))) const char unloaded[] = "unloaded_{OTHER}";',
            f'__asm__(".ident \\"comment_{OTHER}\\"");',
            f'__asm__(".text\\n.asciz \\"code_{OTHER}\\"\\n.data\\n");',
        ]
    )
    path = build(tmp_path, [VOID], more=more, flags=("-g3",))
    data = path.read_bytes()
    assert all(f"{kind}_{OTHER}".encode() in data for kind in ("data", "docs", "unloaded", "comment", "code"))
    assert texts(path) == [VOID]


def test_what_torch_would_refuse_is_told(tmp_path: Path) -> None:
    prose = [f"expected {OTHER}", f"{OTHER} was expected", f"{OTHER}\n{OTHER}"]
    facts = reader.read(build(tmp_path, [*prose, f"\n  {VOID}"]))
    assert [found.text for found in facts.schemas] == [f"\n  {VOID}"]
    assert [(row.known, row.damaged) for row in facts.unread] == [(text, True) for text in prose]


def test_of_merged_tails_both_are_seen(tmp_path: Path) -> None:
    path = build(tmp_path, [f"eight___{OTHER}", OTHER], flags=("-O2",))
    assert path.read_bytes().count(OTHER.encode()) == 1
    assert texts(path) == sorted([f"eight___{OTHER}", OTHER])


@pytest.mark.parametrize("size", [0, 1, 4, 16, 63, 64, 65, 120, 1000, -4096, -64, -1])
def test_a_cut_file_is_refused(library: Path, tmp_path: Path, size: int) -> None:
    data = library.read_bytes()
    cut = copy(tmp_path / "cut.so", data[:size])
    with pytest.raises(ToolError, match=r"cut\.so: .*expected .*found"):
        reader.read(cut)


def patched(data: bytes, at: int, form: str, value: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(form, changed, at, value)
    return bytes(changed)


@pytest.mark.parametrize(
    ("at", "form", "value", "says"),
    [
        (4, "B", 1, "64-bit little-endian"),
        (5, "B", 2, "64-bit little-endian"),
        (6, "B", 0, "64-bit little-endian"),
        (16, "<H", 1, "shared object"),
        (18, "<H", 0, "known machine"),
        (18, "<H", 190, "known machine"),
        (32, "<Q", 0, "program header table"),
        (40, "<Q", 1 << 40, "section header table"),
        (40, "<Q", 0, "section header table"),
        (54, "<H", 55, "header sizes"),
        (56, "<H", 0, "program header table"),
        (58, "<H", 63, "section header table"),
        (60, "<H", 0, "section header table"),
        (60, "<H", 0xFFFF, "section header table"),
        (62, "<H", 0, "section header table"),
    ],
)
def test_a_damaged_header_is_refused(library: Path, tmp_path: Path, at: int, form: str, value: int, says: str) -> None:
    broken = copy(tmp_path / "x.so", patched(library.read_bytes(), at, form, value))
    with pytest.raises(ToolError, match=says) as caught:
        reader.read(broken)
    assert not isinstance(caught.value, reader.ForeignElf)


def test_other_machines_are_told_from_damage(tmp_path: Path) -> None:
    i386 = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 3, 3, 1, 0, 52, 0, 0, 52, 32, 0, 40, 0, 0)
    s390x = (
        b"\x7fELF\x02\x02\x01" + bytes(9) + struct.pack(">HHIQQQIHHHHHH", 3, 22, 1, 0, 64, 0, 0, 64, 56, 0, 64, 0, 0)
    )
    riscv = (
        b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 243, 1, 0, 64, 0, 0, 64, 56, 0, 64, 0, 0)
    )
    for data, says in ((i386, "32-bit little"), (s390x, "64-bit big"), (riscv, "RISC-V")):
        with pytest.raises(reader.ForeignElf, match=says):
            reader.read(copy(tmp_path / "x.so", data.ljust(64, b"\0")))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.so").mkdir()
    os.mkfifo(tmp_path / "pipe.so")
    for path, says in (("x.so", "not a regular file"), ("pipe.so", "not a regular file"), ("no.so", "No such file")):
        with pytest.raises(ToolError, match=says):
            reader.read(tmp_path / path)
    with pytest.raises(ToolError, match="begins with b'GROU'"):
        reader.read(copy(tmp_path / "text.so", b"GROUP ( libm.so.6 )"))


def test_an_unreadable_file_is_refused(library: Path, tmp_path: Path) -> None:
    path = copy(tmp_path / "x.so", library.read_bytes())
    path.chmod(0)
    done = nobody.run("from schema_patch.elf import reader as elf", f"elf.read({str(path)!r})", path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "ToolError" in done.stderr
    assert "Permission denied" in done.stderr


def test_reading_writes_nothing_and_imports_nothing_heavy(library: Path) -> None:
    code = (
        f"import sys; from schema_patch.elf import reader as elf; elf.read({str(library)!r}); "
        "assert not {'torch', 'zstandard', 'rich', 'tree_sitter'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
