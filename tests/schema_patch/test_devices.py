"""Offload images: which kernels for which devices, however they are packed; and damage is told from what is unknown."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
import zstandard
from device_files import G21, G31, PVC, archive, generic_ir, library, spirv, zebin
from elf_files import VOID, registering, sstrip

from schema_patch.elf import reader, targets
from schema_patch.model import ToolError, Verdict
from schema_patch.verify import survey

KERNELS = ["_ZTS4gemv", "_ZTS4norm"]
FAT = archive(
    {
        "64.12.60.7": zebin(KERNELS, PVC),
        "64.bmg": zebin(KERNELS, G21),
        "64.20.1.0": zebin(KERNELS, G21),
        "generic_ir": generic_ir(KERNELS),
    }
)
WHOLE = {"12.60.7": 2, "20.1.0": 2, "SPIR-V": 2}


def found(path: Path) -> dict[str, int]:
    device = reader.read(path).device
    assert device.unread == ()
    return device.targets()


@pytest.mark.parametrize("section", ["OFFLOAD_DEVICE_CODE", "__CLANG_OFFLOAD_BUNDLE__sycl-spir64_gen"])
@pytest.mark.parametrize("table", [True, False])
@pytest.mark.parametrize("how", ["plain", "compressed", "half"])
def test_a_fat_image_is_read_in_every_packing(tmp_path: Path, section: str, table: bool, how: str) -> None:
    small = zstandard.compress(FAT)
    images = {"plain": [FAT, spirv(["_ZTS3one"])], "compressed": [small, zstandard.compress(spirv(["_ZTS3one"]))],
              "half": [small, spirv(["_ZTS3one"])]}[how]  # fmt: skip
    path = library(tmp_path, images, section=section, table=table)
    assert found(path) == {**WHOLE, "SPIR-V": 3}
    device = reader.read(path).device
    assert device.images == 2
    assert any(code.compressed for code in device.codes) == (how != "plain")
    assert device.kernels()["_ZTS3one"] == {"SPIR-V"}


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("compressed", [False, True])
def test_without_section_headers_they_are_found_too(tmp_path: Path, cut: bool, compressed: bool) -> None:
    path = library(tmp_path, [zstandard.compress(FAT) if compressed else FAT, zebin(["_ZTS3two"], G31), spirv(["s"])])
    before = reader.read(path).device
    sstrip(path, cut=cut)
    after = reader.read(path).device
    assert after.targets() == before.targets() == {"12.60.7": 2, "20.1.0": 2, "20.2.0": 1, "SPIR-V": 3}
    assert after.kernels() == before.kernels()


def test_a_frame_whose_size_is_not_stated_is_read(tmp_path: Path) -> None:
    packer = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compressobj()
    assert found(library(tmp_path, [packer.compress(FAT) + packer.flush()])) == WHOLE


def test_the_note_counts_and_not_the_name(tmp_path: Path) -> None:
    path = library(tmp_path, [archive({"64.bmg": zebin(["k"], G21)})])
    assert found(path) == {"20.1.0": 1}
    assert targets.lacking(reader.read(path).device.kernels(), "20.2") == ["k"]
    without = library(tmp_path / "2", [archive({"64.bmg": zebin(["k"], None), "64.20.2.0": zebin(["q"], None)})])
    assert found(without) == {"bmg": 1, "20.2.0": 1}
    assert targets.lacking(reader.read(without).device.kernels(), "20.2") == []
    assert targets.lacking(reader.read(without).device.kernels(), "20.1") == ["q"]


def test_kernels_are_hashed_when_asked(tmp_path: Path) -> None:
    one, two = (library(tmp_path / n, [zebin(["k"], G21, body=n.encode() * 9)]) for n in ("a", "b"))
    hashes = [reader.read(path, deep=True).device.codes[0].hashes for path in (one, two, one)]
    assert hashes[0] == hashes[2] != hashes[1]
    assert reader.read(one).device.codes[0].hashes == ()


@pytest.mark.parametrize(
    ("image", "says"),
    [
        (b"BC\xc0\xde" + bytes(60), "LLVM bitcode"),
        (b"CCOB" + bytes(60), "a compressed bundle of clang"),
        (b"INTC" + bytes(60), "begins with b'INTC"),
        (zebin(["k"], G21)[:18] + b"\xbe\0" + zebin(["k"], G21)[20:], "code for nvptx"),
    ],
)
def test_what_is_in_an_unknown_form_is_said(tmp_path: Path, image: bytes, says: str) -> None:
    path = library(tmp_path, [image, FAT])
    device = reader.read(path).device
    assert len(device.unread) == 1
    assert says in device.unread[0]
    assert device.targets() == WHOLE
    report = survey.survey([str(path)], devices=("pvc",))
    assert report.exit_code == 2
    assert "targets not verified" in report.errors[0].message


def test_the_report_names_each_kernel_and_its_targets(tmp_path: Path) -> None:
    path = library(tmp_path, [FAT])
    (told,) = survey.survey([str(path)]).facts["libraries"]  # type: ignore[attr-defined]
    found = reader.read(path).device.kernels()
    assert told["kernel_targets"] == {kernel: sorted(codes) for kernel, codes in found.items()}
    assert len(found) == told["kernels"] > 1


def test_bytes_that_belong_to_no_image_are_said(tmp_path: Path) -> None:
    path = library(tmp_path, [FAT, b"\xee" * 1000, b"\xee" * 100], table=False)
    (unread,) = reader.read(path).device.unread
    assert unread.startswith("1108 bytes of OFFLOAD_DEVICE_CODE that belong to no image")


def damaged(image: bytes, at: int, value: bytes) -> bytes:
    return image[:at] + value + image[at + len(value) :]


ZEBIN = zebin(KERNELS, G21)


@pytest.mark.parametrize(
    ("image", "says"),
    [
        (FAT[:-100], "to end at byte"),
        (damaged(FAT, 8 + 58, b"??"), "a member of a device archive"),
        (damaged(FAT, 8 + 48, b"9" * 10), "to end at byte"),
        (damaged(ZEBIN, 40, struct.pack("<Q", 1 << 40)), "sections of a device's ELF file"),
        (damaged(ZEBIN, 62, b"\xff\xff"), "sections of a device's ELF file"),
        (ZEBIN[:40], "header of a device's ELF file"),
        (damaged(ZEBIN, len(ZEBIN) - 64 * 2 + 24, struct.pack("<Q", 1 << 40)), "a device's section to end"),
        (damaged(spirv(KERNELS), 22, b"\0\0"), "an instruction of SPIR-V"),
        (spirv(KERNELS)[:50], "an instruction of SPIR-V"),
        (zstandard.compress(FAT)[:-30], "a whole frame of zstd"),
        (damaged(zstandard.compress(FAT), 40, b"\xff\xff\xff\xff"), "compressed with zstd"),
    ],
)
def test_a_damaged_image_is_an_error(tmp_path: Path, image: bytes, says: str) -> None:
    path = library(tmp_path, [image], table=True)
    with pytest.raises(ToolError, match=says):
        reader.read(path)


def test_a_target_is_judged_kernel_by_kernel(tmp_path: Path) -> None:
    """A kernel without code for a device is found beside others that have it; SPIR-V elsewhere is no help."""
    only_g21 = archive({"64.20.1.0": zebin(["_ZTS4lone"], G21)})
    path = library(tmp_path, [FAT, only_g21], more=registering([VOID]))
    for word, failing in (
        ("bmg-g21", 0),
        ("bmg_g21", 0),
        ("intel_gpu_bmg_g21", 0),
        ("bmg-g31", 1),
        ("bmg", 1),
        ("pvc", 1),
    ):
        report = survey.survey([str(path)], devices=(word,))
        assert [f.code for f in report.findings] == ["SP205"] * failing, word
        assert report.exit_code == failing
    assert "_ZTS4lone" in report.findings[0].message
    assert "1 of 3 kernels" in report.findings[0].message
    rows = [row for row in report.checked if not row.schema]
    assert [(row.op, row.verdict) for row in rows] == [("pvc", Verdict.WRONG)]


def test_a_target_that_nothing_can_be_said_of(tmp_path: Path) -> None:
    path = library(tmp_path, [])
    assert survey.survey([str(path)], devices=("bmg-g31",)).exit_code == 2
    with pytest.raises(ToolError, match=r"found 'bgm-g31'; did you mean bmg-g31\?"):
        targets.wanted("bgm-g31")


@pytest.mark.parametrize(
    ("word", "means"),
    [("bmg-g31", {"20.2": "bmg-g31"}), ("BMG_G21", {"20.1": "bmg-g21"}), ("20.2.0", {"20.2": "bmg-g31"}),
     ("intel_gpu_20_1_4", {"20.1": "bmg-g21"}), ("bmg-g21-a0", {"20.1": "bmg-g21"}),
     ("bmg", {"20.1": "bmg-g21", "20.2": "bmg-g31"}), ("99.9", {"99.9": "99.9"})],
)  # fmt: skip
def test_names_of_devices(word: str, means: dict[str, str]) -> None:
    assert targets.wanted(word) == means


def test_device_code_in_words() -> None:
    assert targets.summary({"20.1.0": 2, "SPIR-V": 2}) == "bmg-g21 (20.1.0), SPIR-V: 2 kernels each"
    assert targets.summary({"20.1.0": 1, "SPIR-V": 2}) == "bmg-g21 (20.1.0): 1 kernels, SPIR-V: 2 kernels"


def test_an_archive_that_is_no_image_is_no_device_code(tmp_path: Path) -> None:
    """A linker has the beginnings of archives and ELF files among its strings."""
    more = r'const char s[] = "!<arch>\n\0\x7f" "ELF\2\1\1\0 \3\2#\7 \x28\xb5\x2f\xfd and more text behind all that";'
    path = library(tmp_path, [], more=more, table=False)
    sstrip(path)
    assert reader.read(path).device.images == 0
