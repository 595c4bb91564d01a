"""What people expect of a load tool: rates and ramps, times with percentiles, goodput, CSV, progress."""

import asyncio
import csv
import json
import os
import statistics
import subprocess
import sys
import time
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
import recorded
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from running import Soak, generations, plan
from server import ENGLISH, Faults, Served

from esimd_soak.commands import ending
from esimd_soak.load import arrivals, gaps
from esimd_soak.plan import Plan, make
from esimd_soak.score import score


def planned(**keys: object) -> Plan:
    return make({"server": [{"url": "http://x", "name": "s"}], "batches": 1, **keys}, "here")


# ------------------------------------------------------------------ limits that can be reached


@pytest.mark.parametrize("tokens", [9, 20, 64, 100, 512])
def test_a_server_that_sends_only_one_character_is_caught_at_any_length(
    soak: Soak, tmp_path: Path, tokens: int
) -> None:
    async def answer(request: web.Request, n: int) -> web.StreamResponse:
        body = await request.json()
        return web.json_response({"choices": [{"text": "!" * body["max_tokens"], "finish_reason": "length"}]})

    with Served(Faults(script=answer)) as served:
        words = ["--url", served.url, "--generations", 8, "--max-tokens", tokens, "-o", tmp_path / "r"]
        assert soak("run", *words) == 1
    assert "8 in 8" in soak.out
    assert ("warning: the limits are scaled" in soak.err) == (tokens < 160)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("max_tokens = 64\nlimits = {run = 80}", "limits.run 80 cannot be reached by answers of 64 tokens"),
        ("max_tokens = 128\nlimits = {cycle = 192}", "limits.cycle 192 cannot be reached by answers of 128 tokens"),
        (
            "max_tokens = 512\nbody = {max_tokens = 50}\nlimits = {run = 80}",
            "cannot be reached by answers of 50 tokens",
        ),
        ("max_tokens = 2", "answers of 2 tokens cannot be judged"),
        ("batches = 2\nrate = 3.0", "neither a rate nor a ramp"),
        ("rate = inf", "rate: expected a finite number"),
        ("limits = {run = 80.5}", "Expected `int`"),
        ("limits = 3", "limits"),
        ("watch = {pattern = '('}", "expected a regular expression"),
    ],
)
def test_a_plan_that_could_never_find_anything_is_refused(soak: Soak, tmp_path: Path, keys: str, words: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f"{keys}\n[[server]]\nurl = 'http://127.0.0.1:9'\n[stop]\nseconds = 1")
    assert soak("run", path, "-o", tmp_path / "r") == 2
    assert words in soak.err


