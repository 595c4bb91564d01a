"""The formats of a report: JSON against its published schema, SARIF as code scanning takes it, the page in a browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import jsonschema
import pytest
from device_files import G21, library, zebin
from elf_files import ALIAS, OTHER, VOID, WRONG, build

from schema_patch.commands import console, main
from schema_patch.model import Checked, Finding, Location, Report, Severity, ToolError, Verdict
from schema_patch.report import sarif
from schema_patch.report import text as report
from schema_patch.report.html import html
from schema_patch.schemas import codes

SCHEMA = json.loads((resources.files("schema_patch.report") / "report.schema.json").read_text())
NASTY = Report(
    (
        Checked(
            "<b>op</b>",
            Location("a&b.so"),
            'x(Tensor "y") -> ()',
            Verdict.WRONG,
            "why </script><script>alert(1)</script>",
        ),
    ),
    (Finding("SP101", Location("dir/a b,c:%.cc", 3, 7), "op", "two\nlines, 100%: so", Severity.WARNING),),
    (ToolError("cannot be read", "q.so"), ToolError("no place")),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One library of every kind."""
    folder = tmp_path_factory.mktemp("formats")
    build(folder / "a", [WRONG, OTHER], needed=("libsycl.so.9",))
    shutil.rmtree(folder / "a" / "stubs")
    build(folder / "b", [ALIAS])
    build(folder / "c", [VOID])
    library(folder / "d", [zebin(["k"], G21)])
    (folder / "e.so").write_bytes(b"\x7fELF" + bytes(60))
    return folder


def run(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main.main_verify(list(words))
    return code, capsys.readouterr().out


@pytest.mark.parametrize("more", [[], ["--target", "bmg-g31"], ["--require", "no_such"], ["--against", "."]])
def test_json_is_as_its_schema_says(folder: Path, more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(folder), *more, "--format", "json"]
    code, out = run(*[w if w != "." else str(folder / "c") for w in words], capsys=capsys)
    document = json.loads(out)
    jsonschema.validate(document, SCHEMA)
    assert document["exit_code"] == code


def test_json_of_a_source_tree_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.cpp").write_text(f'TORCH_LIBRARY(esimd_ops, m) {{ m.def("{WRONG}"); m.def("no schema"); }}')
    assert main.main(["check", str(tmp_path), "--format", "json"]) == 1
    jsonschema.validate(json.loads(capsys.readouterr().out), SCHEMA)
    jsonschema.validate(json.loads(report.json(NASTY)), SCHEMA)
    for form in ("sarif", "html"):
        assert main.main(["check", str(tmp_path), "--format", form]) == 1
        assert "SP101" in capsys.readouterr().out


def test_the_schema_refuses_what_is_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run(str(folder), "--format", "json", capsys=capsys)[1])
    for change in ({"version": 2}, {"findings": [{}]}, {"more": 1}, {"exit_code": 3}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**document, **change}, SCHEMA)


