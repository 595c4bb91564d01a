"""vllm-xpu-kernels as published: what is read out of it equals a plain scan of its bytes with torch's own parser."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import torch
from elftools.elf.elffile import ELFFile
from wheels import fetch

from schema_patch.elf import reader
from schema_patch.model import Report, Verdict
from schema_patch.verify import survey

pytestmark = pytest.mark.real

# The release that links libsycl.so.9, and one that links libsycl.so.8.
PUBLISHED = {
    "0.1.13.1": ("9", 11, {"_C": 46, "_moe_C": 12, "_vllm_fa2_C": 1, "_xpu_C": 38}),
    "0.1.3.1": ("8", 8, {"_C": 21, "_moe_C": 10, "_vllm_fa2_C": 1, "_xpu_C": 12}),
}
# The text of an assertion in oneDNN, which torch's grammar takes for a schema: a class name as the return type.
NO_SCHEMA = {"desc()->c_desc.ndims"}


@pytest.fixture(scope="module", params=PUBLISHED)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def wheel(release: str) -> Path:
    return fetch(f"vllm-xpu-kernels=={release}")


@pytest.fixture(scope="module")
def report(wheel: Path) -> Report:
    return survey.survey([str(wheel)])


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def libraries(unpacked: Path) -> dict[Path, reader.ElfFacts]:
    return {path: reader.read(path) for path in sorted(unpacked.rglob("*.so"))}


def parses(text: str) -> bool:
    try:
        torch._C.parse_schema(text)
    except RuntimeError:
        return False
    return True


def scan(path: Path) -> tuple[set[str], list[str]]:
    """The schemas and the needed libraries, by pyelftools, bytes.split and torch."""
    found: set[str] = set()
    with path.open("rb") as file:
        library = ELFFile(file)  # type: ignore[no-untyped-call]
        for section in library.iter_sections():  # type: ignore[no-untyped-call]
            flags = section["sh_flags"]
            device_code = "OFFLOAD" in section.name  # up to 140 MB, no text of the host
            if section["sh_type"] == "SHT_PROGBITS" and flags & 2 and not flags & 5 and not device_code:
                pieces = (piece for piece in section.data().split(b"\0") if b"->" in piece and piece.isascii())
                found |= {piece.decode() for piece in pieces if parses(piece.decode())}
        needed = [tag.needed for tag in library.get_section_by_name(".dynamic").iter_tags("DT_NEEDED")]  # type: ignore[no-untyped-call]
    return found - NO_SCHEMA, needed


def test_the_runtime_mismatch_is_reported_on_the_release_that_has_it(release: str, report: Report) -> None:
    major, libraries, _ = PUBLISHED[release]
    assert report.errors == ()
    assert len(report.facts["libraries"]) == libraries  # type: ignore[arg-type]
    assert {library["sycl"] for library in report.facts["libraries"]} == {major}  # type: ignore[attr-defined]
    assert [finding.code for finding in report.findings] == ["SP201"] * (libraries if major == "9" else 0)
    assert report.exit_code == (1 if major == "9" else 2)  # none of its operators is in the table


def test_every_schema_is_listed_as_unknown(release: str, report: Report) -> None:
    counts = dict.fromkeys(PUBLISHED[release][2], 0)
    for row in report.checked:
        assert row.verdict is Verdict.UNKNOWN
        counts[Path(row.location.path).name.removesuffix(".abi3.so")] += 1
    assert counts == PUBLISHED[release][2]


def test_a_plain_scan_finds_the_same(libraries: dict[Path, reader.ElfFacts], report: Report) -> None:
    for path, facts in libraries.items():
        schemas, needed = scan(path)
        texts = {found.text for found in facts.schemas}
        # Two texts of an assertion read like schemas, and are given to no registration.
        assert schemas - texts <= {"desc()->a_desc", "desc()->b_desc"}, path.name
        assert texts <= schemas, path.name
        assert list(facts.needed) == needed, path.name
        in_wheel = {row.schema for row in report.checked if Path(row.location.path).name == path.name}
        assert in_wheel == texts, path.name


def test_unpacked_it_says_the_same_and_the_right_major_silences_it(
    release: str, unpacked: Path, report: Report
) -> None:
    again = survey.survey([str(unpacked)], sycl=PUBLISHED[release][0])
    assert not again.findings
    assert sorted(row.schema for row in again.checked) == sorted(row.schema for row in report.checked)
    owners = {library["owner"] for library in again.facts["libraries"]}  # type: ignore[attr-defined]
    assert owners == {f"vllm-xpu-kernels {release}"}


def test_a_cut_library_in_the_installation_is_an_error(unpacked: Path, tmp_path: Path) -> None:
    data = (unpacked / "vllm_xpu_kernels" / "_C.abi3.so").read_bytes()
    for size in (64, len(data) // 2, len(data) - 1):
        (tmp_path / "_C.abi3.so").write_bytes(data[:size])
        report = survey.survey([str(tmp_path)])
        assert (report.exit_code, len(report.errors), report.checked) == (2, 1, ())


def test_the_kernels_are_those_that_the_linker_lists(libraries: dict[Path, reader.ElfFacts]) -> None:
    """`.tgtsym`, which the loader never sees, names what each image has: an independent list."""
    devices = 0
    for path, facts in libraries.items():
        with path.open("rb") as file:
            section = ELFFile(file).get_section_by_name(".tgtsym")  # type: ignore[no-untyped-call]
            names = section.data().split(b"\0") if section else []
        native = {name.partition(b".")[2].decode() for name in names if name.startswith(b"sycl-spir64_gen")}
        spirv = {name.partition(b".")[2].decode() for name in names if name.startswith(b"sycl-spir64-")}
        assert facts.device.unread == (), path
        kernels = facts.device.kernels()
        compiled = {kernel for kernel, codes in kernels.items() if codes - {"SPIR-V"}}
        assert compiled <= native, path
        # An image without kernels of its own exports functions, which the linker lists and nobody launches.
        assert set(kernels) <= native | spirv, path
        devices += bool(compiled)
    assert devices >= 7


def test_each_target_of_the_wheel_is_met(release: str, wheel: Path) -> None:
    words = ("pvc", "bmg-g21", "bmg-g31", "bmg", "lnl-m")  # lnl-m: by SPIR-V
    report = survey.survey([str(wheel)], sycl=PUBLISHED[release][0], devices=words)
    assert report.exit_code == 0
    rows = [row for row in report.checked if row.op == "lnl-m"]
    assert rows
    assert all(row.reason.startswith("0 of ") for row in rows)


def test_a_release_against_itself_and_the_other(release: str, wheel: Path, unpacked: Path) -> None:
    from schema_patch.verify import compare, gather

    ours, theirs = (gather.gather([str(path)], deep=True).by_key() for path in (wheel, unpacked))
    report = compare.compare(ours, theirs)
    assert (report.findings, report.facts["equal"]) == ((), PUBLISHED[release][1])
