"""Agreement of two servers; the guard's judgement, its metrics, and that it acts once and with back-off."""

import asyncio
import json
import re
import urllib.request
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from running import Soak
from server import ENGLISH, Faults, Served

from esimd_soak.experiments import guard
from esimd_soak.experiments.agree import compare
from esimd_soak.experiments.guard import CardGuard, Judge, Rules
from esimd_soak.load.metrics import Metrics
from esimd_soak.model import ToolError
from esimd_soak.plan import Server


def half(prompt: str) -> str:
    return ENGLISH if len(prompt) % 2 else ENGLISH[:50] + "However, on the other hand."


def test_agreement_and_its_warning(soak: Soak) -> None:
    with Served(Faults(greedy=lambda _: ENGLISH)) as a, Served(Faults(greedy=half)) as b:
        assert soak("agree", a.url, b.url, "--prompts", 20) == 0
        found = re.search(r"A against B: (\d+) of 20 agree", soak.out)
        assert found
        assert 0 < int(found[1]) < 20
        assert "control, A against itself: 20 of 20 agree" in soak.out
        assert "first difference at character 50 to 50" in soak.out
        assert "9 of 20 prompts agreed" in soak.err
        assert "do not use it as an oracle" in soak.err
        assert soak("agree", a.url, b.url, "--min-agree", 0.95) == 1
    assert all(body["temperature"] == 0 for body in a.state.bodies)


def test_agreeing_on_nonsense_and_answering_nothing(soak: Soak) -> None:
    with Served(Faults(greedy=lambda _: "!" * 100)) as a, Served(Faults(error=1)) as b:
        assert soak("agree", a.url, a.url, "--prompts", 3) == 0
        assert "degenerate answers: 3 of A, 3 of B" in soak.out
        assert soak("agree", a.url, b.url, "--prompts", 3) == 2
        assert "nothing measured" in soak.out


def test_the_first_difference_may_be_the_end() -> None:
    found = compare(["abc", "x", None], ["abcd", "x", "y"])
    assert (found.agree, found.prompts) == (1, 2)
    assert found.differences == ((0, 3, "", "d"),)


def test_judge_acts_once_then_backs_off_then_calms_down() -> None:
    judge = Judge(Rules(backoff=100, backoff_max=300, calm=1000))
    assert judge.act(0)
    assert not judge.act(50)
    assert judge.act(100)  # within the calm time: the back-off doubles
    assert not judge.act(299)
    assert judge.act(300)
    assert judge.backoff == 300
    assert judge.act(5000)
    assert judge.backoff == 100


def test_judge_counts_in_a_window() -> None:
    judge = Judge(Rules(window=10, limit=3))
    assert [judge.saw(t, True) for t in (0, 5, 20, 21, 22)] == [False, False, False, False, True]
    assert not judge.saw(23, False)
    assert not any(Judge(Rules(limit=0)).saw(t, True) for t in range(100))


def config(tmp_path: Path, url: str, **rules: object) -> Path:
    path = tmp_path / "guard.toml"
    lines = [
        f"{k} = {json.dumps(v)}"
        for k, v in {"interval": 0.05, "listen": "127.0.0.1:0", **rules}.items()
        if k != "follow"
    ]
    if "follow" in rules:
        lines.append(f'follow = {{s = "{rules["follow"]}"}}')
    text = f'[[server]]\nurl = "{url}"\nname = "s"\ncard = "0"\n[watch]\nseconds = 0.05\n[guard]\n'
    path.write_text(text + "\n".join(lines))
    return path


def watch(path: Path, until: Callable[[str], bool], beside: Callable[[], None] = lambda: None) -> str:
    """Runs a guard until its metrics page satisfies the test, at most 10 s; the page."""

    async def go() -> str:
        watching = CardGuard(*guard.load(str(path)))
        task = asyncio.create_task(watching.go())
        try:
            for i in range(500):
                await asyncio.sleep(0.02)
                if i == 10:
                    beside()
                page = watching.metrics.page().decode()
                if until(page) or task.done():
                    break
            if task.done():
                task.result()
            return page
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    run: Callable[[Coroutine[Any, Any, str]], str] = asyncio.run
    return run(go())


