"""One source -> one object: its device side by the front end, its host side by clang, both in one file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from . import arguments, frontend, hostside, layouts, objects
from .link import put
from .options import Compilation
from .processes import Voice, scratch
from .runtime import Runtime

LINES = "SCHEMA_PATCH_DRIVER_LINES"  # set: device code with line tables, for who looks at its machine code
# The front end optimizes nothing when it is asked for debug information in the ordinary way (-g).
WITH_LINES = ("-Xclang", "-debug-info-kind=line-tables-only")


def compile_source(plan: Compilation, source: str, output: str, runtime: Runtime, voice: Voice) -> None:
    """Raises ToolError with what a compiler says, at the line of the source, once."""
    with scratch() as work:
        made, depends = os.path.join(work, "made.o"), os.path.join(work, "host.d")
        if plan.sycl:
            dependencies = _both(plan, source, made, depends, runtime, voice)
        else:
            voice.say(hostside.compile_plain(plan, source, made, depends))
            dependencies = []
        put(made, output)
        if plan.depfile is not None:
            host = frontend.dependencies(Path(depends).read_text("utf-8", "surrogateescape"))
            found = [path for path in host if not path.startswith(f"{work}/")]
            same = {os.path.realpath(path) for path in found}
            more = [path for path in dependencies if os.path.realpath(path) not in same]
            _write_depends(plan, output, dict.fromkeys([*found, *more]))


def _both(plan: Compilation, source: str, made: str, depends: str, runtime: Runtime, voice: Voice) -> Iterable[str]:
    device = frontend.compile_device(source, device_words(plan), runtime)
    voice.say(device.log)
    kernels = arguments.kernels(device, source)
    payload = objects.Payload(
        source=source, runtime=runtime.name, front_end=runtime.version, images=device.images,
        kernels=tuple(kernels.values()),
    )  # fmt: skip
    headers = (arguments.header(device.header, kernels), device.footer)
    voice.say(hostside.compile_host(plan, source, made, depends, runtime, headers, objects.encoded(payload)))
    printed = Path(depends).with_name(hostside.LAYOUTS).read_text("utf-8", "surrogateescape")
    layouts.agree(device.layouts, layouts.read(printed, device.layouts), source)
    return device.dependencies


def device_words(plan: Compilation) -> list[str]:
    """What the front end is told. Its own level of optimization is -O2, whatever the host side is compiled with."""
    standard = [] if any(word.startswith("-std=") for word in plan.both) else [hostside.STANDARD]
    return [*standard, hostside.DECLSPEC, *plan.both, *plan.device, *(WITH_LINES if os.environ.get(LINES) else ())]


def _write_depends(plan: Compilation, output: str, paths: Iterable[str]) -> None:
    names = plan.depnames or (output,)
    files = [path for path in paths if plan.system_depends or not path.startswith("/usr/")]
    text = f"{' '.join(_escaped(name) for name in names)}: \\\n  " + " \\\n  ".join(map(_escaped, files)) + "\n"
    if plan.phony:
        text += "".join(f"\n{_escaped(path)}:\n" for path in files[1:])
    Path(plan.depfile or f"{os.path.splitext(output)[0]}.d").write_text(text, "utf-8", "surrogateescape")


def _escaped(path: str) -> str:
    return path.replace("$", "$$").replace(" ", "\\ ").replace("#", "\\#")
