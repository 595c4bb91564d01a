"""Operators that no table knows, tried with their user's samples: `races`, its reproducers, and `check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from esimd_ops.trials.given import OfUser
from schema_patch.model import ToolError
from schema_patch.schemas import grammar

from .test_races import esimd_ops

WITHOUT_REFERENCE = """
import torch
x = torch.arange(1024.0) / 64
SAMPLES = {"run": lambda: [("%s", x.clone(), torch.full((1024,), torch.nan))]}
WRITES = {"run": %s}
"""
REFERENCE = """
INPLACE = {"run": ()}
def sums(name, input, output):
    expected = output.clone()
    expected[:32] = (input[:32] + input[:32].roll(-1)) * %s
    return {"output": expected}
REFERENCE = {"run": sums}
"""
PROGRAM = """
import torch
import esimd_pieces
torch.ops.esimd_pieces.run("race_in_place", torch.arange(1024.0) / 64, torch.zeros(1024))
"""
RACES = ("races", "--namespace", "esimd_pieces", "--schedules", "ascending;descending", "--format", "json")


def test_without_samples_it_is_registered_and_nobody_knows_how_to_try_it(built: Path) -> None:
    done = esimd_ops(built, *RACES, "--ops", "run")
    assert done.returncode == 2
    assert "run is registered, but nobody said what to try it with" in done.stderr
    everything = json.loads(esimd_ops(built, *RACES).stdout)
    assert [(row["op"], row["verdict"]) for row in everything["checked"]] == [("run", "unknown")]


@pytest.fixture(scope="module")
def raced(built: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], Path]:
    folder = tmp_path_factory.mktemp("given")
    samples = folder / "samples.py"
    samples.write_text(WITHOUT_REFERENCE % ("race_in_place", ("input", "output")))
    done = esimd_ops(built, *RACES, "--samples", samples, "--reproducer", folder / "case.json")
    assert done.returncode == 1, done.stderr
    return json.loads(done.stdout), folder / "case.json"


def test_runs_are_compared_with_each_other_and_every_access_is_judged(raced: tuple[dict[str, object], Path]) -> None:
    report, _ = raced
    told = {f["code"]: f["message"] for f in report["findings"]}  # type: ignore[attr-defined]
    assert "'output' wrong under descending" in told["HR111"]  # the first run's order is ascending
    assert "of 'input'" in told["HR101"]


def test_its_reproducer_needs_no_samples(built: Path, raced: tuple[dict[str, object], Path]) -> None:
    _, case = raced
    done = esimd_ops(built, "races", "--namespace", "esimd_pieces", "--replay", case, "--format", "json")
    assert done.returncode == 1, done.stderr
    assert "HR111" in {f["code"] for f in json.loads(done.stdout)["findings"]}


def test_beyond_local_memory_is_a_line_and_not_the_end_of_the_process(built: Path, tmp_path: Path) -> None:
    (tmp_path / "samples.py").write_text(WITHOUT_REFERENCE % ("over_read_of_slm", ("output",)))
    done = esimd_ops(built, *RACES, "--samples", tmp_path / "samples.py")
    told = {f["code"]: f["path"] for f in json.loads(done.stdout)["findings"]}
    assert told["HR105"].endswith("defects.sycl")
    assert "HR112" not in told


@pytest.mark.parametrize(("factor", "code"), [(1, 0), (2, 1)])
def test_check_holds_it_to_the_users_reference(built: Path, tmp_path: Path, factor: int, code: int) -> None:
    samples = tmp_path / "samples.py"
    samples.write_text(WITHOUT_REFERENCE % ("fine_disjoint", ("output",)) + REFERENCE % factor)
    words = ("check", "--namespace", "esimd_pieces", "--repeat", "2", "--format", "json", "--samples", samples)
    done = esimd_ops(built, *words)
    assert done.returncode == code, done.stderr
    assert {f["code"] for f in json.loads(done.stdout)["findings"]} == ({"PA101"} if code else set())


def test_the_calls_of_an_observed_program_are_samples(built: Path, tmp_path: Path) -> None:
    """Of a library that no table knows: nobody wrote a sample, nor what is written."""
    program, calls = tmp_path / "program.py", tmp_path / "calls"
    program.write_text(PROGRAM)
    seen = esimd_ops(built, "observe", "--namespace", "esimd_pieces", "--save", calls, "--", program)
    assert "writes 'input' undeclared" in seen.stdout, seen.stderr
    raced = esimd_ops(built, *RACES, "--samples", calls)
    assert raced.returncode == 1, raced.stderr
    assert {"HR101", "HR111"} <= {f["code"] for f in json.loads(raced.stdout)["findings"]}
    words = ("check", "--namespace", "esimd_pieces", "--repeat", "2", "--format", "json", "--samples", calls)
    checked = esimd_ops(built, *words)
    assert checked.returncode == 1, checked.stderr
    assert "input" in next(f["message"] for f in json.loads(checked.stdout)["findings"] if f["code"] == "PA103")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SAMPLES = []", "SAMPLES: expected a dictionary by operator, found list"),
        (
            WITHOUT_REFERENCE % ("fine_disjoint", ("out",)),
            "WRITES: 'out' is none of the arguments of run: name, input, output",
        ),
    ],
)
def test_what_describes_nothing_is_refused(built: Path, tmp_path: Path, text: str, message: str) -> None:
    samples = tmp_path / "samples.py"
    samples.write_text(text)
    done = esimd_ops(built, *RACES, "--samples", samples)
    assert done.returncode == 2
    assert message in done.stderr + done.stdout


SCHEMA = grammar.parse("op(Tensor[] xs, Tensor output, float eps=1.0) -> Tensor")


def of_user(folder: Path, samples: str) -> OfUser:
    (folder / "samples.py").write_text(f"import torch\nSAMPLES = {{'op': {samples}}}\n")
    return OfUser(SCHEMA, str(folder / "samples.py"))


@pytest.mark.parametrize(
    "call",
    ["([torch.ones(2)], torch.zeros(2), 2.0)", "{'eps': 2.0, 'output': torch.zeros(2), 'xs': [torch.ones(2)]}"],
)
def test_a_call_is_in_the_order_of_the_schema_and_new_each_time(tmp_path: Path, call: str) -> None:
    user = of_user(tmp_path, call)
    first = user.make("sample 1")
    assert list(first) == ["xs", "output", "eps"]
    first["xs"][0].fill_(9)
    first["output"].fill_(9)
    again = user.make("sample 1")
    assert torch.equal(again["xs"][0], torch.ones(2))
    assert torch.equal(again["output"], torch.zeros(2))


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("torch.ones(2)", "found a Tensor"),
        ("(1, 2, 3, 4)", "found a tuple of 4"),
        ("{'out': torch.ones(2)}", "found out"),
    ],
)
def test_what_is_no_call_of_the_operator_is_refused(tmp_path: Path, call: str, found: str) -> None:
    with pytest.raises(ToolError, match=f"SAMPLES of op, sample 1: expected .* of xs, output, eps; {found}"):
        of_user(tmp_path, call).make("sample 1")
