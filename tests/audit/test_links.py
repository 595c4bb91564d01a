"""Each finding leads to a page that exists: in text, in SARIF, for the commands that judge."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import trees

import schema_patch
from schema_patch.commands import main
from schema_patch.model import Finding, Location, Report
from schema_patch.report import sarif
from schema_patch.schemas import codes

ROOT = Path(__file__).parents[2]
LIES = "at::Tensor op(at::Tensor a, at::Tensor b) { b.copy_(a); return b; }"
KNOWN = """#include <torch/library.h>
TORCH_LIBRARY(custom_esimd_kernels_vllm, m) {
  m.def("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor");
}
"""


def told(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([A-Z]{2}\d{3}): (.+)$", text, re.MULTILINE))


def expected(code: str) -> str:
    """A checkout names the page, which is there; the kit as it is installed has none and says what the code means."""
    page = ROOT / f"docs/codes/{code}.md"
    assert page.is_file()
    if not Path(schema_patch.__file__).is_relative_to(ROOT):
        return codes.load()[code].text
    return f"see {page.relative_to(Path.cwd()) if page.is_relative_to(Path.cwd()) else page}"


@pytest.mark.parametrize("command", [["audit", "--no-cache"], ["check"]])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_text_names_the_page_of_each_code_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    elsewhere: bool,
) -> None:
    if elsewhere:
        monkeypatch.chdir(tmp_path)
    (tmp_path / "op.cpp").write_text(KNOWN if command == ["check"] else trees.source(LIES, returns="Tensor"))
    assert main.main([*command, "--strict", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    found = set(re.findall(r": (?:error|warning): ([A-Z]{2}\d{3})", shown.out))
    assert found
    assert told(shown.err) == {code: expected(code) for code in found}


def test_nothing_is_linked_where_nothing_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "op.cpp").write_text(
        trees.source("void op(at::Tensor a, at::Tensor b) { b.copy_(a); }", "Tensor a, Tensor! b")
    )
    assert main.main(["audit", "--no-cache", str(tmp_path)]) == 0
    assert told(capsys.readouterr().err) == {}


def test_sarif_rules_say_what_they_are_and_where_it_is_told() -> None:
    findings = tuple(Finding(code, Location("a.cpp", 1, 1), "op", "so") for code in codes.load())
    document = json.loads(sarif.sarif(Report(findings=findings)))
    rules = document["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted(codes.load())
    for rule in rules:
        assert rule["shortDescription"]["text"] == codes.load()[rule["id"]].text
        assert re.fullmatch(r"\S.*[^.]\.", rule["fullDescription"]["text"])
        assert rule["defaultConfiguration"]["level"] == codes.load()[rule["id"]].level
        (page,) = re.findall(r"docs/codes/\w+\.md", rule["help"]["text"])
        assert (ROOT / page).read_text().startswith(f"# {rule['id']}: ")
        assert "helpUri" not in rule  # must be absolute (SARIF 2.1.0, 3.49.12), and the project has no address