def value(page: str, name: str, labels: str = 'card="0",server="s"') -> float:
    found = re.search(rf"^esimd_soak_{name}{{{re.escape(labels)}}} (\S+)$", page, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_a_collapsed_server_is_confirmed_and_the_command_runs_once(tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = f'echo "$ESIMD_SOAK_SERVER $ESIMD_SOAK_CARD $ESIMD_SOAK_URL $ESIMD_SOAK_REASON" >> {told}'
    with Served(Faults(collapse=1)) as served:
        path = config(tmp_path, served.url, command=command, backoff=60)
        page = watch(path, lambda page: value(page, "confirmed_total") >= 3)
    assert value(page, "collapses_total") >= 4
    assert value(page, "collapses_total") == value(page, "generations_total")
    assert value(page, "actions_total", 'card="0",result="done",server="s"') == 1
    assert value(page, "actions_total", 'card="0",result="held back",server="s"') >= 1
    assert value(page, "collapses_by_kind_total", 'card="0",kind="run",server="s"') >= 4
    assert told.read_text().count("\n") == 1
    assert told.read_text().startswith(f"s 0 {served.url} 3 of 3 canaries collapsed again")


def test_a_clean_server_is_left_alone(tmp_path: Path) -> None:
    with Served() as served:
        page = watch(config(tmp_path, served.url, command="false"), lambda page: value(page, "generations_total") > 8)
    assert value(page, "collapses_total") == value(page, "confirmed_total") == 0
    assert value(page, "up") == 1
    assert value(page, "last_clean_seconds") > 1.7e9
    assert "esimd_soak_collapses_total{" in page, "a series at 0 exists before its first event"


def test_a_single_bad_text_is_not_acted_on(tmp_path: Path) -> None:
    with Served(Faults(bursts=((2, 2),))) as served:
        page = watch(config(tmp_path, served.url, command="false"), lambda page: value(page, "generations_total") > 12)
    assert value(page, "collapses_total") == 1
    assert value(page, "confirmed_total") == 0


def test_real_text_is_followed(tmp_path: Path) -> None:
    real = tmp_path / "real.jsonl"
    real.write_text(json.dumps({"text": "!" * 200}) + "\n")  # from before the guard began: not its business

    def append() -> None:
        with real.open("a") as file:
            file.write("".join(json.dumps(x) + "\n" for x in ({"text": ENGLISH}, {"text": "!" * 90}, {"nothing": 1})))

    with Served() as served:
        path = config(tmp_path, served.url, interval=30, follow=str(real))
        page = watch(
            path, lambda page: value(page, "errors_total", 'card="0",error="unreadable",server="s"') > 0, append
        )
    assert value(page, "collapses_total") == 1
    assert value(page, "generations_total") == 2 + 1 + 3  # two lines, the first canary, three to confirm


def test_a_dead_server_is_an_error_not_a_collapse(tmp_path: Path) -> None:
    page = watch(
        config(tmp_path, "http://127.0.0.1:9"), lambda page: "unreachable" in page and "esimd_soak_up{" in page
    )
    assert value(page, "up") == 0
    assert value(page, "generations_total") == 0


def test_the_page_is_served_over_http(tmp_path: Path) -> None:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    got: list[str] = []

    async def read() -> None:
        watching = CardGuard(*guard.load(str(config(tmp_path, served.url, listen=listen))))
        task = asyncio.create_task(watching.go())
        await asyncio.sleep(0.3)
        url = f"http://{listen}/metrics"
        got.append(await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=5).read().decode()))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with Served() as served:
        asyncio.run(read())
    assert 'esimd_soak_collapses_total{card="0",server="s"} 0.0' in got[0]


def test_wrong_guard_plans(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="is wrong"):
        guard.load(str(config(tmp_path, "http://x", intervall=3)))
    path = config(tmp_path, "http://x", follow="/tmp/x")
    path.write_text(path.read_text().replace("follow = {s", "follow = {t"))
    made = guard.load(str(path))
    with pytest.raises(ToolError, match="no server of the plan"):
        CardGuard(*made)


def test_dashboard_and_alerts_name_only_what_is_exposed(soak: Soak) -> None:
    metrics = Metrics()
    metrics.begin(Server("http://x"))
    names = set(re.findall(r"^# TYPE (\S+)", metrics.page().decode(), re.MULTILINE))
    names |= {f"{name}_bucket" for name in names}
    shown = []
    for what in ("dashboard", "alerts"):
        assert soak("guard", "--show", what) == 0
        shown.append(soak.out)
    dashboard, alerts = shown
    used = set(re.findall(r"esimd_soak_[a-z_]+", dashboard + alerts))
    assert used <= names
    assert {"esimd_soak_collapses_total", "esimd_soak_up"} <= used
    assert len({panel["id"] for panel in json.loads(dashboard)["panels"]}) == 11


def test_a_server_that_sends_only_one_character_is_confirmed_by_the_shipped_settings(tmp_path: Path) -> None:
    with Served(Faults(collapse=1.0, text="!" * 64)) as served:
        page = watch(
            config(tmp_path, served.url),
            lambda page: re.search(r"esimd_soak_confirmed_total\{.*\} [1-9]", page) is not None,
        )
        assert guard.load(str(tmp_path / "guard.toml"))[0].tokens == 64
    assert float(re.search(r"esimd_soak_confirmed_total\{.*\} (\S+)", page)[1]) >= 1  # type: ignore[index]
