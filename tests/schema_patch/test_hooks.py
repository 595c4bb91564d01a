"""The GitHub Action and the pre-commit hooks: their words are words that the commands take, and their script runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from elf_files import VOID, WRONG, build

from schema_patch.commands.main import schema_patch, verify_schemas

ROOT = Path(__file__).parents[2]
yaml = pytest.importorskip("yaml")


def test_the_action_gives_each_input_to_the_command() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    options = {option for parameter in verify_schemas.params for option in parameter.opts}
    (verify,) = [step for step in action["runs"]["steps"] if step["name"] == "verify"]
    assert set(re.findall(r"--[a-z]+", verify["run"])) <= options
    used = {name.lower() for name in verify["env"]}
    assert used | {"python"} == set(action["inputs"])
    assert "${{" not in verify["run"]  # inputs reach the script as values, not as text of it


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash here")
@pytest.mark.parametrize(("text", "code"), [(VOID, 0), (WRONG, 1)])
def test_the_script_of_the_action(tmp_path: Path, text: str, code: int) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    (verify,) = [step for step in action["runs"]["steps"] if step["name"] == "verify"]
    build(tmp_path / "dist", [text])
    program = tmp_path / "schema-kit" / "bin" / "verify-schemas"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!{sys.executable}\nimport sys\nfrom schema_patch.commands import main as cli\nsys.exit(cli.main_verify())\n"
    )
    program.chmod(0o755)
    given = dict.fromkeys(verify["env"], "") | {
        "PATHS": "dist/*.so",
        "SARIF": "out.sarif",
        "REQUIRE": "esimd_gemv_int4",
    }
    environment = {**os.environ, **given, "RUNNER_TEMP": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", verify["run"]],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert (tmp_path / "out.sarif").exists()
    assert ("::error file=dist/libx.so" in done.stdout) == bool(code)


def test_the_hooks_run_commands_that_exist(tmp_path: Path) -> None:
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert set(hooks) == {"schema-check", "verify-schemas"}
    program, command = hooks["schema-check"]["entry"].split()
    assert program == "schema-patch"
    assert command in schema_patch.commands
    assert hooks["verify-schemas"]["entry"] == verify_schemas.name
    pattern = re.compile(hooks["verify-schemas"]["files"])
    for name, wanted in (
        ("a/_C.abi3.so", True),
        ("libx.so.8", True),
        ("p-1.0.whl", True),
        ("x.sop", False),
        ("so.py", False),
    ):
        assert bool(pattern.search(name)) == wanted, name
