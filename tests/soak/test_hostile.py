"""What servers really send, and worse: one reply never ends a run, nor makes its report unreadable."""

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from running import Soak, events, generations, plan
from server import ENGLISH, Faults, Served

from esimd_soak.load import outcome, protocol
from esimd_soak.load.answers import LEAST, RECENT, Answers
from esimd_soak.load.client import wait_of
from esimd_soak.load.protocol import Reply
from esimd_soak.plan import make
from esimd_soak.store.records import Generation

KEYS = ["choices", "text", "usage", "error", "delta", "message", "logprobs", "content", "finish_reason", "index"]
KEYS += ["completion_tokens", "prompt_tokens", "tool_calls", "function", "arguments", "timings", "draft_n", "reasoning"]
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
SPOILT = st.sampled_from([b"", b"\\ud83d", b"\xff\xfe", b"\x00", b"!" * 200, b'"', b"[" * 3000, b"9" * 5000, b"NaN"])
PLAN = make({"server": [{"url": "http://x"}], "batches": 1, "max_tokens": 100}, "here")


@given(st.binary(max_size=60) | JSON.map(lambda x: json.dumps(x).encode()), SPOILT, st.integers(0, 60), st.booleans())
def test_any_reply_becomes_a_record_that_can_be_read(data: bytes, spoilt: bytes, at: int, stream: bool) -> None:
    data = data[:at] + spoilt + data[at:]
    reply = Reply(status=200)
    if stream:
        events_ = protocol.Stream(reply)
        events_.feed(b"data: " + data + b"\n\n", 1.0)
        events_.end(2.0)
    else:
        protocol.take_body(reply, data)
        protocol.salvage(reply, data)
    assert reply.error or reply.pieces
    found = outcome.judge(reply, PLAN, "a prompt")
    one = outcome.record(found, reply, PLAN, PLAN.server[0], n=0, position=0, planned=1.0, start=1.0)
    assert msgspec.json.decode(msgspec.json.encode(one), type=Generation) == one
    assert not (one.kinds and not one.judged)


def body(choice: dict[str, object], **keys: object) -> Callable[[web.Request, int], Awaitable[web.StreamResponse]]:
    """Answers everything with this choice."""

    async def answer(request: web.Request, n: int) -> web.StreamResponse:
        return web.json_response({"choices": [{"index": 0, "finish_reason": "stop", **choice}], **keys})

    return answer


def raw(data: bytes, kind: str = "application/json", status: int = 200, cut: bool = False, pause: float = 0.0):  # type: ignore[no-untyped-def]
    """Answers everything with these bytes; `cut`: and then breaks the connection."""

    async def answer(request: web.Request, n: int) -> web.StreamResponse:
        response = web.StreamResponse(status=status, headers={"Content-Type": kind})
        if cut and kind == "application/json":
            response.content_length = len(data) + 100
        await response.prepare(request)
        await response.write(data)
        if pause:
            await asyncio.sleep(pause)
        if cut and request.transport is not None:
            request.transport.close()
        return response

    return answer


def sse(*pieces: object) -> bytes:
    return b"".join(b"data: " + (p if isinstance(p, bytes) else json.dumps(p).encode()) + b"\n\n" for p in pieces)


def piece(text: str, **choice: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "text": text, **choice}]}


def ended(n: int) -> str:
    """A long answer, and no cycle."""
    return f"answer {n}: {ENGLISH}{ENGLISH.swapcase()}"


