"""README and docs: what they name exists, and README stays one that is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_readme_is_short_and_keeps_its_limits() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 150
    plain = " ".join(text.split())
    assert "Right schemas remove a proven hazard and are not shown to cure the corruption" in plain
    assert "Nothing was run on an Intel GPU" in plain


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_can_be_found_from_readme() -> None:
    seen, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page.suffix == ".md" and page not in seen and page.exists():
            seen.add(page)
            links = re.findall(r"[\w./-]+\.md\b", page.read_text("utf-8"))
            todo += [target for link in links for target in ((page.parent / link).resolve(), ROOT / link)]
    assert {page for page in PAGES if page not in seen} == set()