@pytest.mark.parametrize("name", ["plan", "guard", "matrix"])
def test_the_examples_catch_a_server_that_sends_only_one_character(name: str) -> None:
    from esimd_soak import plan as planning
    from esimd_soak.experiments import guard, matrix

    path = str(Path(__file__).parents[2] / "examples" / "soak" / f"{name}.toml")
    if name == "plan":
        made = planning.load(path)
    elif name == "guard":
        made = guard.load(path)[0]
    else:
        found = matrix.load(path)
        made = planning.make({**found.load, "server": [{"url": found.url}]}, path)
    assert score("!" * made.tokens, made.limits).kinds
    assert score("The capital of France is Paris. " + "!" * (made.tokens // 2), made.limits).kinds


# ------------------------------------------------------------------ arrivals


def test_poisson_arrivals_have_the_rate_and_the_spread_of_poisson() -> None:
    made = planned(batches=0, stop={"seconds": 1}, rate=50.0)
    moments = list(islice(arrivals.moments(made, made.server[0]), 4000))
    between = [b - a for a, b in pairwise(moments)]
    assert moments == sorted(moments)
    assert statistics.fmean(between) == pytest.approx(1 / 50, rel=0.06)
    assert statistics.stdev(between) == pytest.approx(1 / 50, rel=0.08)
    assert moments == list(islice(arrivals.moments(made, made.server[0]), 4000))


def test_a_ramp_grows_evenly() -> None:
    made = planned(batches=0, stop={"seconds": 1}, rate=100.0, ramp=10.0, arrivals="constant")
    moments = np.array(list(islice(arrivals.moments(made, made.server[0]), 1500)))
    assert (moments <= 5).sum() == pytest.approx(125, abs=1)  # half way, a quarter of what the ramp holds
    assert (moments <= 10).sum() == pytest.approx(500, abs=1)
    assert np.diff(moments[moments > 10.1]) == pytest.approx(0.01)
    assert [
        arrivals.slot_start(planned(concurrency=4, batches=0, stop={"seconds": 1}, ramp=8), i) for i in range(4)
    ] == [
        0,
        2,
        4,
        6,
    ]


def test_an_open_loop_does_not_wait_for_answers(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(delay=0.5)) as served:
        keys = {"rate": 40.0, "arrivals": "constant", "concurrency": 60, "max_tokens": 40, "stop": {"generations": 60}}
        path = plan(tmp_path, {"url": served.url, "name": "s"}, **keys)
        assert soak("run", path, "-o", tmp_path / "r") == 0
        assert 10 < served.state.most <= 60
    found = sorted(generations(tmp_path / "r"), key=lambda g: g.n)
    assert [g.n for g in found] == list(range(60))
    assert np.diff([g.planned for g in found]) == pytest.approx(0.025, abs=1e-3)
    assert "40.0 requests a second (constant)" in soak.out


def test_arrivals_that_were_held_back_are_told(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(delay=0.1)) as served:
        words = ["--url", served.url, "--rate", 100, "--concurrency", 2, "--generations", 20, "--max-tokens", 40]
        assert soak("run", *words, "-o", tmp_path / "r") == 0
        assert served.state.most == 2
    assert "arrivals waited: 2 were in flight" in soak.out


# ------------------------------------------------------------------ times


@given(st.lists(st.floats(2e-5, 900), min_size=1, max_size=60))
def test_buckets_keep_every_gap_to_three_per_cent(values: list[float]) -> None:
    counts: dict[int, int] = {}
    for value in values:
        counts[gaps.bucket(value)] = counts.get(gaps.bucket(value), 0) + 1
    for share in (0.5, 0.9, 0.99, 1.0):
        exact = sorted(values)[max(0, int(np.ceil(share * len(values) - 1e-9)) - 1)]
        assert gaps.quantile(counts, share) == pytest.approx(exact, rel=0.03)
    assert gaps.mean(counts) == pytest.approx(statistics.fmean(values), rel=0.03)


def test_first_token_and_gaps_are_those_of_the_server(soak: Soak, tmp_path: Path) -> None:
    async def answer(request: web.Request, n: int) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await asyncio.sleep(0.2)
        for i in range(11):
            piece = {"choices": [{"text": ENGLISH[i * 9 : i * 9 + 9], "finish_reason": "stop" if i == 10 else None}]}
            await response.write(f"data: {json.dumps(piece)}\n\n".encode())
            await asyncio.sleep(0.05 if i < 10 else 0)
        await response.write(b'data: {"choices":[],"usage":{"completion_tokens":11}}\n\ndata: [DONE]\n\n')
        return response

    with Served(Faults(script=answer)) as served:
        words = ["--url", served.url, "--generations", 6, "--concurrency", 2, "--goodput", "ttft:5000,latency:100"]
        assert soak("run", *words, "-o", tmp_path / "r") == 0
    assert "time to first token (TTFT): " in soak.out
    assert "goodput (ttft 5000 ms, latency 100 ms): 0 of 6 = 0.0%" in soak.out
    assert soak("report", tmp_path / "r", "--html", tmp_path / "r.html", "--format", "json") == 0
    found = json.loads(soak.out)["servers"][0]["speed"]
    assert 0.2 <= found["ttft"]["p50"] < 0.45
    assert 0.045 <= found["itl"]["p50"] < 0.12
    assert 30 < found["itl"]["count"] <= 60  # pieces that arrive in one read are one
    assert 0.05 <= found["tpot"]["p50"] < 0.12
    assert found["latency"]["p99"] >= found["latency"]["p50"] >= 0.7
    assert found["goodput"]["good"] == 0
    page = (tmp_path / "r.html").read_text()
    assert all(f"<td>{name}</td>" in page for name in ("TTFT", "TPOT", "ITL", "latency"))
    assert soak("run", "--url", "http://127.0.0.1:9", "--goodput", "ttft", "--generations", 1) == 2


def test_a_report_for_a_narrow_screen_has_letters_of_full_size(soak: Soak, tmp_path: Path) -> None:
    recorded.run(tmp_path / "r", {"0": (26, 2000)})
    soak("report", tmp_path / "r", "--html", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "@media (max-width: 600px)" in page
    narrow = [part.split('"')[0] for part in page.split('<svg class="narrow" viewBox="0 0 ')[1:]]
    # At 380 px the page leaves 348: a drawing of 340 is not shrunk, and its letters stay 12 px.
    assert narrow
    assert all(int(box.split()[0]) <= 348 for box in narrow)


def test_every_generation_as_csv(soak: Soak, tmp_path: Path) -> None:
    recorded.run(tmp_path / "a", {"0": (3, 300)}, name="one")
    assert soak("export", tmp_path / "a", "-o", tmp_path / "a.csv") == 0
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 300
    assert {row["run_name"] for row in rows} == {"one"}
    assert sum(row["kinds"] == "run" for row in rows) == 3
    assert rows[0]["tokens"] == "300"
    assert soak("export", tmp_path / "a", tmp_path / "none", "-o", tmp_path / "b.csv") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "a.csv"]


def test_progress_where_there_is_no_terminal(soak: Soak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from esimd_soak.commands import progress

    monkeypatch.setattr(progress, "EVERY", 0.5)
    with Served(Faults(delay=0.1)) as served:
        words = ["--url", served.url, "--generations", 80, "--concurrency", 4, "--max-tokens", 40]
        assert soak("run", *words, "-o", tmp_path / "r") == 0
    assert " left\n" in soak.err
    assert "%, 0:00:0" in soak.err
    assert "\r" not in soak.err
    assert progress.clock(3725) == "1:02:05"


# ------------------------------------------------------------------ text that exists


def test_score_reads_what_chat_servers_write(soak: Soak, tmp_path: Path) -> None:
    bad = "!" * 120
    parts = [{"type": "text", "text": ENGLISH}]
    lines = [
        {"choices": [{"message": {"content": parts}}]},
        {"choices": [{"message": {"content": "ok", "reasoning": bad}}]},
        {"choices": [{"message": {"content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}}]},
        {"choices": [None, {"text": None, "finish_reason": "content_filter"}]},
        {"content": parts},
        {"prompt": "What is this?", "text": "Сегодня утром мы вышли к реке, и туман уже поднимался над водой."},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    assert soak("score", tmp_path / "a.jsonl") == 1
    assert "a.jsonl:2.choices[0].reasoning: run" in soak.out
    assert "a.jsonl:6: script" in soak.out
    assert "2 in 6" in soak.out
    assert soak("score", tmp_path / "a.jsonl", "--rule", "origin") == 1
    assert "1 in 6" in soak.out


@pytest.mark.parametrize(
    "text",
    ['[[[[[[[[[[[[[[[[[[[[["x"]]]]]]]]]]]]]]]]]]]]]', "[" * 9999, '{"choices": 3}', '{"generated_texts": 3}', "7"],
)
def test_score_of_what_holds_no_text(soak: Soak, tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)
    assert soak("score", tmp_path / "x") == 2
    assert str(tmp_path / "x") in soak.err


def test_a_bench_of_which_most_failed_is_not_enough_seen(soak: Soak, tmp_path: Path) -> None:
    bench = {"generated_texts": [ENGLISH, "", "", ""], "errors": ["", "refused", "refused", "refused"]}
    (tmp_path / "bench.json").write_text(json.dumps(bench))
    assert soak("score", tmp_path / "bench.json") == 2
    assert "NOT ENOUGH SEEN: of 4 requests, 3 failed" in soak.err
    with Served() as a, Served(Faults(error=0.6)) as b:
        assert soak("agree", a.url, b.url, "--prompts", 20) == 2
    assert "NOT ENOUGH SEEN: both answered" in soak.err


# ------------------------------------------------------------------ how it ends


def program(*words: object, **keys: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "esimd_soak", *map(str, words)], text=True, stderr=subprocess.PIPE, check=False, **keys
    )  # type: ignore[call-overload]


POWER = ("power", "--rate", 0.0025)


def test_a_full_disk_a_closed_output_and_a_reader_that_has_gone() -> None:
    with open("/dev/full", "w") as full:
        done = program(*POWER, stdout=full)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "No space left" in done.stderr
    words = f"{sys.executable} -m esimd_soak {' '.join(map(str, POWER))}"
    for command in (
        f"{words} >&-",
        f"({words} 2>/dev/full) >/dev/full",
    ):
        shell = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert shell.returncode == 2, command
        assert "Traceback" not in shell.stderr
        assert "Exception ignored" not in shell.stderr
        assert len(shell.stderr.splitlines()) <= 1
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        done = program(*POWER, stdout=gone)
    assert (done.returncode, done.stderr) == (ending.NO_READER, "error: the reader of standard output has gone\n")


def test_ctrl_c_and_a_package_that_is_missing(tmp_path: Path) -> None:
    program_ = "import sys; sys.modules['scipy.special'] = None; from esimd_soak.__main__ import main; sys.exit(main())"
    words = [sys.executable, "-c", program_, "compare", "--counts", "1/2", "1/2"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert done.stderr.strip().endswith(f"{sys.executable} -m pip install scipy")
    script = "import os, time; from esimd_soak.commands import ending\n"
    script += "raise SystemExit(ending.run(lambda: os.kill(os.getpid(), 2) or time.sleep(20) or 0))"
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "interrupted\n")
    assert time.monotonic() - began < 15
