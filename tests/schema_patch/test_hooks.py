"""The GitHub Action and the pre-commit hooks: their words are words that the commands take, and their script runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from elf_files import VOID, WRONG, build

from schema_patch.commands.main import main, schema_patch, verify_schemas
from schema_patch.text import files

ROOT = Path(__file__).parents[2]
OWN = """#include <torch/library.h>
void op(at::Tensor x, at::Tensor out) { out.copy_(x); }
TORCH_LIBRARY(mylib, m) { m.def("op(Tensor x, Tensor out) -> ()", &op); }
"""
Judge = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def action() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "action.yml").read_text())


@pytest.fixture
def judge(action: dict[str, Any], tmp_path: Path) -> Judge:
    """The action's script, run as its runner would, in a folder with the programs that its first step installs."""
    (step,) = [step for step in action["runs"]["steps"] if step["name"] == "judge"]
    bin = tmp_path / "schema-kit" / "bin"
    bin.mkdir(parents=True)
    for name, entry in (("verify-schemas", "main_verify"), ("schema-patch", "main")):
        program = (
            f"#!{sys.executable}\nimport sys\nfrom schema_patch.commands import main as cli\nsys.exit(cli.{entry}())\n"
        )
        (bin / name).write_text(program)
        (bin / name).chmod(0o755)
    (bin / "python").symlink_to(sys.executable)

    def run(**inputs: str) -> subprocess.CompletedProcess[str]:
        given = dict.fromkeys(step["env"], "") | {"SARIF": "out.sarif", "PYTHON": sys.executable} | inputs
        words = ["bash", "-eo", "pipefail", "-c", step["run"]]
        env = {**os.environ, "PYTHONPATH": str(ROOT), **given, "RUNNER_TEMP": str(tmp_path)}
        return subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    return run


def test_the_action_gives_each_input_to_the_commands(action: dict[str, Any]) -> None:
    commands = (verify_schemas, schema_patch.commands["audit"])
    options = {option for command in commands for parameter in command.params for option in parameter.opts}
    (step,) = [step for step in action["runs"]["steps"] if step["name"] == "judge"]
    assert set(re.findall(r"--[a-z]+", step["run"])) <= options
    assert {name.lower() for name in step["env"]} == set(action["inputs"])
    assert "${{" not in step["run"]  # inputs reach the script as values, not as text of it


@pytest.mark.parametrize(("text", "code"), [(VOID, 0), (WRONG, 1)])
def test_the_action_judges_binaries(tmp_path: Path, judge: Judge, text: str, code: int) -> None:
    build(tmp_path / "dist", [text])
    done = judge(PATHS="dist/*.so", REQUIRE="esimd_gemv_int4")
    assert done.returncode == code, done.stderr
    assert ("::error file=dist/libx.so" in done.stdout) == bool(code)
    (run,) = json.loads((tmp_path / "out.sarif").read_text())["runs"]
    assert run["automationDetails"]["id"] == "schema-kit/verify/"
    assert judge(INSTALLED="dist", REQUIRE="esimd_gemv_int4").returncode == code


def test_the_action_judges_sources_that_no_table_knows(tmp_path: Path, judge: Judge) -> None:
    build(tmp_path / "dist", [VOID])
    (tmp_path / "own.cpp").write_text(OWN)
    done = judge(AUDIT="own.cpp", PATHS="dist/*.so")
    assert done.returncode == 1, done.stderr
    assert "::error file=own.cpp,line=3," in done.stdout
    runs = json.loads((tmp_path / "out.sarif").read_text())["runs"]
    assert [run["automationDetails"]["id"] for run in runs] == ["schema-kit/audit/", "schema-kit/verify/"]
    baseline = tmp_path / "accepted.json"
    main(["audit", "--write-baseline", str(baseline), str(tmp_path / "own.cpp")])
    assert judge(AUDIT="own.cpp", BASELINE="accepted.json").returncode == 0
    assert judge(AUDIT="own.cpp gone.cpp").returncode == 2
    assert judge().returncode == 2


@pytest.mark.parametrize("source", [OWN, "int plain() { return 1; }\n"])
def test_a_hook_passes_files_in_which_nothing_is_to_be_judged(tmp_path: Path, source: str) -> None:
    file = tmp_path / "changed.cpp"
    file.write_text(source)
    for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text()):
        program, *words = hook["entry"].split()
        wrong = source == OWN and hook["id"] == "schema-audit"
        if program == "schema-patch":
            assert main([*words, str(file)]) == int(wrong)
            assert main([word for word in words if word != "--may-be-empty"] + [str(file)]) == (1 if wrong else 2)


def test_the_hooks_run_commands_that_exist() -> None:
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert set(hooks) == {"schema-check", "schema-audit", "verify-schemas"}
    for hook in hooks.values():
        program, *words = hook["entry"].split()
        command = verify_schemas if program == "verify-schemas" else schema_patch.commands[words.pop(0)]
        assert words == ["--may-be-empty"]
        command.make_parser(click.Context(command)).parse_args([*words, *hook.get("args", ["x.cpp"])])
    pattern = re.compile(hooks["verify-schemas"]["files"])
    names = {"a/_C.abi3.so": True, "libx.so.8": True, "p-1.0.whl": True, "x.sop": False, "so.py": False}
    assert {name: bool(pattern.search(name)) for name in names} == names


def test_the_hooks_run_where_a_file_changes_that_the_commands_read() -> None:
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    for name, suffixes in (("schema-check", files.SUFFIXES), ("schema-audit", files.SOURCES)):
        assert "types_or" not in hooks[name]  # no type has .sycl
        assert [s for s in sorted(suffixes) if not re.search(hooks[name]["files"], f"csrc/a{s}")] == []
        assert not re.search(hooks[name]["files"], "docs/c.md")