def test_sarif_is_what_code_scanning_asks_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """GitHub's list: version, tool name, rules with text, results with rule, level, message and a region."""
    document = json.loads(run(str(folder), "--format", "sarif", "--target", "pvc", capsys=capsys)[1])
    assert document["version"] == "2.1.0"
    (only,) = document["runs"]
    rules = only["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted({result["ruleId"] for result in only["results"]})
    assert {"SP101", "SP201", "SP105", "SP205"} <= {rule["id"] for rule in rules}
    assert all(len(rule["shortDescription"]["text"]) > 20 for rule in rules)
    for result in only["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        (place,) = result["locations"]
        assert place["physicalLocation"]["region"]["startLine"] >= 1
        assert place["physicalLocation"]["artifactLocation"]["uri"].startswith(str(folder))
    prints = [result["partialFingerprints"]["finding/v1"] for result in only["results"]]
    assert len(set(prints)) == len(prints)
    (invocation,) = only["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["message"]["text"].startswith("not a whole ELF file")


def test_sarif_of_odd_paths() -> None:
    (result,) = json.loads(sarif.sarif(NASTY))["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "dir/a%20b%2Cc:%25.cc"}, "region": {"startLine": 3, "startColumn": 7}}


def test_services_are_told_names_within_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    build(tmp_path / "a", [WRONG])
    monkeypatch.chdir(tmp_path)
    assert run(".", "--github", capsys=capsys)[1].startswith("::error file=a/libx.so,")
    (result,) = json.loads(run(".", "--format", "sarif", capsys=capsys)[1])["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a/libx.so"


def test_every_code_has_its_text() -> None:
    known = codes.load()
    assert known["SP101"].text == "undeclared write: the operator writes, the schema says that it writes nothing"
    assert all(len(text) > 20 and not text.endswith((".", "(warning)", "(note)")) for text, _ in known.values())


def test_annotations_for_github(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.github(NASTY).split("\n") == [
        "::warning file=dir/a b%2Cc%3A%25.cc,line=3,col=7,title=SP101::op two%0Alines, 100%25: so",
        "::error file=q.so,line=1,col=1,title=not verified::cannot be read",
        "::error title=not verified::no place",
    ]
    code, out = run(str(folder), "--github", capsys=capsys)
    assert code == 2
    assert out.startswith(f"::error file={folder}/a/libx.so,line=1,col=1,title=SP201::expected to need libsycl.so.8")
    assert "4 operators:" in out


def test_a_report_in_a_file_and_text_on_the_terminal(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "r.sarif"
    code, out = run(str(folder / "c"), "--format", "sarif", "-o", str(target), capsys=capsys)
    assert code == 0
    assert json.loads(target.read_text())["version"] == "2.1.0"
    assert (
        out == "right: 1 operator, each declares what it writes\nno package: 1 library, 1 schema\n1 operator: 1 right\n"
    )


HEADLINES = {
    "wrong wrong right unknown": "affected: 2 of 3 operators write arguments that they do not declare",
    "wrong right": "affected: 1 of 2 operators writes arguments that it does not declare",
    "returns right": "affected: 1 of 2 operators does not say what it returns",
    "wrong error": "affected: 1 of 1 operator writes arguments that it does not declare; 1 thing could not be read or done",
    "right error": "not verified: 1 thing could not be read or done; of 1 operator that could be judged none is wrong",
    "right runtime": "not as it must be: 1 finding; of 1 operator that could be judged none is wrong",
    "guard right": "right, 1 of 2 operators under torch.compile with the guard alone",
    "right right": "right: 2 operators, each declares what it writes",
    "unknown": "nothing verified: 1 operator here, none in the operator table",
}
VERDICTS = {
    "wrong": Verdict.WRONG,
    "returns": Verdict.WRONG,
    "right": Verdict.RIGHT,
    "guard": Verdict.NEEDS_GUARD,
    "unknown": Verdict.UNKNOWN,
}
CODES = {"wrong": "SP101", "returns": "SP104", "runtime": "SP201"}


@pytest.mark.parametrize("words", HEADLINES)
def test_the_verdict_comes_first_in_one_sentence(words: str) -> None:
    from schema_patch.report import people

    place = Location("site/x.so")
    report = Report(
        tuple(Checked(f"op{n}", place, "op()", VERDICTS[w]) for n, w in enumerate(words.split()) if w in VERDICTS),
        tuple(
            Finding(CODES[w], place, f"op{n}" if w != "runtime" else "", w)
            for n, w in enumerate(words.split())
            if w in CODES
        ),
        tuple(ToolError("no", place) for w in words.split() if w == "error"),
    )
    assert people.headline(report) == HEADLINES[words]
    steps = list(people.steps(report, ["site packages"]))
    if "wrong" in words or "returns" in words:
        assert steps[0].startswith("next: schema-patch apply 'site packages' ")
    else:
        assert bool(steps) == (words in ("guard right", "unknown"))
    assert next(people.steps(report, ["a.whl"]), "").startswith("next: schema-patch apply --wheel-out DIR a.whl") == (
        "affected" in HEADLINES[words]
    )


def test_paths_are_told_once_and_on_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = [WRONG, "esimd_gemv_fp16(Tensor input, Tensor weight, Tensor output) -> Tensor"]
    library = build(
        tmp_path / "line\nbreak",
        wrong,
        more="void nobody(void); void f(void *l) { char b[9]; b[0] = (char)(long)l; b[1] = 0; aoti_torch_library_def(l, b); }",
    )
    code, out = run(str(library), capsys=capsys)
    assert code == 2  # a registration that nobody can read
    lines = out.splitlines()
    assert lines[0].startswith("affected: 2 of 2 operators write arguments that they do not declare")
    assert lines[1] == str(library).replace("\n", "\\n") + ":"
    assert [line[:15] for line in lines[2:4]] == ["  error: SP101 "] * 2
    assert sum("break" in line for line in lines) == 1


def test_the_page_stands_alone_and_escapes() -> None:
    page = html(NASTY, "a <title>")
    assert "<b>op</b>" not in page
    assert page.count("<script>") == 1
    assert not re.search(r"(?:src|href)\s*=|https?://|@import|url\(", page)
    assert "default-src 'none'" in page


@pytest.fixture(scope="module")
def browser() -> Iterator[list[str]]:
    """A headless browser; CI installs one, so that it is never missing there."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("CI must install chromium")
        pytest.skip("no chromium here")
    import tempfile

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        yield [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
               "--disable-dev-shm-usage", f"--user-data-dir={profile}", "--virtual-time-budget=2000"]  # fmt: skip


@pytest.mark.parametrize(
    ("fragment", "shown"),
    [
        ("", 12),
        ("q=rms_norm", 1),
        ("q=esimd+output", 7),
        ("kind=wrong", 1),
        ("q=GEMV&kind=error", 1),
        ("q=no+such+thing", 0),
    ],
)
def test_the_table_filters_in_a_real_browser(
    folder: Path, tmp_path: Path, browser: list[str], fragment: str, shown: int
) -> None:
    from schema_patch.verify import survey

    page = tmp_path / "r.html"
    page.write_text(html(survey.survey([str(folder)])))
    command = [*browser, "--dump-dom", f"{page.as_uri()}#{fragment}"]
    dom = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    body = dom.partition("<tbody>")[2].partition("</tbody>")[0]
    rows = re.findall(r"<tr ([^>]*)>", body)
    assert sum("hidden" not in row for row in rows) == shown
    assert re.findall(r'id="count">([^<]*)<', dom) == [f"{shown} of 12"]


def test_the_page_fits_a_telephone(folder: Path, tmp_path: Path, browser: list[str]) -> None:
    from schema_patch.verify import survey

    page = tmp_path / "r.html"
    told = "<script>document.title = `${innerWidth} ${document.documentElement.scrollWidth}`</script></body>"
    page.write_text(html(survey.survey([str(folder)])).replace("</body>", told))
    command = [*browser, "--window-size=390,900", "--dump-dom", page.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    inner, scrolled = map(int, re.findall(r"<title>(\d+) (\d+)</title>", dom)[0])
    assert scrolled <= inner <= 500


def test_the_page_is_painted(folder: Path, tmp_path: Path, browser: list[str]) -> None:
    from schema_patch.verify import survey

    page, picture = tmp_path / "r.html", tmp_path / "r.png"
    page.write_text(html(survey.survey([str(folder)])))
    command = [*browser, "--window-size=1200,900", f"--screenshot={picture}", page.as_uri()]
    subprocess.run(command, capture_output=True, check=True, timeout=120)
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 20_000  # an empty page of this size has 5,000


def test_progress_is_shown_on_a_terminal_after_a_second(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import time

    monkeypatch.setattr(console, "PATIENCE", 0.05)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with console.progress("reading") as step:
        step.expect(3)
        step("some/library.so")
        time.sleep(0.5)
    told = capsys.readouterr().err
    assert "reading" in told
    assert "1/3" in told
    monkeypatch.setattr(console, "PATIENCE", 60)
    with console.progress("reading") as step:
        step("quick.so")
    assert "quick" not in capsys.readouterr().err


def test_a_library_too_large_for_the_second_reader_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from schema_patch.elf import second

    library = build(tmp_path, [VOID])
    monkeypatch.setattr(second, "LARGEST", 100)
    assert main.main_verify([str(library)]) == 0
    assert "note: SP216 too large to be read a second time" in capsys.readouterr().out
