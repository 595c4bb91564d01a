"""The environment switch, the user's table and spawned workers, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from torch._inductor.compile_worker import __main__ as compile_worker

from esimd_ops import environment

HERE = Path(__file__).parent
TABLE = """
namespaces = ["everywhere"]
[operators.op]
arguments = ["x", "output"]
writes = ["output"]
returns = "output"
"""


@pytest.fixture(scope="module")
def entry(entry_points: Path) -> Path:
    """The entry points of this tree, and a table."""
    (entry_points / "mine.toml").write_text(TABLE)
    return entry_points


def run(
    entry: Path, *argv: str, program: str = "", command: Iterable[str] = (), **variables: str
) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SCHEMA_KIT") and name != "CI"}
    path = os.pathsep.join([str(entry), str(HERE.parents[1])])
    environment = {**kept, "PYTHONPATH": path, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", **variables}
    return subprocess.run(
        [sys.executable, *(command or (("-c", program) if program else (str(HERE / "everywhere.py"), *argv)))],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def test_a_switch_and_a_table_guard_a_program_that_knows_nothing_of_it(entry: Path) -> None:
    assert run(entry).stdout == "wrong\n"
    done = run(entry, SCHEMA_KIT_GUARD="1", SCHEMA_KIT_TABLE=str(entry / "mine.toml"))
    assert done.stdout == "right\n"
    assert done.stderr == "schema_kit: everywhere: 1 operator guarded under torch.compile\n"


def test_a_spawned_worker_too(entry: Path) -> None:
    assert (
        run(entry, "spawn", SCHEMA_KIT_GUARD="everywhere", SCHEMA_KIT_TABLE=str(entry / "mine.toml")).stdout
        == "right\n"
    )
    done = run(entry, "enable", "spawn")
    assert done.stdout.splitlines()[1:] == ["right"], done.stderr


@pytest.mark.skipif(torch.__version__ < "2.13", reason="torch reads TORCH_LOGS before it loads entry points")
def test_the_log_shows_each_twin_as_it_is_traced(entry: Path) -> None:
    done = run(entry, "enable", TORCH_LOGS="+schema_kit")
    assert "everywhere::op is traced as schema_kit_guard::t10everywhere_2op_0" in done.stderr


@pytest.mark.parametrize("worker", [("-m", "torch._inductor.compile_worker"), (compile_worker.__file__,)])
def test_a_process_that_compiles_for_others_misses_no_operator(entry: Path, worker: Iterable[str]) -> None:
    """It is started as a module and, before torch 2.8, by its path; its program is forgotten before it ends."""
    done = run(entry, command=(*worker, "--help"), SCHEMA_KIT_GUARD="everywhere", SCHEMA_KIT_TABLE=str(entry / "mine.toml"))  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "--workers" in done.stdout


def test_zero_turns_everything_off(entry: Path) -> None:
    done = run(entry, "enable", SCHEMA_KIT_GUARD="0")
    assert done.stdout == "off: SCHEMA_KIT_GUARD=0\nwrong\n"


def test_a_misspelt_namespace_is_an_error_at_the_end(entry: Path) -> None:
    done = run(entry, "idle", SCHEMA_KIT_GUARD="everywere", SCHEMA_KIT_TABLE=str(entry / "mine.toml"))
    assert "SCHEMA_KIT_GUARD: no operator of the namespace everywere was ever registered; did you mean everywhere?" in done.stderr  # fmt: skip
    (entry / "typo.toml").write_text(TABLE.replace('"output"]\nw', '"out"]\nw').replace('s = ["output"]', 's = ["out"]').replace('"output"\n', '"out"\n'))  # fmt: skip
    done = run(entry, "idle", SCHEMA_KIT_GUARD="1", SCHEMA_KIT_TABLE=str(entry / "typo.toml"))
    assert "no operator op of everywhere was ever registered with the arguments of the table" in done.stderr
    done = run(entry, "misspell", "idle")
    assert (
        "guard.enable: no operator of the namespace everywere was ever registered; did you mean everywhere?"
        in done.stderr
    )


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"TABLE": "gone.toml"}, "gone.toml: SCHEMA_KIT_TABLE names an operator table that cannot be read: No such file"),
        ({"TABLE": "."}, ".: SCHEMA_KIT_TABLE names an operator table that cannot be read: Is a directory"),
        ({"TABLE": "everywhere.py"}, "everywhere.py: not an operator table: "),
        ({"GUARD": "aten"}, "nothing is known of any operator of aten"),
        ({"REPLACE": "race"}, "replace: 'race': expected 'races', or an operator of"),
        ({"OBSERVE": "seen", "OBSERVE_OPTIONS": "often=1"}, "SCHEMA_KIT_OBSERVE_OPTIONS: expected namespace=, "),
    ],
)  # fmt: skip
def test_what_is_asked_for_and_cannot_be_had_is_no_success(
    entry: Path, variables: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE)
    asked = {"SCHEMA_KIT_GUARD": "1", **{f"SCHEMA_KIT_{name}": value for name, value in variables.items()}}
    done = run(entry, program="import torch", **asked)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"schema_kit: error: {told}")


def test_a_table_that_nobody_asks_is_not_read(entry: Path) -> None:
    done = run(entry, program="import torch", SCHEMA_KIT_GUARD="0", SCHEMA_KIT_TABLE="gone.toml")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("", None), ("0", None), ("off", None), ("a, b a", ("a", "b")), ("mylib", ("mylib",))],
)
def test_what_the_switch_may_say(monkeypatch: pytest.MonkeyPatch, value: str, expected: tuple[str, ...] | None) -> None:
    monkeypatch.setenv("SCHEMA_KIT_GUARD", value)
    assert environment.guarded_namespaces() == expected
    assert environment.guard_is_off() == (value in ("0", "off"))


@pytest.mark.parametrize("module", ["guard", "replace", "native", "observe.session"])
def test_the_kit_may_be_imported_before_torch(entry: Path, module: str) -> None:
    """Its import of torch enters the door, which wants the modules whose import is not done."""
    program = f"import esimd_ops.{module} as first; from esimd_ops import guard; print(guard.status())"
    program += f"; import sys; assert first is sys.modules['esimd_ops.{module}']"
    done = run(entry, SCHEMA_KIT_GUARD="everywhere", program=program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "everywhere: no operators yet; they are guarded when they are loaded\n"
