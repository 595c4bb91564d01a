"""What survives: kill -9, an interrupt, a second client, another plan; and plans that are refused."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import Soak, events, generations, plan
from server import Faults, Served

from esimd_soak.model import ToolError
from esimd_soak.plan import make
from esimd_soak.store import folder as store


def test_killed_with_9_it_loses_nothing_that_was_finished_and_goes_on(soak: Soak, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    with Served(Faults(delay=0.01, collapse=0.05)) as served:
        path = plan(tmp_path, {"url": served.url, "name": "s"}, concurrency=8, max_tokens=20, stop={"generations": 600})
        words = [sys.executable, "-m", "esimd_soak", "run", str(path), "-o", str(folder)]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while served.state.served < 250:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        time.sleep(0.1)
        answered = len(set(served.state.numbers))
        first = generations(folder)
        assert answered - 24 <= len(first) < 600
        with store.segments(folder, "generations")[0].open("ab") as file:
            file.write(b'{"n":599,"server":"s","ca')  # a line torn by a power cut
        code = soak("run", path, "-o", folder)
    assert code == 1
    whole = generations(folder)
    assert sorted(g.n for g in whole) == list(range(600))
    assert sorted(g.position for g in whole) == list(range(600))
    assert {g.n for g in whole if g.kinds} == set(served.state.collapsed)
    assert [event.text for event in events(folder, "began")] == ["begins", f"goes on at {len(first)}"]


def test_an_interrupted_run_drains_and_says_so(tmp_path: Path) -> None:
    with Served(Faults(delay=0.02)) as served:
        words = [
            sys.executable,
            "-m",
            "esimd_soak",
            "run",
            "--url",
            served.url,
            "--seconds",
            "60",
            "-o",
            str(tmp_path / "r"),
        ]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while served.state.served < 60:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "ended: interrupted" in err
    assert "no collapse seen" in out
    assert not any(g.error for g in generations(tmp_path / "r"))


def test_a_folder_of_another_plan_and_a_folder_in_use_are_refused(soak: Soak, tmp_path: Path) -> None:
    with Served() as served:
        path = plan(tmp_path, {"url": served.url}, concurrency=4, max_tokens=9, stop={"seconds": 60})
        words = [path, "-o", tmp_path / "r"]
        assert soak("run", *words, "--generations", 8) == 0
        assert soak("run", *words, "--generations", 12) == 0, "the same plan, only longer"
        assert len(generations(tmp_path / "r")) == 12
        assert soak("run", *words, "--warmup", 3, "--generations", 8) == 2
        assert "run of another plan" in soak.err
    held = store.open_run(tmp_path / "x", made := make({"server": [{"url": "http://a"}], "batches": 1}, "here"))
    with pytest.raises(ToolError, match="another client is writing"):
        store.open_run(tmp_path / "x", made)
    held.close()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[server]]\nurl = 'http://x'\n[stop]\ngenerations = 1\ncolapses = 2", "colapses"),
        ("[[server]]\nurl = 'http://x'", "nothing ends this run"),
        ("[[server]]\nurl = 'x'\n[stop]\nseconds = 1", "expected a URL"),
        ("concurrency = 0\n[[server]]\nurl = 'http://x'", "concurrency"),
        ("[stop]\nseconds = 1", "server"),
        ("[[server]]\nurl = 'http://x'\n[[server]]\nurl = 'http://x'\n[stop]\nseconds = 1", "the same name"),
        ("count = ['bang']\n[[server]]\nurl = 'http://x'\n[stop]\nseconds = 1", "unknown kind bang"),
        ("[[server]]\nurl = 'http://x'\n[limits]\nrunn = 3", "unknown key runn"),
        ("[[server]]\nurl = 'http://x'\n[limits]\ncopies = 1", "copies at least 2"),
        ("prompt_lengths = '4-'\n[[server]]\nurl = 'http://x'\n[stop]\nseconds = 1", "lengths and ranges"),
        ("nonsense", "expected TOML"),
    ],
)
def test_a_wrong_plan_is_refused_and_says_where(soak: Soak, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    assert soak("run", path, "-o", tmp_path / "r") == 2
    assert message in soak.err


def test_start_up_is_quick() -> None:
    words = [sys.executable, "-X", "importtime", "-m", "esimd_soak", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    for heavy in ("scipy", "numpy", "aiohttp", "torch", "pyarrow"):
        assert f" {heavy}\n" not in done.stderr, heavy
