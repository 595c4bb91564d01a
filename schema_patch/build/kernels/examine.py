"""Images -> the facts of each kernel on each device that was asked for.

Machine code for the device is taken as it is in the library, which is what a card would run; a kernel that has none is
compiled from its SPIR-V, as the runtime would do at first use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from schema_patch.build.driver import disassembly, notes, objects, offline, processes
from schema_patch.build.driver.notes import Notes
from schema_patch.elf import targets
from schema_patch.model import ToolError
from schema_patch.schemas import cards

from . import assembly, demangle, images, lines, spirv
from .images import FoundImage
from .model import Division, Document, ExaminedKernel, Resident

VERSION = 1
OPTIONS = ".misc.buildOptions"
SPIRV_SECTION = re.compile(r"\.spv(\..*)?")


@dataclass(frozen=True, slots=True)
class Task:
    """One image to look at, for one device: machine code, or SPIR-V to compile."""

    image: FoundImage
    ip: str
    only: frozenset[str]


def devices(names: Sequence[str]) -> tuple[str, ...]:
    """The devices that people mean by some names, as `run` takes them. Raises ToolError for an unknown one."""
    return tuple(dict.fromkeys(ip for name in names for ip in targets.wanted(name)))


def run(
    path: Path, ips: Sequence[str], words: Sequence[str], jobs: int, progress: Callable[[str], None], only: str = ""
) -> Document:
    """Raises ToolError where nothing can be looked at; an image that cannot is named in `failed`.

    `words`: for the compiler, where `path` is a source. `only`: kernels whose name has this in it.
    """
    compiler = offline.find()
    offline.check_devices([targets.title(ip) for ip in ips])
    kernels: list[ExaminedKernel] = []
    failed: list[str] = []
    pool = ThreadPoolExecutor(max_workers=jobs)
    try:
        tasks = _tasks(images.find(path, words, ips, progress), ips, only)
        for task, told in _in_order(pool, tasks, jobs):
            if isinstance(told, ToolError):
                names = ", ".join(demangle.title(name) for name in sorted(task.only)[:3])
                failed.append(f"{names} for {targets.title(task.ip)}: {told}")
            else:
                kernels += told
                progress(told[-1].title if told else task.image.where)
    except KeyboardInterrupt:
        processes.end_all()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    if not kernels and not failed:
        named = f" whose name has {only!r} in it" if only else ""
        raise ToolError(f"expected kernels for a device{named}, found none", str(path))
    kernels.sort(key=lambda kernel: (kernel.target, kernel.title, kernel.where))
    return Document(VERSION, compiler.told.partition(" (")[2].rstrip(")"), tuple(kernels), tuple(failed))


Told = list[ExaminedKernel] | ToolError


def _in_order(pool: ThreadPoolExecutor, tasks: Iterator[Task], jobs: int) -> Iterator[tuple[Task, Told]]:
    """Results in the order of their tasks, with no more images in memory than are being worked on."""
    waiting = []
    for task in tasks:
        waiting.append((task, pool.submit(_told, task)))
        if len(waiting) > 2 * jobs:
            first, future = waiting.pop(0)
            yield first, future.result()
    for task, future in waiting:
        yield task, future.result()


def _told(task: Task) -> Told:
    try:
        return list(_kernels(task))
    except ToolError as error:
        return error


def _tasks(found: Iterator[FoundImage], ips: Sequence[str], only: str) -> Iterator[Task]:
    """For each device and kernel one task; SPIR-V waits until all machine code was seen."""
    done: set[tuple[str, str, str]] = set()  # device, library, kernel
    kept: dict[tuple[str, str], FoundImage] = {}  # by library and kernel
    for image in found:
        names = frozenset(name for name in image.kernels if only in demangle.title(name))
        if not names:
            continue
        for ip in ips:
            # A library may hold one and the same machine code under several names of a device.
            new = frozenset(name for name in names if (ip, image.where, name) not in done)
            if new and image.runs(ip):
                done.update((ip, image.where, name) for name in new)
                yield Task(image, ip, new)
        source = image if image.spirv else _within(image) or image
        for name in names:
            if image.spirv or (image.where, name) not in kept:
                kept[image.where, name] = source
    for ip in ips:
        left: dict[int, tuple[FoundImage, set[str]]] = {}
        for (where, name), image in kept.items():
            if (ip, where, name) not in done:
                left.setdefault(id(image), (image, set()))[1].add(name)
        for image, names_left in left.values():
            yield Task(image, ip, frozenset(names_left))


def _within(image: FoundImage) -> FoundImage | None:
    """The SPIR-V that machine code was made from, where the compiler left it there, with the options it was given."""
    parts = dict(objects.sections(image.data, image.where))
    module = next((data for name, data in parts.items() if SPIRV_SECTION.fullmatch(name)), None)
    words = parts.get(OPTIONS, b"").decode("ascii", "replace").strip("\0 ").split()
    return images.image(image.where, module, words) if module else None


def _kernels(task: Task) -> Iterator[ExaminedKernel]:
    device = targets.title(task.ip)
    image, code, conflicts = task.image, task.image.data, None
    module = None
    if image.spirv:
        module = image.data
        words = image.options or (("-vc-codegen",) if spirv.for_vector_compiler(module) else ())
        made = disassembly.compiled(module, device, words)
        code, conflicts = made.code, made.conflicts
    elif not image.runs(task.ip):
        raise ToolError(f"there is machine code for {image.codes[0].target} and no SPIR-V to compile", image.where)
    elif inner := _within(image):
        module = inner.data
    sections = dict(objects.sections(code, image.where))
    if notes.SECTION not in sections:
        raise ToolError(f"expected machine code with notes ({notes.SECTION}), found none", image.where)
    facts = notes.read(sections[notes.SECTION].decode("utf-8", "replace"), image.where)
    places = lines.read(code)
    divisions = spirv.divisions(module) if module else {}
    for name, text in disassembly.listings(code, device).items():
        if name in task.only and name in facts:
            found = None if conflicts is None else conflicts.get(name)
            yield _kernel(name, task, text, facts[name], places.get(name) or lines.Lines(), divisions.get(name), found)


def _kernel(
    name: str,
    task: Task,
    text: str,
    facts: Notes,
    places: lines.Lines,
    divisions: tuple[Division, ...] | None,
    conflicts: int | None,
) -> ExaminedKernel:
    listing = assembly.read(text, places.at)
    return ExaminedKernel(
        name=name,
        title=demangle.title(name),
        target=targets.title(task.ip),
        where=task.image.where,
        compiled=task.image.spirv,
        instructions=dict(listing.instructions),
        loops=listing.loops,
        accesses=listing.accesses,
        bank_conflicts=conflicts,
        divisions=divisions,
        line=places.first,
        resident=dict(_resident(task.ip, facts)),
        **msgspec.structs.asdict(facts),
    )


def _resident(ip: str, facts: Notes) -> Iterator[tuple[str, Resident]]:
    """Groups exactly where the source fixes their size; else at most: of one thread, with the local memory it needs."""
    each = -(-facts.group_items // facts.simd_size) if facts.group_items else 1
    for card in cards.running(ip):
        held = cards.groups(card, each, facts.grf_count, facts.slm_size)
        exact = facts.group_items is not None and not facts.launched_local
        yield card.names[0], Resident(cards.threads(card, facts.grf_count), held, exact)
