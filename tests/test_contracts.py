"""Rules of the house that a test can keep."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = [
    path for name in ("schema_patch", "esimd_ops", "esimd_soak") for path in sorted((ROOT / name).rglob("*.py"))
]


def test_no_room_is_too_large() -> None:
    assert len(PACKAGES) > 20
    assert [str(p) for p in PACKAGES if len(p.read_text().splitlines()) > 400] == []


def test_every_module_says_what_it_knows() -> None:
    assert [str(p) for p in PACKAGES if not ast.get_docstring(ast.parse(p.read_text()))] == []


def test_only_the_command_line_prints_and_nobody_catches_everything() -> None:
    for path in PACKAGES:
        for node in ast.walk(ast.parse(path.read_text())):
            if path.parent.name == "schema_patch" and path.name != "cli.py" and isinstance(node, ast.Call):
                assert getattr(node.func, "id", "") != "print", path
            if isinstance(node, ast.ExceptHandler):
                assert node.type is not None, path
                assert getattr(node.type, "id", "") not in ("Exception", "BaseException"), path


def test_every_code_is_documented_once() -> None:
    documented: list[str] = []
    used: set[str] = set()
    for path in (ROOT / "schema_patch").rglob("*.py"):
        text = path.read_text()
        doc = ast.get_docstring(ast.parse(text)) or ""
        documented += re.findall(r"^ *(SP\d{3})\b", doc, re.MULTILINE)
        used |= set(re.findall(r'"(SP\d{3})"', text))
    assert used
    assert sorted(documented) == sorted(used)


def test_the_repository_names_no_machine_and_no_registry() -> None:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    pattern = re.compile(r"/(?:work|root|home)/[\w.-]+/|pypi\.org|pythonhosted|download\.pytorch\.org|registry\.npmjs")
    for name in filter(None, names):
        path = ROOT / name
        if path.is_file() and path != Path(__file__):
            assert not pattern.search(path.read_text("latin-1")), name