STREAM = "text/event-stream"
BANG = piece("!" * 60)
CALL = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}]}
LOOSE = {**CALL, "tool_calls": [{"function": {"name": "f", "arguments": "!" * 200}}]}
CLEAN, COLLAPSED, UNSEEN = 0, 1, 2


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        (body({"text": ENGLISH}), CLEAN, "0 in 10"),
        (body({"text": ended(0)}), UNSEEN, "same answer 9"),  # a graph that replays with the inputs of its capture
        (body({"text": ENGLISH}, usage={"completion_tokens": 10**30, "prompt_tokens": -5}), CLEAN, "0 in 10"),
        (raw(b'{"choices":[{"text":"fine \\ud83d then ' + b"!" * 120 + b'"}]}'), COLLAPSED, "run 10"),
        (raw(b'{"choices":[{"text":"' + b"\\ud83d" * 60 + b'"}]}'), COLLAPSED, "10 in 10"),
        (raw(b'{"x":' + b"[" * 99999 + b"]" * 99999 + b"}"), UNSEEN, "json 10"),
        (raw(b'{"error":{"message":' + b"[" * 9999 + b"]" * 9999 + b"}}", status=500), UNSEEN, "http 500 10"),
        (raw(sse(piece(ENGLISH * 9000, finish_reason="stop")), STREAM), COLLAPSED, "cycle 10"),  # a line of 1 MB
        (raw(sse(BANG, BANG), STREAM, cut=True), COLLAPSED, "cut 10; 10 of these judged by what had come"),
        (raw(sse(BANG, BANG), STREAM, pause=5), COLLAPSED, "timeout 10; 10 of these judged by what had come"),
        (raw(b'{"choices":[{"text":"' + b"!" * 200, cut=True), COLLAPSED, "cut 10; 10 of these judged"),
        (raw(sse(piece(ENGLISH)), STREAM, cut=True), UNSEEN, "cut 10; 10 of these judged"),
        (raw(sse(piece("Well")), STREAM, cut=True), UNSEEN, "nothing measured"),
        (raw(sse(piece(ENGLISH), piece("", finish_reason="stop")), "text/plain"), CLEAN, "0 in 10"),
        (raw(sse(piece(ENGLISH), piece("", finish_reason="abort")), STREAM), UNSEEN, "server 10"),
        (raw(json.dumps(piece(ENGLISH)).encode(), status=201), CLEAN, "0 in 10"),
        (raw(b"", status=204), UNSEEN, "http 204 10"),
        (raw(b"<html>gateway</html>", "text/html"), UNSEEN, "json 10"),
        (body({"message": CALL, "finish_reason": "tool_calls"}), CLEAN, "0 in 10"),
        (body({"message": LOOSE, "finish_reason": "tool_calls"}), COLLAPSED, "run 10"),
        (body({"message": {"content": None, "refusal": "I cannot help with that."}}), CLEAN, "0 in 10"),
        (
            body({"message": {"content": "", "role": "assistant"}, "finish_reason": "content_filter"}),
            UNSEEN,
            "withheld 10",
        ),
        (body({"message": {"content": ""}}), COLLAPSED, "empty 10"),
        (body({"message": {"content": "ok", "reasoning": "!" * 300}}), COLLAPSED, "run 10"),
        (body({"message": {"content": "ok", "reasoning_content": "", "reasoning": "!" * 300}}), COLLAPSED, "run 10"),
        (body({"message": {"content": [{"type": "text", "text": ENGLISH}]}}), CLEAN, "0 in 10"),
        (body({"text": "!!!", "finish_reason": "length"}), UNSEEN, "too short 10"),
    ],
)
def test_replies_that_were_met(
    soak: Soak,
    tmp_path: Path,
    script: Callable[[web.Request, int], Awaitable[web.StreamResponse]],
    code: int,
    words: str,
) -> None:
    with Served(Faults(script=script)) as served:
        server = {"url": served.url, "name": "s", "api": "chat"}
        path = plan(tmp_path, server, concurrency=10, timeout=1, max_tokens=100, stop={"generations": 10})
        assert soak("run", path, "-o", tmp_path / "r") == code, soak.out + soak.err
    assert words in soak.out
    assert len(generations(tmp_path / "r")) == 10
    assert soak("report", tmp_path / "r", "--format", "json") == code


def test_the_answers_of_one_reply_are_scored_apart(soak: Soak, tmp_path: Path) -> None:
    letters = [piece("x!", index=0)["choices"], piece("!", index=1)["choices"]]
    mixed = [{"choices": [{"index": i % 2, "text": ENGLISH[i : i + 2] if i % 2 else "!"}]} for i in range(200)]
    assert letters
    with Served(Faults(script=raw(sse(*mixed, piece("", finish_reason="length")), STREAM))) as served:
        assert soak("run", "--url", served.url, "--generations", 4, "-o", tmp_path / "r") == 1
    assert all(g.choices == 2 and g.run == 100 for g in generations(tmp_path / "r"))


