"""One launch command, three modes: eager, compiled, compiled with graphs; the same load on each; the origin table.

Starts and ends server processes; knows no more of them than a command line, an environment and a URL. The modes
differ in the two switches and, so that none runs another's code, in the folders of their compile caches; in nothing
else.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from esimd_soak import plan
from esimd_soak.judge import drafts
from esimd_soak.judge.acceptance import MatrixRow, diagnose
from esimd_soak.judge.analysis import analyse
from esimd_soak.judge.drafts import Counts
from esimd_soak.load import client, pages, watch
from esimd_soak.load.reading import decode
from esimd_soak.load.run import Run
from esimd_soak.model import ToolError
from esimd_soak.store import table

CACHES = ("VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


class Mode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    arguments: str = ""
    environment: dict[str, str] = {}


MODES = (
    Mode("eager", "--enforce-eager"),
    Mode("torch.compile"),
    Mode("torch.compile + XPU graph", environment={"VLLM_XPU_ENABLE_XPU_GRAPH": "1"}),
)


class Matrix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    launch: str
    """The command that serves; a mode's arguments are added at its end."""
    url: str
    load: dict[str, Any] = {}
    """A soak plan without servers: what is sent in each mode, the same seed and so the same prompts."""
    workload: str = ""
    """Instead of `load`: a command; `{result}` in it is the file for its JSON (`--result-filename {result}`)."""
    ready_seconds: float = 900
    mode: tuple[Mode, ...] = MODES


def load(path: str) -> Matrix:
    try:
        found = msgspec.convert(plan.document(path), Matrix)
    except msgspec.ValidationError as error:
        raise ToolError(f"the matrix is wrong: {error}", path) from None
    return msgspec.structs.replace(found, url=plan.base(found.url)[0])


def run(matrix: Matrix, folder: Path, tell: Callable[[str], None]) -> list[MatrixRow]:
    """Runs every mode in turn. ToolError when a server does not come up; the modes before are kept in `folder`."""
    rows = []
    for letter, mode in zip("ABCDEFGH", matrix.mode, strict=False):
        place = folder / letter
        place.mkdir(parents=True, exist_ok=True)
        tell(f"{letter} {mode.name}: starting the server")
        with served(matrix, mode, place):
            tell(f"{letter} {mode.name}: loading")
            rows.append(_measure(matrix, mode, letter, place))
    return rows


@contextmanager
def served(matrix: Matrix, mode: Mode, place: Path) -> Iterator[None]:
    """A server process that answers /health inside, and is gone with its children outside."""
    environment = {
        **os.environ,
        **{name: str((place / "caches" / name).resolve()) for name in CACHES},
        **mode.environment,
    }
    command = [*shlex.split(matrix.launch), *shlex.split(mode.arguments)]
    (place / "command.txt").write_text(f"{mode.environment} {shlex.join(command)}\n")
    with (place / "server.log").open("wb") as log:
        try:
            process = subprocess.Popen(
                command, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            raise ToolError(f"cannot start the server: {error}", command[0]) from None
    try:
        _wait(matrix, process, place / "server.log")
        yield
    finally:
        for signum in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, signum)  # the group: a server has workers, and they hold the card
                process.wait(30)


def _wait(matrix: Matrix, process: subprocess.Popen[bytes], log: Path) -> None:
    import urllib.error
    import urllib.request

    deadline = time.monotonic() + matrix.ready_seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            tail = log.read_text("utf-8", "replace")[-800:]
            raise ToolError(f"the server ended with {process.returncode} before it was ready:\n{tail}", str(log))
        try:
            with urllib.request.urlopen(f"{matrix.url}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise ToolError(f"the server did not answer {matrix.url}/health within {matrix.ready_seconds:g} s", str(log))


def _measure(matrix: Matrix, mode: Mode, letter: str, place: Path) -> MatrixRow:
    if matrix.workload:
        result = place / "bench.json"
        counts = asyncio.run(
            around(matrix.url, lambda: _command(matrix.workload.replace("{result}", str(result)), place))
        )
        bench, _ = decode(result.read_bytes()) if result.exists() else ({}, "")
        bench = bench if isinstance(bench, dict) else {}
        itl, speed = _number(bench.get("mean_itl_ms")), _number(bench.get("output_throughput"))
    else:
        made = plan.make({**matrix.load, "server": [{"url": matrix.url, "name": mode.name}]}, "load")
        counts = asyncio.run(around(matrix.url, Run(made, place / "run").go))
        found = analyse(table.read([place / "run"])).servers[0].speed
        itl, speed = 1000 * found.itl.mean if found.itl else None, found.tokens_per_second
    return MatrixRow(letter, mode.name, itl, speed, diagnose(counts) if counts else None)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


async def around(url: str, workload: Callable[[], Any]) -> list[Counts]:
    """The speculative counters' deltas around a workload; none when the server has none, or nothing was drafted."""
    server = plan.make({"server": [{"url": url}], "batches": 1}, url).server[0]
    async with client.session(60) as http:
        before = await pages.fetch(http, server, "/metrics")
        await workload()
        after = await pages.fetch(http, server, "/metrics")
    if before is None or after is None:  # no such page; the answers may tell
        return []
    values = watch.deltas(watch.counters(before), watch.counters(after))
    told = values.get(f"{drafts.PREFIX}drafts") or values.get(drafts.RATE)
    return drafts.of_counters(values) if told else []


async def _command(command: str, place: Path) -> None:
    process = await asyncio.create_subprocess_shell(
        command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    (place / "workload.log").write_bytes(output)
    if process.returncode:
        raise ToolError(f"the workload ended with {process.returncode}: {command}", str(place / "workload.log"))
