"""`esimd_ops races` and `host-build` as typed: on the examples, of which one is right and one races."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from torch import Tensor

from esimd_ops import samples
from esimd_ops.commands import main
from esimd_ops.races.suppressions import Suppressions
from esimd_ops.samples import build
from schema_patch.model import Location, ToolError

FEW = "descending;ascending"


def esimd_ops(built: Path, *words: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(built), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, **(env or {})}
    command = [sys.executable, "-m", "esimd_ops", *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_right_kernel_is_clean(built: Path) -> None:
    words = f"{FEW};ascending,serial,threads=2"
    done = esimd_ops(built, "races", "--namespace", "esimd_right", "--schedules", words, "--format", "json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["findings"], report["errors"]) == (0, [], [])
    assert [row["verdict"] for row in report["checked"]] == ["right"]


@pytest.fixture(scope="module")
def raced(built: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], Path]:
    case = tmp_path_factory.mktemp("case") / "case.json"
    words = ("races", "--namespace", "esimd_race", "--shapes", "all", "--schedules", FEW, "--format", "json")
    done = esimd_ops(built, *words, "--reproducer", case)
    assert done.returncode == 1, done.stderr
    return json.loads(done.stdout), case


def test_the_race_is_told_with_both_lines(raced: tuple[dict[str, object], Path]) -> None:
    report, _ = raced
    races = [f for f in report["findings"] if f["code"] == "HR101"]  # type: ignore[attr-defined]
    assert len(races) == 1  # two lines, however many shapes, groups and elements
    header = (Path(__file__).parents[2] / "examples" / "esimd" / "gemv.h").read_text().splitlines()
    assert "block_store<fp16, kChunk>(a.residual" in header[races[0]["line"] - 1]
    other = int(races[0]["message"].partition("gemv.h:")[2].partition(":")[0])
    assert "block_load<fp16, kChunk>(a.residual" in header[other - 1]
    wrong = [f["message"] for f in report["findings"] if f["code"] == "HR111"]  # type: ignore[attr-defined]
    assert any("256x2048" in message and "'output' wrong under ascending" in message for message in wrong)
    assert not any("descending" in message for message in wrong)


def test_a_reproducer_runs_again(built: Path, raced: tuple[dict[str, object], Path]) -> None:
    report, case = raced
    text = json.loads(case.read_text())
    operator = "esimd_resadd_norm_gemv_fp8_pert"
    elements = {
        build.label(sizes): sum(
            v.numel() for v in samples.make(operator, sizes).arguments.values() if isinstance(v, Tensor)
        )
        for sizes in samples.SIZES[operator][1]
    }
    rows = report["facts"]["wrong"]  # type: ignore[index]
    wrong = {row["shape"] for row in rows if any(row[word] for word in row if word not in ("op", "shape"))}
    assert (text["operator"], text["sizes"]) == (operator, min(wrong, key=lambda shape: elements[shape]))
    done = esimd_ops(built, "races", "--namespace", "esimd_race", "--replay", case, "--format", "json")
    again = json.loads(done.stdout)
    assert done.returncode == 1
    then = next(row for row in report["facts"]["wrong"] if row["shape"] == text["sizes"])  # type: ignore[index]
    assert again["facts"]["wrong"][0][text["name"]] == then[text["name"]] > 0


def test_a_suppressed_race_is_left_out(built: Path, tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text(SUPPRESSION + 'reason = "only to see that it is left out"\n')
    words = ("races", "--namespace", "esimd_race", "--schedules", "descending", "--format", "json", "--suppress", file)
    done = esimd_ops(built, *words)
    assert (done.returncode, json.loads(done.stdout)["findings"]) == (0, [])


SUPPRESSION = (
    '[[suppress]]\noperator = "*"\ntensor = "residual"\nlines = ["gemv.h:68", "gemv.h:28"]\nsame_value = false\n'
)


def test_a_suppression_needs_a_reason_and_a_use(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text(SUPPRESSION + 'reason = ""\n')
    with pytest.raises(ToolError, match="needs lines and a reason"):
        Suppressions.read(str(file))
    file.write_text(SUPPRESSION + 'raeson = "x"\n')
    with pytest.raises(ToolError, match="not a file of suppressions"):
        Suppressions.read(str(file))
    file.write_text(SUPPRESSION + 'reason = "x"\n')
    known = Suppressions.read(str(file))
    store, load, other = (Location("a/gemv.h", line, 1) for line in (68, 28, 1))
    assert not known.covers("op", "residual", store, other, same_value=False)
    assert not known.covers("op", "output", store, load, same_value=False)
    assert len(known.unused()) == 1
    assert known.covers("op", "residual", load, store, same_value=False)
    assert known.unused() == []
    file.write_text(SUPPRESSION.replace("false", "true") + 'reason = "x"\n')
    assert not Suppressions.read(str(file)).covers("op", "residual", load, store, same_value=False)


def test_the_parity_suite_runs_on_a_host_build(built: Path) -> None:
    done = esimd_ops(
        built, "check", "--namespace", "esimd_right", "--device", "cpu", "--repeat", "2", "--format", "json"
    )
    report = json.loads(done.stdout)
    assert (done.returncode, report["findings"]) == (0, []), done.stderr
    assert [row["verdict"] for row in report["checked"]] == ["right"]


@pytest.mark.parametrize(("schedule", "code", "wrong"), [("ascending", 1, 16), ("descending", 0, 0)])
def test_the_script_for_a_card_tells_a_race_from_none(built: Path, schedule: str, code: int, wrong: int) -> None:
    script = Path(__file__).parents[2] / "examples" / "races_on_xpu.py"
    words = ["esimd_resadd_norm_gemv_fp8_pert", "--device", "cpu", "--namespace", "esimd_race", "--times", "16"]
    path = os.pathsep.join(filter(None, [str(built), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "ESIMD_HOST_SCHEDULE": f"{schedule},lockstep"}
    command = [sys.executable, str(script), *words, "--sizes", "256x2048"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert f"{wrong} of 16 calls wrong" in done.stdout


def test_a_schedule_of_the_environment_is_kept_to(built: Path) -> None:
    words = ("check", "--namespace", "esimd_race", "--device", "cpu", "--repeat", "2", "--format", "json")
    done = esimd_ops(built, *words, env={"ESIMD_HOST_SCHEDULE": "ascending,serial"})
    assert "PA101" in {f["code"] for f in json.loads(done.stdout)["findings"]}
    done = esimd_ops(built, *words, env={"ESIMD_HOST_SCHEDULE": "upwards"})
    assert done.returncode != 0
    assert "expected ascending, descending or random" in done.stdout + done.stderr


@pytest.mark.parametrize("words", ["upwards", "random,preempt=2", "ascending,resident=-1"])
def test_a_schedule_that_is_none_is_refused(built: Path, words: str) -> None:
    done = esimd_ops(built, "races", "--namespace", "esimd_right", "--schedules", words)
    assert done.returncode == 2
    assert "expected" in done.stderr


def test_an_operator_that_is_not_there_is_an_error(built: Path) -> None:
    done = esimd_ops(built, "races", "--namespace", "esimd_right", "--ops", "esimd_rms_norm", "--schedules", FEW)
    assert done.returncode == 2
    assert "esimd_rms_norm is not registered" in done.stderr


def test_libraries_of_another_build_are_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "esimd_ops", "races", "--namespace", "esimd_ops"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "expected libraries that host-build made" in done.stderr


def test_what_is_no_tree_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["host-build", str(tmp_path / "none"), "-o", str(tmp_path / "out")]) == 2
    assert "no such directory" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main.main(["host-build", str(tmp_path / "empty"), "-o", str(tmp_path / "out")]) == 2
    assert "expected .sycl sources" in capsys.readouterr().err
