"""What must never be believed: damage without --require, packers, sections that nobody loads; and what stays readable."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from elf_files import ALIAS, OTHER, SPACE, VOID, WRONG, build, sstrip

from schema_patch.elf import reader
from schema_patch.elf.reader import ElfFacts, FoundSchema, Unread
from schema_patch.model import Report, ToolError
from schema_patch.schemas import table
from schema_patch.schemas.grammar import parse
from schema_patch.verify import judge, survey

NORM = "esimd_rms_norm(Tensor input, Tensor(a!) output, Tensor weight, float eps) -> ()"


def flipped(path: Path, text: str, at: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[data.index(text.encode()) + at] ^= 1 << bit
    path.write_bytes(data)


@pytest.mark.parametrize("stripped", [False, True])
def test_no_turned_bit_goes_unnoticed_beside_another_operator(tmp_path: Path, stripped: bool) -> None:
    """Nothing is required here: the other operator alone would verify."""
    path = build(tmp_path, [VOID, NORM])
    if stripped:
        sstrip(path, cut=True)
    whole = path.read_bytes()
    clean = set()
    for at in range(len(VOID)):
        for bit in range(8):
            path.write_bytes(whole)
            flipped(path, VOID, at, bit)
            report = survey.survey([str(path)])
            if report.exit_code == 0 and not report.findings:
                clean.add(path.read_bytes()[whole.index(VOID.encode()) :][: len(VOID)].decode())
    assert all(text.replace(text[VOID.index("a!")] + "!", "a!", 1) == VOID for text in clean), clean


def unread(*found: Unread, require: tuple[str, ...] = ()) -> Report:
    facts = ElfFacts("x.so", "x86-64", 1, (), "", False, (FoundSchema(NORM, parse(NORM), SPACE),), unread=found)
    return judge.check([facts], table.load(), sycl="8", require=require)


@pytest.mark.parametrize(
    "found",
    [
        Unread("init", SPACE),
        Unread("init", SPACE, "esimd_gemv_int4(Tensor input, Te", "why"),
        Unread("init", "", "esimd_gemv_int4("),
        Unread("init", SPACE, VOID.replace("->", "-."), damaged=True),
        Unread("init"),
    ],
)
def test_a_library_that_registers_what_is_not_known_is_never_right(found: Unread) -> None:
    report = unread(found)
    assert (report.exit_code, len(report.errors)) == (2, 1)
    assert "init registers in" in report.errors[0].message
    assert (found.namespace or "not known") in report.errors[0].message
    required = unread(found, require=("esimd_rms_norm",))
    assert (required.exit_code, [finding.code for finding in required.findings]) == (1, ["SP214"])


def test_what_another_namespace_registers_is_none_of_our_business() -> None:
    assert unread(Unread("init", "other")).exit_code == 0
    assert unread(Unread("init", "other"), require=("other::op",)).exit_code == 1


def test_a_section_more_changes_nothing(tmp_path: Path) -> None:
    path = build(tmp_path, [VOID])
    (tmp_path / "note").write_text(WRONG)
    flags = ["--add-section", f".mine={tmp_path / 'note'}", "--set-section-flags", ".mine=alloc,readonly"]
    subprocess.run(["objcopy", *flags, path], check=True, capture_output=True)
    assert WRONG.encode() in path.read_bytes()
    assert survey.survey([str(path)]).exit_code == 0


def test_strings_of_debug_information_do_not_count(tmp_path: Path) -> None:
    more = f'enum {{ debug_only }}; /* */ typedef int {OTHER.split("(")[0]}_t; __asm__(".section .debug_str,\\"MS\\",@progbits,1\\n.string \\"{WRONG}\\"\\n.text");'
    path = build(tmp_path, [VOID], more=more, flags=("-g3",))
    assert WRONG.encode() in path.read_bytes()
    assert [s.text for s in reader.read(path).schemas] == [VOID]
    assert survey.survey([str(path)]).exit_code == 0


@pytest.mark.skipif(not shutil.which("upx"), reason="no upx here")
def test_a_packed_library_cannot_be_verified(tmp_path: Path) -> None:
    path = build(tmp_path, [ALIAS], more="int big[20000] = {1}; void _init(void) {}", flags=("-nostartfiles",))
    subprocess.run(["upx", "-q", path], check=True, capture_output=True)
    with pytest.raises(ToolError, match="packed by UPX"):
        reader.read(path)


def test_a_packers_mark_is_enough(tmp_path: Path) -> None:
    path = build(tmp_path, [VOID])
    sstrip(path)
    data = bytearray(path.read_bytes())
    at = data.index(b"GNU\0")
    data[at : at + 4] = b"UPX!"
    path.write_bytes(data)
    with pytest.raises(ToolError, match="packed by UPX"):
        reader.read(path)


def test_what_was_not_looked_into_is_said(tmp_path: Path) -> None:
    build(tmp_path / "a", [VOID], space="aten")
    (tmp_path / "torch").mkdir()
    shutil.copy(tmp_path / "a" / "libx.so", tmp_path / "torch" / "libtorch.so")
    (tmp_path / "torch-2.0.dist-info").mkdir()
    (tmp_path / "torch-2.0.dist-info" / "RECORD").write_text("torch/libtorch.so,,\n")
    facts = survey.survey([str(tmp_path)]).facts
    assert [row["what"] for row in facts["skipped"]] == ["torch 2.0"]  # type: ignore[attr-defined]
