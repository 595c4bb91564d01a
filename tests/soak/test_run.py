"""The load client against a server whose faults are known: every count, error and verdict."""

import re
import threading
import time
from pathlib import Path

import pytest
from running import Soak, events, generations, plan
from server import Faults, Served, stale

from esimd_soak.judge import analysis
from esimd_soak.store import folder, table
from esimd_soak.store.records import Event


def test_a_clean_server_is_clean_and_says_what_is_not_excluded(soak: Soak, tmp_path: Path) -> None:
    with Served() as served:
        code = soak(
            "run",
            "--url",
            served.url,
            "--concurrency",
            8,
            "--generations",
            200,
            "--max-tokens",
            30,
            "-o",
            tmp_path / "r",
        )
    assert code == 0, soak.out + soak.err
    assert "0 in 200: below 1.5 % at 95 %, one-sided; two-sided 1.83 %" in soak.out
    assert served.state.most <= 8
    assert sorted(served.state.numbers) == list(range(200))
    assert sorted(g.position for g in generations(tmp_path / "r")) == list(range(200))


@pytest.mark.parametrize("api", ["completions", "chat"])
@pytest.mark.parametrize("stream", [True, False])
def test_the_rate_found_is_the_rate_injected(soak: Soak, tmp_path: Path, api: str, stream: bool) -> None:
    with Served(Faults(collapse=0.03)) as served:
        server = {"url": served.url, "name": "s", "card": "0", "api": api, "stream": stream}
        path = plan(
            tmp_path, server, concurrency=16, warmup=16, max_tokens=30, logprobs=True, stop={"generations": 500}
        )
        code = soak("run", path, "-o", tmp_path / "r")
    assert code == 1
    found = {g.n for g in generations(tmp_path / "r") if g.kinds and not g.warm}
    assert found == set(served.state.collapsed)
    assert f"{len(found)} in 500" in soak.out
    assert "16 warm-up generations left out" in soak.out
    assert all(g.text and g.char == "!" and g.run == 200 for g in generations(tmp_path / "r") if g.kinds)
    assert all(not g.text for g in generations(tmp_path / "r") if not g.kinds)
    assert all(g.finish == "length" and g.tokens > 1 and g.prompt_tokens == 7 for g in generations(tmp_path / "r"))
    body = served.state.bodies[0]
    assert ("messages" in body) == (api == "chat")
    assert body["logprobs"] is True if api == "chat" else body["logprobs"] == 1
    assert (max(g.first for g in generations(tmp_path / "r")) > 0) == stream


def test_the_same_seed_sends_the_same_prompts_and_sweeps_lengths(soak: Soak, tmp_path: Path) -> None:
    sent = []
    for i in range(2):
        with Served() as served:
            server = {"url": served.url}
            path = plan(tmp_path, server, concurrency=4, max_tokens=5, prompt_lengths="1-4,9", stop={"generations": 20})
            soak("run", path, "-o", tmp_path / str(i))
            sent.append(sorted((b["seed"], b["prompt"]) for b in served.state.bodies))
    assert sent[0] == sent[1]
    assert [len(prompt.split()) for _, prompt in sent[0]] == [1, 2, 3, 4, 9] * 4


def test_batches_wait_for_one_another(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(delay=0.01)) as served:
        path = plan(tmp_path, {"url": served.url}, stop={"seconds": 60})
        assert soak("run", path, "--concurrency", 6, "--batches", 4, "--max-tokens", 9, "-o", tmp_path / "r") == 0
    done = sorted(generations(tmp_path / "r"), key=lambda g: g.n)
    assert len(done) == 24
    for first in range(6, 24, 6):
        assert min(g.start for g in done[first : first + 6]) >= max(g.end for g in done[first - 6 : first])


@pytest.mark.parametrize(
    ("fault", "kind", "stream"),
    [
        ("error", "http 500", True),
        ("error", "http 500", False),
        ("cut", "cut", True),
        ("wrong_json", "json", True),
        ("wrong_json", "json", False),
        ("hang", "timeout", True),
        ("hang", "timeout", False),
    ],
)
def test_every_fault_has_its_name_and_counts_in_no_rate_unless_enough_came(
    soak: Soak, tmp_path: Path, fault: str, kind: str, stream: bool
) -> None:
    with Served(Faults(**{fault: 0.1})) as served:
        limit = 2 if fault == "hang" else 60
        server = {"url": served.url, "name": "s", "stream": stream}
        path = plan(tmp_path, server, concurrency=32, max_tokens=30, timeout=limit, stop={"generations": 100})
        code = soak("run", path, "-o", tmp_path / "r")
    bad = [g for g in generations(tmp_path / "r") if g.error]
    assert 3 <= len(bad) <= 25
    assert all(g.error.startswith(kind) and not g.kinds for g in bad)
    assert f"{kind} {len(bad)}" in soak.out
    judged = [g for g in bad if g.partial]
    assert (len(judged) > 0) == (fault == "cut"), "what had come of a cut stream is judged, when it is enough"
    assert f"0 in {100 - len(bad) + len(judged)}" in soak.out
    assert code == 0


