"""The pages on codes: one for each code of audit and patch, each with its parts, and the table that leads to them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from schema_patch import sarif

FOLDER = Path(__file__).parents[2] / "docs" / "codes"
PARTS = ["## Why it hurts", "## Wrong", "## Right"]


def test_each_code_of_a_schema_has_its_page_and_no_page_is_left_over() -> None:
    wanted = {code for code in sarif.rules() if code < "SP200"}
    assert {page.stem for page in FOLDER.glob("SP[01]*.md")} == wanted
    assert {page.stem for page in FOLDER.glob("SP*.md")} <= set(sarif.rules())


def test_each_page_has_its_parts() -> None:
    for page in FOLDER.glob("SP*.md"):
        text = page.read_text()
        assert text.startswith(f"# {page.stem}: ")
        assert re.findall(r"^## .*", text, re.MULTILINE) == PARTS, page


def test_the_table_is_what_its_script_prints() -> None:
    spec = importlib.util.spec_from_file_location("make_table", FOLDER / "make_table.py")
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert (FOLDER / "README.md").read_text() == script.table()
