"""Runs pip to build the wheel of a tree, with its log kept. Knows processes; knows nothing of operators.

The build is made to give the same bytes wherever and whenever it runs: paths in the objects are mapped, times come from
SOURCE_DATE_EPOCH, and no isolation brings other tools than those that are installed. When it is interrupted, the whole
family of its processes ends.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from schema_patch.model import ToolError

from .driver import home

STEP = re.compile(r"^\s*\[(\d+)/(\d+)\] (.*)")
SOURCE = re.compile(r" (\S+\.(?:c|cc|cpp|cxx|cu|sycl)) -o ")
# What ninja says of a step that failed: its command, and then what the compiler said.
FAILED = re.compile(r"^ *FAILED: .*\n.*\n((?:(?! *(?:\[\d+/\d+\] |ninja: |FAILED: )).*\n)+)", re.MULTILINE)
GRACE = 5  # seconds between being asked to end and being ended
Hears = Callable[[str], None]
Counts = Callable[[int], None]
LAST_WORDS = 12  # lines of the log that a failure shows, where no compiler has said why


@dataclass(frozen=True, slots=True)
class Settings:
    """How to build. `epoch`: seconds since 1970 that files in the wheel are dated with."""

    python: str
    scripts: str
    jobs: int
    epoch: int
    arch: str = ""  # for TORCH_XPU_ARCH_LIST; empty leaves it alone
    prefix: str = ""  # of the interpreter: its headers and torch's are under it
    libraries: str = ""  # where the host's linker finds what SYCL's compiler links by itself
    variables: tuple[tuple[str, str], ...] = ()  # of a compiler's home, those of paths before the user's


def environment(source: Path, settings: Settings, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of the build: the user's, with what makes it the same everywhere."""
    # Of several that fit a path, the last counts.
    places = {settings.prefix: "python", dict(settings.variables).get("CMPLR_ROOT", ""): "compiler", str(source): "."}
    mapped = shlex.join(f"-ffile-prefix-map={place}={name}" for place, name in places.items() if place)
    env = {
        **inherited,
        "PATH": os.pathsep.join((settings.scripts, inherited.get("PATH", os.defpath))),
        "SOURCE_DATE_EPOCH": str(settings.epoch),
        "PYTHONHASHSEED": "0",
        "MAX_JOBS": str(settings.jobs),
        # Not CFLAGS, which would take the place of the interpreter's own, the level of optimisation among them.
        "CPPFLAGS": f"{inherited.get('CPPFLAGS', '')} {mapped}".strip(),
    }
    if settings.arch:
        env["TORCH_XPU_ARCH_LIST"] = settings.arch
    env = home.joined(dict(settings.variables), env)
    if settings.libraries:
        env["LIBRARY_PATH"] = os.pathsep.join(filter(None, (inherited.get("LIBRARY_PATH"), settings.libraries)))
    return env


def build(
    source: Path, into: Path, log: Path, settings: Settings, called: Path, progress: Hears,
    expect: Counts = lambda _: None,
) -> Path:  # fmt: skip
    """The wheel of a tree, a copy of one that is `called` otherwise. Raises ToolError with why there is none.

    `progress` hears what is being compiled, `expect` how much there is of it.
    """
    argv = [
        *(settings.python, "-m", "pip", "wheel", "-v", "--disable-pip-version-check", "--no-input"),
        *("--no-build-isolation", "--no-deps", "--wheel-dir", str(into), str(source)),
    ]
    env = environment(source, settings, os.environ)
    with open(log, "wb", buffering=0) as record:  # who follows it sees each line when it is said
        record.write(f"$ {shlex.join(argv)}\n".encode("utf-8", "surrogateescape"))
        code = _run(argv, env, record, progress, expect)
    wheels = sorted(into.glob("*.whl"))
    if code:
        why = _why(log.read_text("utf-8", "replace").replace(str(source), str(called)))
        raise ToolError(f"the build failed with exit code {code}; {why}", str(log))
    if len(wheels) != 1:
        raise ToolError(f"expected one wheel, found {', '.join(w.name for w in wheels) or 'none'}", str(log))
    return wheels[0]


def _run(argv: list[str], env: dict[str, str], record: IO[bytes], progress: Hears, expect: Counts) -> int:
    # A session of its own: ctrl-C comes to us, and we end all that the build has started.
    process = subprocess.Popen(
        argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                record.write(line)
                _tell(line.decode(errors="replace"), progress, expect)
            return process.wait()
        finally:
            _end(process)


def _tell(line: str, progress: Hears, expect: Counts) -> None:
    match = STEP.match(line)
    if not match:
        return
    step, steps, command = match.groups()
    if step == "1":
        expect(int(steps))
    compiled = SOURCE.search(command)
    progress(os.path.basename(compiled[1]) if compiled else command.strip()[-60:])


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends what is left of the session: first pip, which leads it, then what pip has started."""
    for way in (signal.SIGTERM, signal.SIGKILL):
        for _ in range(GRACE * 20):
            try:
                os.killpg(process.pid, way)
            except ProcessLookupError:
                return
            process.poll()
            time.sleep(0.05)


def _why(said: str) -> str:
    """What compilers have said of the steps that failed, each message once; without any, the end of the log."""
    failed = dict.fromkeys(textwrap.dedent(match[1]).rstrip() for match in FAILED.finditer(said))
    if failed:
        return "what failed said:\n" + textwrap.indent("\n".join(failed), "    ")
    lines = said.splitlines()
    errors = [line for line in lines if re.search(r"\b(?:fatal )?error\b", line, re.IGNORECASE)]
    return "the end of its log:\n" + textwrap.indent("\n".join([*errors[:3], "…", *lines[-LAST_WORDS:]]), "    ")