def test_a_server_that_only_fails_is_nothing_measured(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(error=1.0)) as served:
        assert soak("run", "--url", served.url, "--concurrency", 4, "--generations", 8, "-o", tmp_path / "r") == 2
    assert "nothing measured" in soak.out
    assert "http 500 8" in soak.out


def test_no_server_at_all(soak: Soak, tmp_path: Path) -> None:
    assert soak("run", "--url", "http://127.0.0.1:9", "--generations", 8, "-o", tmp_path / "r") == 2
    assert "does not answer" in soak.err


@pytest.mark.parametrize("nan_as", ["json", "500"])
@pytest.mark.parametrize("stream", [True, False])
def test_logprobs_turn_a_silent_nan_into_a_collapse(soak: Soak, tmp_path: Path, nan_as: str, stream: bool) -> None:
    with Served(Faults(nan=0.2, nan_as=nan_as)) as served:
        server = {"url": served.url, "name": "s", "stream": stream}
        keys = {"concurrency": 8, "max_tokens": 30, "stop": {"generations": 60}}
        silent = soak("run", plan(tmp_path, server, **keys), "-o", tmp_path / "silent")
        asked = soak("run", plan(tmp_path, server, logprobs=True, **keys), "-o", tmp_path / "asked")
    assert asked == 1
    assert 3 < sum(g.kinds == ("nan",) for g in generations(tmp_path / "asked")) < 25
    if nan_as == "json":
        assert silent == 1  # the server's own counter of NaN rows still told
        assert not any(g.kinds for g in generations(tmp_path / "silent"))
        assert "saw NaN in its logits" in soak.out


def test_two_cards_are_told_apart(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(collapse=0.1)) as bad, Served() as good:
        servers = [{"url": bad.url, "name": "bad", "card": "0"}, {"url": good.url, "name": "good", "card": "1"}]
        code = soak(
            "run",
            plan(tmp_path, *servers, concurrency=8, max_tokens=20, stop={"generations": 150}),
            "-o",
            tmp_path / "r",
        )
    assert code == 1
    found = analysis.analyse(table.read([tmp_path / "r"]))
    rates = {part.name: part.collapses for part in found.servers}
    assert rates["bad"] is not None
    assert rates["good"] is not None
    assert (rates["bad"].events, rates["bad"].generations) == (len(bad.state.collapsed), 150)
    assert (rates["good"].events, rates["good"].generations) == (0, 150)
    assert "bad on 0 " in soak.out
    assert f"bad on 0 {len(bad.state.collapsed)}/150; run / good on 1 0/150" in soak.out


def test_two_servers_of_one_card_are_shown_by_card_too(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(bursts=((10, 19),))) as a, Served() as b:
        servers = [{"url": a.url, "name": "a", "card": "0"}, {"url": b.url, "name": "b", "card": "0"}]
        path = plan(tmp_path, *servers, concurrency=8, max_tokens=20, stop={"generations": 100})
        assert soak("run", path, "-o", tmp_path / "r") == 1
    by_server, by_card = soak.out.split("by card")
    assert "run / a on 0: 10 in 100: 10.0 %" in by_server
    assert "run / b on 0: 0 in 100" in by_server
    assert "run / 0: 10 in 200: 5 %" in by_card


def test_stops_at_collapses_and_at_a_time(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(collapse=0.2, delay=0.005)) as served:
        soak("run", "--url", served.url, "--concurrency", 4, "--collapses", 5, "-o", tmp_path / "a")
        assert "ended: 5 collapses" in soak.err
        before = time.monotonic()
        soak("run", "--url", served.url, "--concurrency", 4, "--seconds", 1, "-o", tmp_path / "b")
        assert 1 <= time.monotonic() - before < 4
    assert 5 <= sum(bool(g.kinds) for g in generations(tmp_path / "a")) <= 8
    assert len(generations(tmp_path / "a")) < 100


def test_a_lost_card_is_left_alone_and_the_other_goes_on(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(lost_after=40, delay=0.01)) as bad, Served(Faults(delay=0.002)) as good:
        servers = [{"url": bad.url, "name": "bad", "card": "0"}, {"url": good.url, "name": "good", "card": "1"}]
        path = plan(tmp_path, *servers, concurrency=8, max_tokens=20, stop={"generations": 200}, watch={"grace": 0.3})
        code = soak("run", path, "-o", tmp_path / "r")
    assert code == 1
    assert bad.state.served <= 40 + 8
    assert good.state.served == 200
    (lost,) = events(tmp_path / "r", "lost")
    assert "DEVICE_LOST" in lost.text
    assert 0 < len(lost.requests) <= 8
    assert "in flight: " in soak.out