def test_failures_are_not_enough_seen_and_cannot_be_compared(soak: Soak, tmp_path: Path) -> None:
    for name, failing in (("a", 0.0), ("b", 0.75)):
        with Served(Faults(error=failing)) as served:
            server = {"url": served.url, "name": "s", "compile_cache": name}
            keys = {"name": name, "concurrency": 8, "max_tokens": 40, "stop": {"generations": 60}}
            code = soak("run", plan(tmp_path, server, **keys), "-o", tmp_path / name)
        assert code == (2 if failing else 0)
    assert "NOT ENOUGH SEEN: b / s: " in soak.out
    assert "not enough seen, no collapse among it" in soak.out
    assert soak("compare", tmp_path / "a", tmp_path / "b") == 2
    assert "not enough was seen of b" in soak.err
    with Served(Faults(error=0.75)) as served:
        keys = {"concurrency": 8, "max_tokens": 40, "judged": 0.1, "stop": {"generations": 60}}
        assert soak("run", plan(tmp_path, {"url": served.url}, **keys), "-o", tmp_path / "c") == 0


def test_one_server_of_two_that_says_nothing(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(error=1.0)) as bad, Served() as good:
        servers = [{"url": bad.url, "name": "bad"}, {"url": good.url, "name": "good"}]
        path = plan(tmp_path, *servers, concurrency=4, max_tokens=40, stop={"generations": 20})
        assert soak("run", path, "-o", tmp_path / "r") == 2
    assert "NOT ENOUGH SEEN: run / bad: 0.0% of 20" in soak.out


@pytest.mark.parametrize(("status", "header"), [(503, "1"), (429, "1"), (503, ""), (502, "")])
def test_an_outage_costs_no_requests(soak: Soak, tmp_path: Path, status: int, header: str) -> None:
    began, sent = time.monotonic(), list[float]()

    async def answer(request: web.Request, n: int) -> web.StreamResponse:
        sent.append(time.monotonic() - began)
        if time.monotonic() - began < 1.0:
            return web.Response(status=status, headers={"Retry-After": header} if header else {})
        return web.json_response(piece(ENGLISH, finish_reason="stop"))

    with Served(Faults(script=answer)) as served:
        keys = {"concurrency": 8, "max_tokens": 40, "stop": {"generations": 60}, "watch": {"down": 5}}
        assert soak("run", plan(tmp_path, {"url": served.url}, **keys), "-o", tmp_path / "r") == 0
    assert sorted(g.n for g in generations(tmp_path / "r")) == list(range(60))
    assert not any(g.error for g in generations(tmp_path / "r"))
    assert [event.kind for event in events(tmp_path / "r", "busy")] == ["busy"]
    assert sum(t < 1.0 for t in sent) <= 24, "asked again and again"
    if header:
        assert not [t for t in sent if 0.3 < t < 1.0], "asked before it should"


def test_a_server_that_stays_busy_is_given_up(soak: Soak, tmp_path: Path) -> None:
    async def answer(request: web.Request, n: int) -> web.StreamResponse:
        return web.Response(status=503)

    with Served(Faults(script=answer)) as served:
        keys = {"concurrency": 4, "stop": {"generations": 60}, "watch": {"down": 0.5}}
        assert soak("run", plan(tmp_path, {"url": served.url}, **keys), "-o", tmp_path / "r") == 2
    assert "down for 0.5 s: http 503" in soak.err
    assert generations(tmp_path / "r") == []


def test_retry_after_is_a_number_or_a_date() -> None:
    assert [wait_of(x) for x in ("3", " 0.5 ", "", "soon", "-3", "1e9")] == [3.0, 0.5, 0.0, 0.0, 0.0, 0.0]
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 60))
    assert 50 < wait_of(date) < 65
    assert wait_of("Wed, 21 Oct 2015 07:28:00 GMT") == 0


