"""The pages on codes: one for each code that a tool of the kit prints, each with its parts, and the table of them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from schema_patch.schemas import codes

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "codes"
PARTS = ["## Why it hurts", "## Wrong", "## Right"]
PRINTED = re.compile(r'"([A-Z]{2}\d{3})"')


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_table", FOLDER / "make_table.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_code_has_its_page_and_no_page_is_left_over() -> None:
    assert {page.stem for page in FOLDER.glob("*.md")} - {"README"} == set(codes.load())


def test_each_code_that_is_printed_is_documented() -> None:
    packages = ("schema_patch", "esimd_ops", "esimd_soak")
    sources = [file.read_text("utf-8") for package in packages for file in (ROOT / package).rglob("*.py")]
    assert {code for text in sources for code in PRINTED.findall(text)} == set(codes.load())


def test_each_page_has_its_parts() -> None:
    for page in FOLDER.glob("[A-Z][A-Z]*[0-9].md"):
        text = page.read_text()
        assert text.startswith(f"# {page.stem}: ")
        assert re.findall(r"^## .*", text, re.MULTILINE) == PARTS, page
        for part in re.split(r"^## .*\n", text, flags=re.MULTILINE):
            assert len(part.strip()) > 20, page
        wrong, right = re.findall(r"^```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[:2]
        assert wrong != right, page


def test_the_table_is_what_its_script_prints(script: ModuleType) -> None:
    assert (FOLDER / "README.md").read_text() == script.table()
