"""Rules of the house that a test can keep."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from schema_patch.schemas import codes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PACKAGES = [
    path for name in ("schema_patch", "esimd_ops", "esimd_soak") for path in sorted((ROOT / name).rglob("*.py"))
]


def test_no_room_is_too_large() -> None:
    assert len(PACKAGES) > 20
    assert [str(p) for p in PACKAGES if len(p.read_text().splitlines()) > 400] == []


# Longer for a reason that stands beside it: one instruction after another.
LONG = {"schema_patch/elf/evidence/run.py": {"_run"}}


def long_functions(source: str) -> set[str]:
    """The functions of more than fifty lines, from their `def` on."""
    functions = (n for n in ast.walk(ast.parse(source)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return {node.name for node in functions if (node.end_lineno or 0) - node.lineno >= 50}


def test_no_function_is_too_long() -> None:
    found = {p.relative_to(ROOT).as_posix(): long_functions(p.read_text()) for p in PACKAGES}
    assert {name: new for name, names in found.items() if (new := names - LONG.get(name, set()))} == {}
    assert long_functions("def f():\n" + 49 * "    f()\n") == set()
    assert long_functions("class A:\n    async def f():\n" + 50 * "        f()\n") == {"f"}


def test_every_module_says_what_it_knows() -> None:
    assert [str(p) for p in PACKAGES if not ast.get_docstring(ast.parse(p.read_text()))] == []


# Programs of their own, whose standard output is their answer.
DRIVER = "schema_patch/build/driver"
ANSWERS = {"schema_patch/build/interpreter.py", *(f"{DRIVER}/{name}.py" for name in ("main", "jit", "fetch", "home"))}
STREAM_CALLS = {"print", "echo", "secho", "Console", "input"}


def test_a_name_of_a_class_has_one_meaning() -> None:
    """In all three packages, but for what is the same in several."""
    alike = {"Action", "Command", "Context", "Finding", "Formatter", "Group", "ToolError"}
    owners: dict[str, list[str]] = {}
    for path in PACKAGES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                owners.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: paths for name, paths in owners.items() if len(paths) > 1 and name not in alike} == {}


def streams_used(source: str) -> list[int]:
    """The lines of a module that touch a standard stream, by whatever name it was imported."""
    found = []
    for node in ast.walk(ast.parse(source)):
        called = node.func if isinstance(node, ast.Call) else None
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        stream = isinstance(node, ast.Attribute) and node.attr.strip("_") in ("stdout", "stderr")
        of_sys = stream and isinstance(node.value, ast.Name) and node.value.id == "sys"
        imported = isinstance(node, ast.ImportFrom) and node.module in ("click", "rich.console", "sys") and any(
            alias.name in (*STREAM_CALLS, "stdout", "stderr") for alias in node.names
        )  # fmt: skip
        if name in STREAM_CALLS or of_sys or imported:
            found.append(node.lineno)
    return found


def catches_everything(source: str) -> list[int]:
    """The lines of a module that catch what is a bug."""
    handlers = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ExceptHandler)]
    wide = ("Exception", "BaseException")
    return [
        node.lineno
        for node in handlers
        if node.type is None or any(getattr(part, "id", "") in wide for part in ast.walk(node.type))
    ]


# Which packages may import what else is hidden from all others.
DOORS = {
    "tree_sitter": ("schema_patch/cpp/", "schema_patch/inference/"),
    "tree_sitter_cpp": ("schema_patch/cpp/", "schema_patch/inference/"),
    "lief": ("schema_patch/elf/",),
    "elftools": ("schema_patch/build/kernels/",),
    "iced_x86": ("schema_patch/elf/",),
    "aiohttp": ("esimd_soak/load/", "esimd_soak/experiments/", "esimd_soak/commands/"),
}


def through_walls(name: str, source: str) -> list[str]:
    """What a module imports past the door that it stands behind."""
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported.add(node.module.partition(".")[0])
    return sorted(one for one in imported if one in DOORS and not name.startswith(DOORS[one] or ("-",)))


def test_every_library_has_its_door() -> None:
    found = {p.relative_to(ROOT).as_posix(): p.read_text() for p in PACKAGES}
    assert {name: past for name, text in found.items() if (past := through_walls(name, text))} == {}
    assert through_walls("schema_patch/text/files.py", "def f():\n    from tree_sitter import Node") == ["tree_sitter"]
    assert through_walls("schema_patch/verify/judge.py", "import lief.ELF") == ["lief"]


def test_only_commands_touch_the_streams() -> None:
    outside = {path: path.relative_to(ROOT).as_posix() for path in PACKAGES if "commands" not in path.parts}
    found = {name: streams_used(path.read_text()) for path, name in outside.items() if name not in ANSWERS}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_nobody_catches_everything() -> None:
    found = {str(path): catches_everything(path.read_text()) for path in PACKAGES}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "print(1)", "import click\nclick.echo(1)", "from click import echo as say\nsay(1)", "import sys\nsys.stdout.write('')",
        "import sys\nx = sys.__stderr__", "from sys import stderr\n", "from rich.console import Console\n",
        "import rich.console\nrich.console.Console()", "import click as c\nc.secho('')",
    ],
)  # fmt: skip
def test_a_module_that_prints_is_seen(source: str) -> None:
    assert streams_used(source)


@pytest.mark.parametrize("what", ["", " Exception", " BaseException", " (OSError, Exception)", " Exception as error"])
def test_a_module_that_catches_everything_is_seen(what: str) -> None:
    assert catches_everything(f"try:\n    f()\nexcept{what}:\n    pass")
    assert not catches_everything("try:\n    f()\nexcept (OSError, ValueError):\n    pass")


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("schema_patch/model.py", "from schema_patch.text import files"),
        ("schema_patch/text/files.py", "from schema_patch.schemas import grammar"),
        ("schema_patch/cpp/strays.py", "import torch"),
        ("schema_patch/inference/domain/values.py", "from schema_patch.inference import infer"),
        ("schema_patch/new_room.py", ""),
        ("esimd_ops/registry.py", "from esimd_ops.parity import supervise"),
        ("esimd_ops/guard/decide.py", "from schema_patch.elf import reader"),
        ("esimd_soak/score/__init__.py", "from esimd_soak.load import client"),
        ("esimd_soak/model.py", "from schema_patch.model import ToolError"),
        ("esimd_soak/plan.py", "import torch"),
    ],
)
def test_an_import_that_breaks_a_border_is_refused(module: str, line: str, tmp_path: Path) -> None:
    for name in ("schema_patch", "esimd_ops", "esimd_soak"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.so", "__pycache__", "include"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    broken = tmp_path / module
    said = broken.read_text() if broken.exists() else '"""A room that no layer names."""\n'
    broken.write_text(said + f"\n{line}\n")
    words = [Path(sys.executable).parent / "lint-imports", "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN" in done.stdout


def test_every_code_that_is_told_has_words_and_every_word_is_told() -> None:
    told = {
        code for text in map(Path.read_text, PACKAGES) for code in re.findall(r'"((?:SP|PA|PB|HR|KR|OB)\d{3})"', text)
    }
    assert told == set(codes.load())


def test_the_repository_names_no_machine_and_no_registry() -> None:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    pattern = re.compile(r"/(?:work|root|home)/[\w.-]+/|pypi\.org|pythonhosted|download\.pytorch\.org|registry\.npmjs")
    for name in filter(None, names):
        path = ROOT / name
        if path.is_file() and path != Path(__file__):
            assert not pattern.search(path.read_text("latin-1")), name


COLUMN = 34  # where the pictures begin to explain


def test_the_picture_of_the_layers_is_that_of_the_contracts() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = {one["containers"][0]: one["layers"] for one in contracts if one["type"] == "layers"}
    page = (ROOT / "docs" / "architecture.md").read_text()
    for package in ("schema_patch", "esimd_ops", "esimd_soak"):
        picture = page.split(f"\n## {package}\n")[1].split("```")[1].strip("\n").splitlines()
        drawn = [{name.strip() for name in line[:COLUMN].split("|")} for line in picture]
        meant = [set(re.split(r" [|:] ", layer)) - {"assets"} for layer in layers[package]]
        assert drawn == [row for row in meant if row], package


def test_a_module_beside_tests_has_a_name_of_its_own() -> None:
    """pytest imports them into one process by that name: of two, the first would be taken for both."""
    found: dict[str, set[Path]] = {}
    for path in (ROOT / "tests").rglob("*.py"):
        for name in re.findall(r"^\s*(?:import|from) (\w+)", path.read_text(), re.MULTILINE):
            if (path.parent / f"{name}.py").exists():
                found.setdefault(name, set()).add(path.parent)
    assert len(found) > 10
    assert {name: folders for name, folders in found.items() if len(folders) > 1} == {}
