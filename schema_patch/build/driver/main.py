"""The driver's command line. The only file here that ends the process."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Sequence

from schema_patch.model import ToolError

from . import compiling, hostside, link, offline, options
from .options import Action, Compilation
from .processes import Voice, scratch
from .runtime import Runtime, find

# Each build system that is told to call icpx looks for these words and the version behind them.
BANNER = """\
Intel-shaped SYCL compiler driver of schema-kit, DPC++/C++ front end {version} ({version}.0)
Target: x86_64-unknown-linux-gnu
Thread model: posix
Front end: {front_end} ({runtime})
Host compiler: {clang}
Offline compiler: {ocloc}"""


def main(argv: Sequence[str]) -> int:
    """0 done; 1 a source that does not compile or a command line that is refused; 130 interrupted."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _run(argv)
    except ToolError as error:
        text = str(error)
        print(text if re.search(": (fatal )?error:", text) else f"icpx: error: {text}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _say(text: str) -> None:
    if text.strip():
        print(text.rstrip("\n"), file=sys.stderr)


def _step(done: int, total: int) -> None:
    """One line that is written over, on a terminal; nothing elsewhere."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\rmachine code: {done} of {total} modules" + ("\n" if done == total else ""))
        sys.stderr.flush()


VOICE = Voice(_say, _step)


def _run(argv: Sequence[str]) -> None:
    plan = options.parse(argv)
    runtime = find()
    if plan.action is Action.VERSION:
        print(version(runtime))
        return
    if plan.dry:
        print(plan)
        return
    if plan.action is Action.COMPILE:
        _compile(plan, runtime)
    elif plan.action is Action.DEVICE_LINK:
        link.device_link(plan, plan.objects, plan.output or "a.out", runtime, VOICE)
    else:
        _whole(plan, runtime)


def version(runtime: Runtime) -> str:
    """What `--version` says. A part that is missing is named, not an error: the rest can still be asked for."""
    return BANNER.format(
        version=runtime.version,
        front_end=runtime.front_end,
        runtime=runtime.name,
        clang=_told(lambda: "{} ({})".format(*hostside.find())),
        ocloc=_told(lambda: offline.find().told),
    )


def _told(ask: Callable[[], str]) -> str:
    try:
        return ask()
    except ToolError as error:
        return f"none: {error.message}"


def _compile(plan: Compilation, runtime: Runtime) -> None:
    if plan.output and len(plan.sources) > 1:
        raise ToolError(f"option -o with -c expects one source, found {len(plan.sources)}")
    for source in plan.sources:
        stem = os.path.splitext(os.path.basename(source))[0]
        compiling.compile_source(plan, source, plan.output or f"{stem}.o", runtime, VOICE)


def _whole(plan: Compilation, runtime: Runtime) -> None:
    """Sources and objects to a library or a program in one go."""
    with scratch() as work:
        made = []
        for index, source in enumerate(plan.sources):
            output = os.path.join(work, f"{index}.o")
            compiling.compile_source(plan, source, output, runtime, VOICE)
            made.append(output)
        link.link(plan, [*made, *plan.objects], plan.output or "a.out", runtime, VOICE)
