"""Objects with a device side -> one object that registers it, or a linked library or program."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from schema_patch.model import ToolError

from . import absent, hostside, images, merging, objects, offline
from .frontend import DeviceImage, Properties
from .options import Compilation
from .processes import Voice, scratch
from .runtime import Runtime

GENERIC, NATIVE = "spir64", "spir64_gen"
RECORD = "SCHEMA_PATCH_DRIVER_RECORD"  # a folder: each device link leaves there what it made of what


class Linked(msgspec.Struct, frozen=True):
    """What one device link made: for build.json."""

    output: str
    front_end: str
    runtime: str
    offline: str
    igc: str
    devices: tuple[str, ...]
    options: tuple[str, ...]
    kernels: int
    modules: int
    spills: dict[str, int]


def device_link(plan: Compilation, inputs: Sequence[str], output: str, runtime: Runtime, voice: Voice) -> None:
    """Writes the object with all images of the inputs."""
    payloads = [payload for path in inputs for payload in objects.payloads(path)]
    modules = merging.images(payloads, runtime.name)
    natives = [target for target in plan.targets if target != GENERIC]
    if natives and not plan.devices:
        raise ToolError('-fsycl-targets=spir64_gen expects a device: -Xs "-device bmg" (TORCH_XPU_ARCH_LIST=bmg)')
    carried: list[images.Carried] = []
    spills: dict[str, int] = {}
    if natives and modules:
        offline.check_devices(plan.devices)
        jobs = plan.jobs or max(1, int(os.environ.get("MAX_JOBS") or len(os.sched_getaffinity(0))))
        machines = offline.compile_all(modules, plan.devices, plan.backend, jobs, voice)
        for module, machine in zip(modules, machines, strict=True):
            spills.update(machine.spills)
            properties = _targeted(module.properties, plan)
            carried.append(images.Carried(NATIVE, machine.code, module.entries, properties))
    if GENERIC in plan.targets:
        carried += [images.Carried(GENERIC, module.spirv, module.entries, module.properties) for module in modules]
    for name, size in sorted(spills.items()):
        voice.say(f"icpx: note: kernel {name} keeps {size} bytes in memory for want of registers")
    with scratch() as work:
        text = images.assembly(carried, runtime.major, plan.level if plan.compress else None, work) if carried else ""
        made = os.path.join(work, "linked.o")
        stand_ins = absent.source(inputs) if os.environ.get(absent.VARIABLE) else ""
        hostside.assemble(text, stand_ins, made, work)
        put(made, output)
    _record(plan, output, runtime, modules, bool(natives), spills)


def link(plan: Compilation, words: Sequence[str], output: str, runtime: Runtime, voice: Voice) -> None:
    """Links a library or program, its device side included. `words`: objects and linker options in their order."""
    with scratch() as work:
        side = os.path.join(work, "device.o")
        objects_of = [word for word in words if not word.startswith("-") and os.path.isfile(word)]
        device_link(plan, objects_of, side, runtime, voice)
        made = os.path.join(work, "linked")
        search = [f"-L{runtime.library}", "-lsycl", f"-Wl,-rpath,{runtime.library}", "-Wl,--enable-new-dtags"]
        host = plan.host if plan.host_only is None else plan.host_only
        voice.say(hostside.link([*host, *words, side, *search, "-o", made]))
        put(made, output)


def records(folder: Path) -> tuple[Linked, ...]:
    """What the device links of a build have left in its folder, in the order of their outputs."""
    paths = folder.glob("*.json") if folder.is_dir() else ()
    return tuple(
        sorted((msgspec.json.decode(path.read_bytes(), type=Linked) for path in paths), key=lambda r: r.output)
    )


def put(made: str, output: str) -> None:
    """Moves a finished file to where it was asked for, whole or not at all."""
    target = Path(output)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(made, "rb") as file:
            temporary.write_bytes(file.read())
        os.chmod(temporary, os.stat(made).st_mode & 0o777)
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ToolError(f"cannot write: {error.strerror}", output) from error


def _targeted(properties: Properties, plan: Compilation) -> Properties:
    """With -fsycl-targets=intel_gpu_X, the runtime is told on which device alone the code runs."""
    named = [target for target in plan.targets if target.startswith("intel_gpu_")]
    if len(named) != 1 or len(plan.devices) != 1:
        return properties
    named_target = ("compile_target", named[0].encode())
    required = "SYCL/device requirements"
    return [(group, sorted([*values, named_target]) if group == required else values) for group, values in properties]


def _record(
    plan: Compilation,
    output: str,
    runtime: Runtime,
    modules: Sequence[DeviceImage],
    natives: bool,
    spills: dict[str, int],
) -> None:
    folder = os.environ.get(RECORD)
    if not folder:
        return
    compiler = offline.find() if natives and modules else None
    made = Linked(
        output=output,
        front_end=runtime.version,
        runtime=runtime.name,
        offline=compiler.version if compiler else "",
        igc=compiler.igc if compiler else "",
        devices=plan.devices,
        options=plan.backend,
        kernels=len({name for module in modules for name in module.entries}),
        modules=len(modules),
        spills=dict(sorted(spills.items())),
    )
    handle, _ = tempfile.mkstemp(dir=folder, suffix=".json")
    with os.fdopen(handle, "wb") as file:
        file.write(msgspec.json.encode(made))
