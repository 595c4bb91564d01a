"""What an installed library must say: verdicts, the runtime, required operators, and when nothing was verified."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from elf_files import ALIAS, OTHER, SPACE, VOID, WRONG, build

from schema_patch.elf.reader import ElfFacts, FoundSchema, Named
from schema_patch.installed import packages, policy
from schema_patch.model import Report, Severity, ToolError, Verdict
from schema_patch.schemas import table
from schema_patch.schemas.grammar import parse
from schema_patch.verify import judge, survey

OP = "esimd_gemv_int4"


def facts(*texts: str, path: str = "x.so", needed: tuple[str, ...] = ()) -> ElfFacts:
    found = tuple(FoundSchema(text, parse(text), "custom_esimd_kernels_vllm") for text in texts)
    return ElfFacts(path, "x86-64", 1, needed, "", False, found)


def check(*libraries: ElfFacts, require: tuple[str, ...] = ()) -> Report:
    return judge.check(libraries, table.load(), require=require, sycl="8")


def codes(report: Report) -> list[str]:
    return [finding.code for finding in report.findings]


@pytest.mark.parametrize(
    ("text", "verdict", "found", "exit_code"),
    [
        (VOID, Verdict.RIGHT, [], 0),
        (ALIAS, Verdict.NEEDS_GUARD, ["SP105"], 0),
        (WRONG, Verdict.WRONG, ["SP101"], 1),
        (VOID.replace("Tensor input", "Tensor(b!) input"), Verdict.OVER_DECLARED, ["SP106"], 0),
        (OTHER, Verdict.UNKNOWN, [], 2),
        (VOID.replace("Tensor weight,", "ensor weight,"), Verdict.UNKNOWN, [], 2),
        (ALIAS.replace("-> Tensor", "-> tensor"), Verdict.UNKNOWN, [], 2),
    ],
)
def test_each_schema_is_judged(text: str, verdict: Verdict, found: list[str], exit_code: int) -> None:
    report = check(facts(text))
    assert [row.verdict for row in report.checked] == [verdict]
    assert [row.schema for row in report.checked] == [text]
    assert codes(report) == found
    assert report.exit_code == exit_code


def test_a_finding_names_library_operator_argument_and_schema() -> None:
    (finding,) = check(facts(WRONG, path="pkg/_C.so")).findings
    assert (str(finding.location), finding.op, finding.severity) == ("pkg/_C.so", OP, Severity.ERROR)
    assert "'output'" in finding.message
    assert WRONG in finding.message


@pytest.mark.parametrize(
    ("needed", "found"),
    [
        ((), []),
        (("libc.so.6", "libsycl.so.8"), []),
        (("libsycl.so.9", "libc.so.6"), ["SP201"]),
        (("libsycl.so",), ["SP201"]),
        (("libsycl-preview.so.7",), ["SP201"]),
        (("libsyclutil.so.9",), []),
    ],
)
def test_the_runtime_is_held_against_the_policy(needed: tuple[str, ...], found: list[str]) -> None:
    assert codes(check(facts(VOID, needed=needed))) == found


def test_a_required_operator_must_be_there_and_right() -> None:
    for good in (VOID, ALIAS):
        for name in (OP, f"custom_esimd_kernels_vllm::{OP}"):
            report = check(facts(good), facts(OTHER), require=(name,))
            assert not report.failed
            assert report.exit_code == 0
    for bad in (WRONG, VOID.replace("input", "inputs"), VOID.replace("Tensor input", "Tensor(b!) input")):
        report = check(facts(bad), require=(OP,))
        assert codes(report)[-1] == "SP203"
        assert report.exit_code == 1
    assert codes(check(facts(VOID), facts(WRONG), require=(OP,))) == ["SP101", "SP204", "SP203"]


def test_a_missing_operator_is_named_with_what_is_near() -> None:
    report = check(facts(VOID), require=("esimd_gemv_int5", "no_such"))
    assert codes(report) == ["SP202", "SP202"]
    assert "did you mean esimd_gemv_int4?" in report.findings[0].message
    assert "did you mean" not in report.findings[1].message
    elsewhere = check(facts(VOID), require=(f"yours::{OP}",)).findings[0]
    assert (elsewhere.code, "it is in namespace custom_esimd_kernels_vllm" in elsewhere.message) == ("SP202", True)
    other_space = check(facts(f"mine::{VOID}"), require=(f"yours::{OP}",))
    assert codes(other_space) == ["SP202"]


def test_without_a_namespace_one_that_is_required_is_not_met() -> None:
    found = (FoundSchema(VOID, parse(VOID)),)
    library = ElfFacts("x.so", "x86-64", 1, (), "", True, found)
    assert check(library, require=(OP,)).exit_code == 0
    report = check(library, require=(f"custom_esimd_kernels_vllm::{OP}",))
    assert (codes(report), report.exit_code) == (["SP203"], 1)


def test_an_operator_without_a_schema_declares_nothing() -> None:
    named = ElfFacts("x.so", "x86-64", 1, (), "", False, (), named=(Named(OP, "custom_esimd_kernels_vllm"),))
    assert (codes(check(named)), check(named).exit_code) == (["SP101"], 1)
    assert codes(check(named, require=(OP,))) == ["SP101", "SP203"]
    other = ElfFacts("x.so", "x86-64", 1, (), "", False, (), named=(Named(OP, "mine"), Named("other")))
    assert [row.verdict for row in check(other).checked] == [Verdict.UNKNOWN] * 2


def test_two_schemas_of_one_operator_are_a_warning() -> None:
    report = check(facts(VOID, path="new.so"), facts(ALIAS, path="old.so"), facts(OTHER), facts(OTHER + " "))
    assert [(f.code, f.severity, str(f.location)) for f in report.findings if f.code == "SP204"] == [
        ("SP204", Severity.WARNING, "old.so")
    ]
    assert "new.so" in report.findings[-1].message
    assert report.exit_code == 0
    assert codes(check(facts(VOID), facts(VOID))) == []


def test_nothing_found_is_nothing_verified(tmp_path: Path) -> None:
    assert survey.survey([str(tmp_path)]).exit_code == 2
    assert survey.survey([str(tmp_path)], require=(OP,)).exit_code == 2
    build(tmp_path, more='const char *text = "no schema";')
    report = survey.survey([str(tmp_path)])
    assert (report.exit_code, report.facts["others_read"]) == (2, 1)
    assert codes(survey.survey([str(tmp_path)], require=(OP,))) == ["SP202"]


def test_files_are_read_and_what_cannot_be_read_stops_nothing(tmp_path: Path) -> None:
    good = build(tmp_path / "a", [WRONG, OTHER], needed=("libsycl.so.9",))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "cut.so").write_bytes(good.read_bytes()[:-1])
    (tmp_path / "a" / "stubs" / "libsycl.so.9").unlink()
    heard: list[str] = []
    report = survey.survey([str(tmp_path / "none"), str(tmp_path), str(good)], progress=heard.append)
    assert heard == [str(good), str(tmp_path / "b" / "cut.so")]
    assert codes(report) == ["SP201", "SP101"]
    assert [type(error) for error in report.errors] == [ToolError, ToolError]
    assert report.exit_code == 2
    assert codes(survey.survey([str(good)], sycl="9")) == ["SP101"]
    (library,) = report.facts["libraries"]  # type: ignore[attr-defined]
    assert (library["path"], library["sycl"], library["schemas"]) == (str(good), "9", 2)


def test_the_runtime_that_torch_needs_is_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch beside the library, else the one that is installed, else the origin library's."""
    said = {}
    for needed in ("libsycl.so.8", "libsycl.so.9"):
        build(tmp_path / "alone", [VOID], needed=(needed,), name=f"{needed}-user.so")
    build(tmp_path / "with" / "torch/lib", name="libc10_xpu.so", needed=("libsycl.so.9",))
    (tmp_path / "with" / "torch/__init__.py").touch()
    shutil.copytree(tmp_path / "alone", tmp_path / "with" / "mylib")
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    for installed in (tmp_path / "no torch", tmp_path / "with"):
        monkeypatch.syspath_prepend(installed)
        for asked in ("alone", "with"):
            report = survey.survey([str(tmp_path / asked)])
            (found,) = [f for f in report.findings if f.code == "SP201"]
            said[installed.name, asked] = found.message.partition(";")[0]
    of_torch = f"expected to need libsycl.so.9 as {tmp_path}/with/torch/lib/libc10_xpu.so does, needs libsycl.so.8"
    assert said == {
        ("no torch", "alone"): "expected to need libsycl.so.8 as the origin library does, needs libsycl.so.9",
        ("no torch", "with"): of_torch,
        ("with", "alone"): of_torch,
        ("with", "with"): of_torch,
    }


