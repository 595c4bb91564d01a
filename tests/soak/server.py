"""A loopback server that speaks the OpenAI and Prometheus formats, with faults at set rates.

In-process (`Served`) for tests, or a process of its own: `python tests/soak/server.py --port 0 --collapse 0.002`.
Whether a request collapses is decided by its own `seed` field (seed - plan seed = request number), so a test knows the truth.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

ENGLISH = (
    "The river went on past the mill and the men who worked there spoke of weather, of work and of the road home. "
)


@dataclass
class Faults:
    """Chances are per request; `bursts` are (first, last) request numbers that collapse, whatever the chance."""

    delay: float = 0.0
    collapse: float = 0.0
    bursts: tuple[tuple[int, int], ...] = ()
    text: str = "!" * 200
    error: float = 0.0
    cut: float = 0.0
    wrong_json: float = 0.0
    hang: float = 0.0
    nan: float = 0.0
    nan_as: str = "json"  # or "500"
    empty: float = 0.0
    lost_after: int = 0
    unhealthy_after: int = 0
    metrics: bool = True
    counts_nan: bool = True
    spec: Callable[[int], tuple[int, ...]] | None = None  # number of the draft -> accepted at each position
    greedy: Callable[[str], str] | None = None
    script: Callable[[web.Request, int], Awaitable[web.StreamResponse]] | None = None  # answers instead of all this
    pages: dict[str, object] = field(default_factory=dict)  # more pages that the server has
    model: str = "tiny"


@dataclass
class State:
    faults: Faults
    served: int = 0
    collapsed: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    corrupted: int = 0
    running: int = 0
    most: int = 0
    spec: dict[str, int] = field(default_factory=lambda: {"drafts": 0, "draft_tokens": 0, "accepted": 0})
    per_position: list[int] = field(default_factory=lambda: [0, 0, 0])


STATE: web.AppKey[State] = web.AppKey("state", State)
SEED: web.AppKey[int] = web.AppKey("seed", int)


def text_of(state: State, n: int, tokens: int) -> tuple[str, str]:
    """(text, fault) of request `n`: the same answer for the same number, as a seeded server gives."""
    faults, source = state.faults, random.Random(n)
    if n >= 0:
        if any(first <= n <= last for first, last in faults.bursts) or source.random() < faults.collapse:
            return faults.text, "collapse"
        draw = source.random()
        for name in ("error", "cut", "wrong_json", "hang", "nan", "empty"):
            chance = getattr(faults, name)
            if draw < chance:
                return ("" if name == "empty" else ENGLISH), name
            draw -= chance
    start = source.randrange(len(ENGLISH))
    words = (ENGLISH[start:] + ENGLISH).split()
    source.shuffle(words)
    return " ".join(words[:tokens]), ""


async def answer(request: web.Request) -> web.StreamResponse:
    state: State = request.app[STATE]
    body = await request.json()
    chat = request.path.endswith("chat/completions")
    n = body.get("seed", 0) - request.app[SEED]
    n -= 2**31 if n >= 2**30 else 0  # warm-up has negative numbers
    if state.faults.script is not None:
        state.numbers.append(n)
        return await state.faults.script(request, n)
    state.running += 1
    state.most = max(state.most, state.running)
    try:
        return await _answer(request, state, body, chat, n)
    finally:
        state.running -= 1


async def _answer(request: web.Request, state: State, body: dict[str, Any], chat: bool, n: int) -> web.StreamResponse:
    faults = state.faults
    state.served += 1
    state.numbers.append(n)
    if len(state.bodies) < 50:
        state.bodies.append(body)
    if faults.lost_after and state.served > faults.lost_after:
        return web.json_response({"error": {"message": "level zero: UR_RESULT_ERROR_DEVICE_LOST (20)"}}, status=500)
    if faults.delay:
        await asyncio.sleep(faults.delay)
    text, fault = text_of(state, n, body["max_tokens"])
    if faults.greedy is not None:
        text = faults.greedy(str(body.get("prompt") or body.get("messages")))
    if fault == "collapse":
        state.collapsed.append(n)
    if fault in ("collapse", "nan") and faults.counts_nan:
        state.corrupted += 1
    if faults.spec is not None:
        state.spec["drafts"] += 1
        accepted = faults.spec(state.spec["drafts"])
        state.spec["draft_tokens"] += len(state.per_position)
        state.spec["accepted"] += sum(accepted)
        state.per_position = [a + b for a, b in zip(state.per_position, accepted, strict=True)]
    if fault == "error":
        return web.json_response({"error": {"message": "engine is on fire", "code": 500}}, status=500)
    if fault == "nan" and faults.nan_as == "500":
        words = "Out of range float values are not JSON compliant"
        return web.json_response({"error": {"message": words}}, status=500)
    if fault == "hang":
        await asyncio.sleep(60)
    value = float("nan") if fault == "nan" and body.get("logprobs") else -0.5
    pieces = [text[i : i + 40] for i in range(0, len(text), 40)] or [""]
    usage = {"prompt_tokens": 7, "completion_tokens": max(1, len(text) // 4)}
    if fault == "wrong_json" and not body.get("stream"):
        return web.Response(text='{"choices": [', content_type="application/json")
    if not body.get("stream"):
        choice: dict[str, Any] = {"index": 0, "finish_reason": "length"}
        choice |= {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        if body.get("logprobs"):
            choice["logprobs"] = {"content": [{"logprob": value}]} if chat else {"token_logprobs": [None, value]}
        return web.Response(text=json.dumps({"choices": [choice], "usage": usage}), content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for i, piece in enumerate(pieces):
        choice = {"index": 0} | ({"delta": {"content": piece}} if chat else {"text": piece})
        if i + 1 == len(pieces):
            choice["finish_reason"] = "length"
        if body.get("logprobs"):
            choice["logprobs"] = {"content": [{"logprob": value}]} if chat else {"token_logprobs": [value]}
        if fault == "cut" and i + 1 == len(pieces):
            if request.transport is not None:
                request.transport.close()
            return response
        data = json.dumps({"choices": [choice]}) if fault != "wrong_json" else '{"choices": ['
        await response.write(f"data: {data}\n\n".encode())
    await response.write(f"data: {json.dumps({'choices': [], 'usage': usage})}\n\ndata: [DONE]\n\n".encode())
    return response


async def metrics(request: web.Request) -> web.Response:
    state: State = request.app[STATE]
    if "/metrics" in state.faults.pages:
        return await page(request)
    if not state.faults.metrics:
        raise web.HTTPNotFound
    labels = 'engine="0",model_name="tiny"'
    values = {
        "vllm:num_requests_running": state.running,
        "vllm:num_requests_waiting": 0,
        "vllm:corrupted_requests_total": state.corrupted,
        "vllm:generation_tokens_total": state.served * 16,
    }
    lines = []
    if state.faults.spec is not None:
        values["vllm:spec_decode_num_drafts_total"] = state.spec["drafts"]
        values["vllm:spec_decode_num_draft_tokens_total"] = state.spec["draft_tokens"]
        values["vllm:spec_decode_num_accepted_tokens_total"] = state.spec["accepted"]
        name = "vllm:spec_decode_num_accepted_tokens_per_pos"
        lines.append(f"# TYPE {name} counter")
        lines += [f'{name}_total{{{labels},position="{i}"}} {float(v)}' for i, v in enumerate(state.per_position)]
    for name, value in values.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# HELP {name} words", f"# TYPE {name} {kind}", f"{name}{{{labels}}} {float(value)}"]
    return web.Response(text="\n".join(lines) + "\n")


async def health(request: web.Request) -> web.Response:
    state: State = request.app[STATE]
    sick = 0 < state.faults.unhealthy_after < state.served
    return web.Response(status=503 if sick else 200)


async def models(request: web.Request) -> web.Response:
    return web.json_response({"data": [{"id": request.app[STATE].faults.model}]})


async def page(request: web.Request) -> web.Response:
    told = request.app[STATE].faults.pages.get(request.path)
    if told is None:
        raise web.HTTPNotFound
    return web.Response(text=told) if isinstance(told, str) else web.json_response(told)


def make(faults: Faults, seed: int = 0) -> tuple[web.Application, State]:
    app = web.Application()
    app[STATE] = state = State(faults)
    app[SEED] = seed
    for path in ("/v1/completions", "/v1/chat/completions"):
        app.router.add_post(path, answer)
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/health", health)
    app.router.add_get("/v1/models", models)
    app.router.add_get("/{page:.*}", page)
    return app, state


class Served:
    """A server in a thread of its own, so that a client's event loop is not the server's: `with Served(...) as s`."""

    def __init__(self, faults: Faults | None = None, seed: int = 0, port: int = 0) -> None:
        self.app, self.state = make(faults or Faults(), seed)
        self._port, self._ready, self._loop = port, threading.Event(), asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._start())
        self._ready.set()
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(self._runner.cleanup())
        self._loop.close()

    async def _start(self) -> None:
        self._runner = web.AppRunner(self.app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    def __enter__(self) -> Served:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)


def healthy(i: int) -> tuple[int, ...]:
    """Accepts like the compiled origin run: 91, 86 and 80 %."""
    return (1, 1, 1) if i % 100 < 80 else (1, 1, 0) if i % 100 < 86 else (1, 0, 0) if i % 100 < 91 else (0, 0, 0)


def stale(i: int) -> tuple[int, ...]:
    return (int(i % 200 == 0), 0, 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--enforce-eager", action="store_true")
    parser.add_argument("--spec", action="store_true")
    parser.add_argument("--fail", action="store_true")
    for name in ("delay", "collapse", "error", "hang"):
        parser.add_argument(f"--{name}", type=float, default=0.0)
    given = vars(parser.parse_args())
    if given.pop("fail"):
        raise SystemExit("no card found")
    given.pop("enforce_eager")
    graph = os.environ.get("VLLM_XPU_ENABLE_XPU_GRAPH") == "1"
    spec = (stale if graph else healthy) if given.pop("spec") else None
    port = given.pop("port")
    with Served(Faults(spec=spec, **given), port=port) as served:
        print(served.url, flush=True)
        threading.Event().wait()