def test_a_collapse_in_flight_on_a_lost_card_is_kept(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(script=raw(sse(BANG, BANG), STREAM, pause=30))) as served:
        watch = {"command": "sleep 0.5; echo UR_RESULT_ERROR_DEVICE_LOST; sleep 60", "grace": 0.2}
        path = plan(tmp_path, {"url": served.url}, concurrency=4, stop={"generations": 4}, watch=watch)
        assert soak("run", path, "-o", tmp_path / "r") == 1
    assert [g.error.split(":")[0] for g in generations(tmp_path / "r")] == ["cancelled"] * 4
    assert "4 in 4" in soak.out


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/v1/completions", "/v1/chat/completions"])
def test_a_url_as_people_copy_it(soak: Soak, tmp_path: Path, path: str) -> None:
    with Served() as served:
        assert soak("run", "--url", served.url + path, "--generations", 8, "-o", tmp_path / "r") == 0
    assert ("messages" in served.state.bodies[0]) == ("chat" in path)


def test_requests_without_a_seed(soak: Soak, tmp_path: Path) -> None:
    with Served() as served:
        assert soak("run", "--url", served.url, "--generations", 8, "--seed", "none", "-o", tmp_path / "a") == 0
        assert all("seed" not in body for body in served.state.bodies)
        assert soak("run", "--url", served.url, "--generations", 8, "--seed", "x", "-o", tmp_path / "b") == 2


def test_a_watch_command_that_ends_quietly_and_one_with_long_lines(soak: Soak, tmp_path: Path) -> None:
    keys = {"concurrency": 2, "stop": {"seconds": 2}}
    with Served(Faults(delay=0.02)) as served:
        path = plan(tmp_path, {"url": served.url}, watch={"command": "true"}, **keys)
        assert soak("run", path, "-o", tmp_path / "a") == 2
        assert "NOT TO BE TRUSTED: run: the command that watches the kernel log ended by itself" in soak.out
        long = "head -c 300000 /dev/zero | tr '\\0' x; echo; sleep 0.3; echo DEVICE_LOST; sleep 60"
        path = plan(tmp_path, {"url": served.url}, watch={"command": long, "grace": 0.1}, **keys)
        assert soak("run", path, "-o", tmp_path / "b") == 1
        assert len(events(tmp_path / "b", "lost")) == 1


def test_a_gauge_that_is_no_number(soak: Soak, tmp_path: Path) -> None:
    page = "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running NaN\nvllm:num_requests_waiting +Inf\n"
    with Served(Faults(pages={"/metrics": page})) as served:
        assert soak("run", "--url", served.url, "--generations", 8, "-o", tmp_path / "r") == 0
    assert soak("report", tmp_path / "r") == 0


def test_pauses_between_sessions_are_no_load(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(delay=0.01)) as served:
        path = plan(tmp_path, {"url": served.url, "name": "s"}, concurrency=4, max_tokens=40, stop={"seconds": 60})
        assert soak("run", path, "--generations", 40, "-o", tmp_path / "r") == 0
        threading.Event().wait(2.0)
        assert soak("run", path, "--generations", 80, "-o", tmp_path / "r") == 0
    assert soak("report", tmp_path / "r", "--format", "json") == 0
    assert json.loads(soak.out)["servers"][0]["speed"]["seconds"] < 1.5


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40))
def test_an_answer_is_a_twin_only_of_another_prompt(asked: list[tuple[int, int]]) -> None:
    answers, known = Answers(), dict[int, tuple[int, int]]()
    for n, (prompt, text) in enumerate(asked):
        first, of = known.setdefault(text, (n, prompt))
        assert answers.twin(n, f"prompt {prompt}", ended(text)) == (None if of == prompt else first)
        assert answers.twin(n, "another", ended(text)[: LEAST - 1]) is None


def test_only_recent_answers_are_remembered() -> None:
    answers = Answers()
    assert [answers.twin(n, [n], ended(n)) for n in range(RECENT + 2)] == [None] * (RECENT + 2)
    assert answers.twin(-1, "x", ended(0)) is None
    assert answers.twin(-1, "x", ended(5)) == 5