def test_the_platforms_own_packages_are_passed_over_unless_they_name_our_namespace(tmp_path: Path) -> None:
    for name, space in (("torch", "aten"), ("intel_esimd_kernels", SPACE), ("mine", "aten")):
        build(tmp_path / name, [WRONG], space=space)
        record = tmp_path / f"{name}-1.0.dist-info" / "RECORD"
        record.parent.mkdir()
        record.write_text(f"{name}/libx.so,,\n")
    report = survey.survey([str(tmp_path)])
    assert [str(row.location) for row in report.checked] == [
        str(tmp_path / "intel_esimd_kernels" / "libx.so"), str(tmp_path / "mine" / "libx.so"),
    ]  # fmt: skip
    assert report.exit_code == 1
    (skipped,) = report.facts["skipped"]  # type: ignore[attr-defined]
    assert (skipped["what"], skipped["files"]) == ("torch 1.0", 1)
    assert len(survey.survey([str(tmp_path)], include_all=True).checked) == 3
    assert len(survey.survey([str(tmp_path / "torch" / "libx.so")]).checked) == 1  # asked for by name
    asked = survey.survey([str(tmp_path)], require=("aten::op",))
    assert len(asked.checked) == 3


def test_a_helper_for_another_machine_is_passed_over_unless_asked_for(tmp_path: Path) -> None:
    build(tmp_path, [VOID])
    other = bytearray((tmp_path / "libx.so").read_bytes())
    other[18] = 243
    path = tmp_path / "attach_riscv.so"
    path.write_bytes(other)
    report = survey.survey([str(tmp_path)])
    assert report.exit_code == 0
    assert [row["what"] for row in report.facts["skipped"]] == [str(path)]  # type: ignore[attr-defined]
    assert survey.survey([str(path)]).exit_code == 2


def test_the_policy_knows_its_distributions() -> None:
    known = policy.load()
    for name in ("torch", "nvidia-cublas-cu12", "intel-sycl-rt", "numpy", "pytorch-triton-xpu"):
        assert known.passes_over(name), name
    for name in ("vllm-xpu-kernels", "custom-esimd-kernels-vllm", "torch-something"):
        assert not known.passes_over(name), name
    assert packages.Owner("torch", "2") != packages.Owner("torch", "3")