def test_a_hung_card_is_cut_off_and_its_requests_are_sent_again_on_resume(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(hang=1)) as served:
        watch = {"command": "sleep 0.3; echo UR_RESULT_ERROR_DEVICE_LOST; sleep 60", "grace": 0.2}
        keys = {"concurrency": 4, "max_tokens": 9, "stop": {"generations": 4}}
        path = plan(tmp_path, {"url": served.url, "name": "s"}, watch=watch, **keys)
        before = time.monotonic()
        assert soak("run", path, "-o", tmp_path / "r") == 2, "nothing was scored"
        assert time.monotonic() - before < 10
        assert [event.requests for event in events(tmp_path / "r", "lost")] == [(0, 1, 2, 3)]
        assert generations(tmp_path / "r") == []
        served.state.faults.hang = 0
        assert soak("run", plan(tmp_path, {"url": served.url, "name": "s"}, **keys), "-o", tmp_path / "r") == 1
        assert [g.n for g in sorted(generations(tmp_path / "r"), key=lambda g: g.n)] == [0, 1, 2, 3]


def test_the_kernel_log_names_the_card(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(delay=0.01)) as a, Served(Faults(delay=0.01)) as b:
        servers = [
            {"url": a.url, "name": "a", "card": "0", "pci": "0000:03:00.0"},
            {"url": b.url, "name": "b", "card": "1", "pci": "0000:04:00.0"},
        ]
        line = "xe 0000:04:00.0: [drm] device wedged, needs recovery"
        command = f"sleep 0.3; echo all is well; echo '{line}'; sleep 60"
        path = plan(
            tmp_path,
            *servers,
            concurrency=4,
            max_tokens=9,
            stop={"generations": 300},
            watch={"command": command, "grace": 0.2},
        )
        code = soak("run", path, "-o", tmp_path / "r")
    assert code == 1
    assert a.state.served == 300
    assert b.state.served < 300
    assert [event.server for event in events(tmp_path / "r", "lost")] == ["b"]


def test_a_server_that_restarts_loses_no_number(soak: Soak, tmp_path: Path) -> None:
    def restart() -> None:
        while first.state.served < 60:
            time.sleep(0.005)
        first.__exit__()
        time.sleep(0.3)
        second.__enter__()

    first = Served(Faults(delay=0.01)).__enter__()
    second = Served(Faults(delay=0.002), port=int(first.url.rpartition(":")[2]))
    keys = {"concurrency": 4, "max_tokens": 9, "stop": {"generations": 300}, "watch": {"seconds": 0.05, "down": 5}}
    path = plan(tmp_path, {"url": first.url, "name": "s"}, **keys)
    beside = threading.Thread(target=restart)
    beside.start()
    soak("run", path, "-o", tmp_path / "r")
    beside.join()
    second.__exit__()
    found = generations(tmp_path / "r")
    assert sorted(g.n for g in found) == list(range(300))
    assert all(g.error.startswith("cut") for g in found if g.error)
    assert sum(bool(g.error) for g in found) <= 8  # the 4 in flight, and what the dying server still took
    kinds = [event.kind for event in folder.read(tmp_path / "r", "events", Event)]
    assert kinds.index("unreachable") < kinds.index("reachable")
    assert "unhealthy" in kinds
    assert "restarted" in kinds


def test_a_server_that_stays_away_is_given_up(soak: Soak, tmp_path: Path) -> None:
    gone = Served(Faults(delay=0.01)).__enter__()
    keys = {"concurrency": 4, "max_tokens": 9, "stop": {"generations": 3000}, "watch": {"down": 0.3}}
    path = plan(tmp_path, {"url": gone.url, "name": "s"}, **keys)
    timer = threading.Timer(0.5, gone.__exit__)
    timer.start()
    assert soak("run", path, "-o", tmp_path / "r") == 1
    timer.join()
    assert "down for 0.3 s" in soak.err
    assert len(events(tmp_path / "r", "down")) == 1


def test_the_report_shows_the_servers_own_counters(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(delay=0.02, spec=stale)) as served:
        path = plan(
            tmp_path,
            {"url": served.url},
            concurrency=8,
            max_tokens=9,
            stop={"generations": 200},
            watch={"seconds": 0.05},
        )
        assert soak("run", path, "-o", tmp_path / "r") == 1
    assert re.search(r"up to [1-8] running, 0 waiting; drafts accepted 0.17 %, length 1.00: collapse", soak.out)
    assert "acceptance-collapse" in soak.out + soak.err


def test_a_log_command_that_fails_ends_the_run(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(delay=0.02)) as served:
        path = plan(tmp_path, {"url": served.url}, concurrency=2, stop={"seconds": 30}, watch={"command": "exit 3"})
        assert soak("run", path, "-o", tmp_path / "r") == 2
    assert "kernel log ended with 3" in soak.err


def test_a_sick_server_is_seen(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(unhealthy_after=10, delay=0.01)) as served:
        path = plan(
            tmp_path,
            {"url": served.url},
            concurrency=4,
            max_tokens=9,
            stop={"generations": 60},
            watch={"seconds": 0.05},
        )
        soak("run", path, "-o", tmp_path / "r")
    assert "does not answer /health" in soak.out


def test_a_slow_client_voids_the_run(soak: Soak, tmp_path: Path) -> None:
    with Served() as served:
        keys = {"concurrency": 8, "max_tokens": 9, "stop": {"generations": 60}}
        code = soak("run", plan(tmp_path, {"url": served.url}, client={"late_ms": 0.001}, **keys), "-o", tmp_path / "r")
    assert code == 2
    assert "the client was the bottleneck: requests went out late" in soak.out
