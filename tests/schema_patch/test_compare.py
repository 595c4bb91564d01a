"""What differs between two builds, and between a binary and its source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from device_files import G21, G31, library, zebin
from elf_files import ALIAS, OTHER, SPACE, VOID, WRONG, build

from schema_patch.commands import main
from schema_patch.model import Report, Severity
from schema_patch.verify import compare, gather
from schema_patch.verify.compare import word_diff


def compared(old: Path, new: Path, *expect: str) -> Report:
    sides = [gather.gather([str(path)], deep=True) for path in (new, old)]
    return compare.compare(sides[0].by_key(), sides[1].by_key(), expect=expect)


def test_only_the_schemas_differ(tmp_path: Path) -> None:
    build(tmp_path / "old" / "p", [WRONG, OTHER])
    build(tmp_path / "new" / "p", [ALIAS, OTHER])
    report = compared(tmp_path / "old", tmp_path / "new")
    (finding,) = report.findings
    assert (finding.code, finding.op, report.exit_code) == ("SP222", "esimd_gemv_int4", 1)
    assert finding.message.endswith("Tensor weight_scale, Tensor{+(a!)+} output) -> Tensor{+(a!)+}")
    assert compare.summary(report) == "1 libraries compared (not the host's code), 0 equal: only 1 schema differ"
    meant = compared(tmp_path / "old", tmp_path / "new", "schemas")
    assert (meant.exit_code, meant.findings[0].severity) == (0, Severity.NOTE)


def test_the_same_twice(tmp_path: Path) -> None:
    build(tmp_path / "p", [WRONG, OTHER])
    report = compared(tmp_path, tmp_path)
    assert (report.findings, report.exit_code) == ((), 0)
    assert compare.summary(report) == "1 libraries compared (not the host's code), 1 equal: nothing differs"


def test_no_registration_of_an_operator_hides_another(tmp_path: Path) -> None:
    build(tmp_path / "old" / "p", [WRONG, ALIAS])
    for texts in ([ALIAS], [WRONG]):
        build(tmp_path / "new" / "p", texts)
        assert [f.code for f in compared(tmp_path / "old", tmp_path / "new").findings] == ["SP222"]
        assert [f.code for f in compared(tmp_path / "new", tmp_path / "old").findings] == ["SP222"]


def test_operators_runtime_symbols_and_libraries(tmp_path: Path) -> None:
    build(tmp_path / "old", [VOID], needed=("libsycl.so.8",), more="int gone(void) { return 1; }")
    build(tmp_path / "old", [VOID], name="libonly.so")
    build(tmp_path / "new", [OTHER], needed=("libsycl.so.9",), flags=("-Wl,-rpath,$ORIGIN",))
    for stub in (*tmp_path.rglob("stubs/*"),):
        stub.unlink()
    report = compared(tmp_path / "old", tmp_path / "new")
    told = {finding.code: finding.message for finding in report.findings}
    assert [f.code for f in report.findings] == ["SP220", "SP221", "SP221", "SP224", "SP225"]
    assert told["SP220"] == "removed: libonly.so"
    assert told["SP221"].startswith(f"added {SPACE}::rms_norm: rms_norm(Tensor! out")
    assert told["SP224"] == "needs: added libsycl.so.9; removed libsycl.so.8; run path {+$ORIGIN+}"
    assert told["SP225"] == "exported symbols: removed gone"


def test_kernels_by_name_by_hash_and_by_target(tmp_path: Path) -> None:
    old = library(tmp_path / "old", [zebin(["same", "changed", "gone"], G21)])
    new = library(tmp_path / "new", [zebin(["same", "changed"], G21, body=b"new" * 20), zebin(["added"], G31)])
    report = compared(old, new)
    assert [f.code for f in report.findings] == ["SP223", "SP226"]
    assert report.findings[0].message == "targets: added 20.2.0"
    assert report.findings[1].message == "kernels: added added; removed gone; 2 with other code: changed, same"


def test_nothing_to_compare(tmp_path: Path) -> None:
    assert compared(tmp_path, tmp_path).exit_code == 2


@pytest.mark.parametrize(
    ("before", "after", "diff"),
    [
        ("a b", "a b", "a b"),
        ("Tensor x", "Tensor(a!) x", "Tensor{+(a!)+} x"),
        ("a b c", "a c", "a [-b -]c"),
        ("", "x", "{+x+}"),
    ],
)
def test_a_diff_of_words(before: str, after: str, diff: str) -> None:
    assert word_diff(before, after) == diff


SOURCE = '#include <torch/library.h>\nTORCH_LIBRARY({space}, m) {{\n  m.def("{text}");\n  m.def("only_source(Tensor x) -> Tensor");\n}}\n'


def test_the_source_proves_which_fix_is_in_the_binary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = build(tmp_path / "bin", [WRONG, OTHER])
    (tmp_path / "src").mkdir()
    file = tmp_path / "src" / "r.cpp"
    file.write_text(SOURCE.format(space=SPACE, text=ALIAS))
    assert main.main_verify([str(path), "--source", str(tmp_path / "src")]) == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if re.search("(error|warning): SP", line)]
    assert re.findall(r": (SP\d+) ", "\n".join(lines)) == ["SP101", "SP210", "SP212", "SP211"]
    assert lines[1].endswith("Tensor{+(a!)+} output) -> Tensor{+(a!)+}")
    assert f"{file}:3:" in lines[1]

    file.write_text(SOURCE.format(space=SPACE, text=WRONG).replace("only_source(Tensor x) -> Tensor", OTHER))
    main.main_verify([str(path), "--source", str(tmp_path / "src")])
    out = capsys.readouterr().out
    assert "SP21" not in out
    assert "2 other checks: 2 right" in out


def test_a_source_without_registrations_proves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = build(tmp_path, [VOID])
    (tmp_path / "src").mkdir()
    assert main.main_verify([str(path), "--source", str(tmp_path / "src")]) == 2
    assert "expected C++ that registers operators" in capsys.readouterr().err
