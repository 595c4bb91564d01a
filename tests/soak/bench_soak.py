"""The client's speed and memory, and the report's, measured: `python tests/soak/bench_soak.py [client] [memory] [report]`.

No test: times depend on the machine. The server is a process of its own that answers from memory, so that what is measured
is the client: 64 in flight, whole answers of 128 words, every one scored and written to disk. Wanted: 1,000 requests a
second of an idle processor, half of which the score takes (740 were measured on one shared with thirty others), ten times
what a card of 48 in flight answers; flat memory; a million generations reported within 10 s and 1 GB.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from server import ENGLISH

from esimd_soak.load.run import Run
from esimd_soak.plan import make
from esimd_soak.store import folder as store
from esimd_soak.store.records import Event, Generation

MILLION = 1_000_000


class _Instant(asyncio.Protocol):
    """HTTP/1.1 just far enough: counts bodies by Content-Length and answers each from memory."""

    def __init__(self, answers: list[bytes], delay: float) -> None:
        self._answers, self._delay, self._data, self._served = answers, delay, b"", 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r", 1)[0]) if at >= 0 else 0
            if len(self._data) < end + 4 + length:
                return
            self._data = self._data[end + 4 + length :]
            self._served += 1
            models = head.startswith(b"get /v1/models")
            answer = self._answers[0 if models else self._served % (len(self._answers) - 1) + 1]
            if self._delay:
                asyncio.get_running_loop().call_later(
                    self._delay * random.uniform(0.5, 1.5), self._transport.write, answer
                )
            else:
                self._transport.write(answer)


def _answer(document: object) -> bytes:
    body = json.dumps(document).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _serve(ready: Connection, words: int, delay: float) -> None:
    source = random.Random(1)
    answers = [_answer({"data": [{"id": "tiny"}]})]
    for _ in range(50):
        text = " ".join(source.choices(ENGLISH.split(), k=words))
        usage = {"prompt_tokens": 8, "completion_tokens": words}
        answers.append(_answer({"choices": [{"text": text, "finish_reason": "length"}], "usage": usage}))

    async def go() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Instant(answers, delay), "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(go())


def _load(
    folder: Path, generations: int, words: int = 128, delay: float = 0.0
) -> tuple[float, dict[str, float], list[int]]:
    """(requests a second, the client's health, its memory in MB once a second)."""
    near, far = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(far, words, delay), daemon=True)
    process.start()
    server = {"url": f"http://127.0.0.1:{near.recv()}", "name": "s", "stream": False}
    keys = {"concurrency": 64, "prompt_lengths": "8", "stop": {"generations": generations}, "watch": {"seconds": 3600}}
    made = make({"server": [server], **keys}, "bench")
    memory: list[int] = []
    soak = Run(made, folder)
    began = time.perf_counter()
    asyncio.run(soak.go(lambda _: memory.append(_megabytes())))
    spent = time.perf_counter() - began
    process.terminate()
    process.join()
    return generations / spent, soak.health.values(), memory


def _megabytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 2**20


def client() -> None:
    """Flat out, and with a server that takes 10 to 30 ms: with 64 in flight, and idle time in between."""
    for words, delay in (("flat out", 0.0), ("at a server of 10 to 30 ms", 0.02)):
        with tempfile.TemporaryDirectory() as folder:
            speed, health, _ = _load(Path(folder) / "r", 30_000, delay=delay)
        print(
            f"client {words}: {speed:,.0f} scored requests/s, 64 in flight; own delay p50 {health['late_p50_ms']:.2f} ms, "
            f"p99 {health['late_p99_ms']:.2f} ms; event loop lag p99 {health['lag_p99_ms']:.2f} ms; "
            f"cpu {health['cpu']:.0%} of one, {speed / health['cpu']:,.0f} requests a CPU second"
        )


def memory() -> None:
    """A million generations, or as many as BENCH_GENERATIONS says."""
    wanted = int(os.environ.get("BENCH_GENERATIONS", MILLION))
    with tempfile.TemporaryDirectory() as folder:
        speed, _, used = _load(Path(folder) / "r", wanted, words=16)
    settled = used[len(used) // 10 :]
    print(
        f"memory: {wanted:,} generations at {speed:,.0f}/s; {settled[0]} MB after a tenth of them, {settled[-1]} MB at the end"
    )


def write_million(folder: Path, count: int = MILLION) -> None:
    source = random.Random(2)
    servers = [{"url": f"http://s{i}", "name": f"s{i}", "card": str(i)} for i in range(4)]
    kept = store.open_run(folder, make({"server": servers, "stop": {"generations": 1}}, "bench"))
    kept.add(Event(1.7e9, "began"))
    for i in range(count):
        bad = source.random() < 0.0025
        t = round(1.7e9 + i * 0.01, 4)
        kept.add(
            Generation(
                n=i // 4, server=f"s{i % 4}", card=str(i % 4), position=i // 4, planned=t, start=t + 0.0001, end=t + 9.5,
                first=t + 0.2, prompt_tokens=64, tokens=512, finish="length", run=500 if bad else 3, char="!" if bad else "",
                entropy=0.1 if bad else 4.2, kinds=("run",) if bad else (), chars=2048, text="!" * 500 if bad else "",
            )
        )  # fmt: skip
    kept.close()


def report() -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_million(Path(folder) / "r")
        size = sum(path.stat().st_size for path in (Path(folder) / "r").iterdir()) / 2**20
        words = [sys.executable, "-m", "esimd_soak", "report", f"{folder}/r", "--html", f"{folder}/r.html"]
        began = time.perf_counter()
        done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        spent = time.perf_counter() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 1
    print(
        f"report: {MILLION:,} generations ({size:,.0f} MB) in {spent:.1f} s ({used.ru_utime + used.ru_stime:.1f} s of CPU), peak {used.ru_maxrss / 1024:,.0f} MB"
    )


if __name__ == "__main__":
    for name in sys.argv[1:] or ["client", "report", "memory"]:
        {"client": client, "memory": memory, "report": report}[name]()
