"""Two builds in one tree, and builds that are ended in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from schema_patch.build.driver import cache, objects, offline

from .conftest import UNTOUCHED
from .pieces import SAYS, kernel, payload, program

DRIVER = (sys.executable, "-m", "schema_patch.build.driver")
KERNEL = (
    "#include <sycl/sycl.hpp>\nvoid run{0}(sycl::queue& q, int* x) {{ q.single_task([=] {{ *x = {0} + {1}; }}); }}\n"
)


def start(folder: Path, *words: str | Path, **variables: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*DRIVER, *map(str, words)], cwd=folder, env={**UNTOUCHED, **variables}, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[bytes], how: signal.Signals, begun: Callable[[], bool]) -> None:
    """Ends a build once it has begun: as a terminal does, all of it, or as a build system does, the one it has started."""
    deadline = time.monotonic() + 120
    while not begun():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    if how is signal.SIGINT:
        os.killpg(process.pid, how)
    else:
        process.send_signal(how)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert b"Traceback" not in said


def alive(pid: str) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and "Z" not in status.read_text().rsplit(")", 1)[1]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_device_link_leaves_nothing(tmp_path: Path, how: signal.Signals) -> None:
    """ctrl-C while modules are compiled: no output, no half an entry of the cache, no ocloc left."""
    script = SAYS.format(ids="exit 0", compile=f"echo $$ >> {tmp_path}/started; exec sleep 600")
    found = program(tmp_path / "ocloc", script)
    names = [f"kernel{i}" for i in range(10)]
    content = objects.encoded(
        payload("a.cpp", *((kernel(name), b"\x03\x02\x23\x07" + name.encode()) for name in names))
    )
    (tmp_path / "payload").write_bytes(content)
    (tmp_path / "a.cpp").write_text(objects.assembly(str(tmp_path / "payload")))
    subprocess.run(["c++", "-c", tmp_path / "a.cpp", "-o", tmp_path / "a.o"], check=True)
    words = ("-fsycl", "-fsycl-link", "a.o", "-o", "device.o", "-fsycl-targets=spir64_gen", "-Xs", "-device bmg")
    variables = {offline.VARIABLE: str(found), cache.VARIABLE: str(tmp_path / "cache"), "MAX_JOBS": "2"}
    started = tmp_path / "started"
    ended(start(tmp_path, *words, **variables), how, lambda: started.exists() and len(started.read_text().split()) == 2)
    assert not (tmp_path / "device.o").exists()
    assert not list((tmp_path / "cache").rglob("*")) or not list((tmp_path / "cache/machine").rglob("*.*"))
    assert not any(map(alive, started.read_text().split()))


def children(process: subprocess.Popen[bytes]) -> list[str]:
    try:
        return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    except FileNotFoundError:
        return []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_compilation_leaves_nothing(tmp_path: Path, how: signal.Signals) -> None:
    """Of ten sources in one call, ended while the front end is at work on the first."""
    names = [f"{i}.cpp" for i in range(10)]
    for i, name in enumerate(names):
        (tmp_path / name).write_text(KERNEL.format(i, time.time_ns() % 2**30))
    process = start(tmp_path, "-fsycl", "-c", *names, TMPDIR=str(tmp_path))
    seen: list[str] = []

    def begun() -> bool:
        seen[:] = children(process)
        return bool(seen) and any(tmp_path.glob("schema-patch-*"))

    ended(process, how, begun)
    assert not any(map(alive, seen))
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_two_builds_at_once_in_one_tree(tmp_path: Path) -> None:
    """Of the same source to the same object, with nothing in the cache: both end well, and the object is whole."""
    (tmp_path / "a.cpp").write_text(KERNEL.format(1, time.time_ns() % 2**30))
    words = ("-fsycl", "-c", "a.cpp", "-o", "a.o", "-MD", "-MF", "a.d")
    both = [start(tmp_path, *words) for _ in range(2)]
    said = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.cpp", "a.d", "a.o"]
    made = (tmp_path / "a.o").read_bytes()
    once = start(tmp_path, *words)
    assert once.communicate(timeout=300) == (None, b"")
    assert (tmp_path / "a.o").read_bytes() == made
