"""What paths hold, judged: the whole of `verify-schemas` but for its command line.

Knows what is told of it all. Reads with gather.py, judges with verify.py; an sdist, which has no binaries, by its C++.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from schema_patch.elf import reader, targets
from schema_patch.elf.sycl import sycl_major
from schema_patch.installed import runtime
from schema_patch.installed.packages import Placed
from schema_patch.model import Report, ToolError
from schema_patch.schemas import table as tables
from schema_patch.schemas.table import Table

from . import environment, judge
from .gather import Expect, Gathered, Progress, gather


def survey(paths: Iterable[str], **asked: Any) -> Report:
    """The report of survey_and_facts."""
    return survey_and_facts(paths, **asked)[0]


def survey_and_facts(
    paths: Iterable[str],
    *,
    require: Sequence[str] = (),
    sycl: str | None = None,
    devices: Sequence[str] = (),
    include_all: bool = False,
    load: bool = False,
    table: Table | None = None,
    progress: Progress | None = None,
    expect: Expect | None = None,
) -> tuple[Report, Gathered]:
    """Reads every library under the paths and judges it; `progress` hears each path before it is read,
    `expect` how many there are.

    `require`: operators that must be present and declare what they write. `sycl`: the expected major version of
    libsycl.so, if not torch's. `devices`: what device code must run on. `include_all`: look into the platform's
    own distributions too. `load`: torch loads each library, and says whether it registers what was read. What cannot be
    read is in the report's `errors`; the rest is judged all the same.
    """
    paths = list(paths)
    known = table or tables.load()
    spaces = {*known.all_namespaces, *(name.rpartition("::")[0] for name in require)} - {""}
    found = gather(paths, include_all=include_all, spaces=sorted(spaces), progress=progress, expect=expect)
    if require:
        found.errors += [
            ToolError(f"Python would look there, and it was not read: {why}", what) for what, why in found.unfollowed
        ]
    facts = [placed.facts for placed in found.libraries]
    found.errors += environment.unread(facts, reader.read)
    if load:
        _loaded(found, progress)
    else:
        found.errors += environment.replaced(facts)
    major, who = (sycl, "") if sycl else runtime.expected(facts)
    where = " ".join(paths)
    asked = partial(judge.check, require=require, sycl=major, asked_by=who, devices=devices, where=where)
    report = asked(found.judged, known, imports=found.imports)
    errors = (*found.errors, *report.errors, *(_devices(found, where) if devices else ()))
    findings = (*report.findings, *found.findings)
    report = replace(report, findings=findings, errors=errors, facts=facts_of(found))
    return _with_sources(report, found.sources, known), found


def _devices(found: Gathered, where: str) -> Iterator[ToolError]:
    """What stands in the way of saying that device code runs on a target."""
    for facts in found.judged:
        yield from judge.unread_devices(facts)
    if not any(facts.device.kernels() for facts in found.judged):
        yield ToolError("expected device code to run on --target, found none", where)


def _loaded(found: Gathered, progress: Progress | None) -> None:
    """Puts what torch registers in the place of what was read."""
    from . import load as loading  # which most do not ask for

    progress = progress or (lambda _: None)
    told = {loaded.facts.path: loaded for loaded in loading.ask(found.judged, progress)}
    for loaded in told.values():
        found.findings += loaded.findings
        found.errors += loaded.errors
    found.libraries = [
        replace(placed, facts=told[placed.facts.path].facts) if placed.judged else placed for placed in found.libraries
    ]


def _with_sources(report: Report, sources: dict[str, bytes], table: Table) -> Report:
    """Adds what an sdist's sources register, judged as `check` judges a tree."""
    if not sources:
        return report
    from schema_patch.source import tree  # which reads C++: only an sdist needs it

    return report.joined(tree.judge(sources, table))


def facts_of(found: Gathered) -> dict[str, object]:
    """For the report: the libraries that have a say, how many others were read, and what was left out and why."""
    judged = [library for library in found.libraries if library.judged]
    speaking = [p for p in judged if p.facts.registers or p.facts.device.images or sycl_major(p.facts) is not None]
    linked = [p for p in found.libraries if not p.judged and sycl_major(p.facts) is not None]
    return {
        "libraries": [_library(library) for library in speaking],
        "others_read": len(judged) - len(speaking),
        "runtime_only": [{"path": p.facts.path, "owner": p.owner, "sycl": sycl_major(p.facts)} for p in linked],
        "skipped": [{"what": what, "files": files, "why": why} for (what, why), files in found.skipped.items()],
    }


def _library(library: Placed) -> dict[str, object]:
    facts = library.facts
    counts, kernels = facts.device.targets(), facts.device.kernels()
    return {
        "path": facts.path,
        "owner": library.owner,
        "machine": facts.machine,
        "size": facts.size,
        "stripped": facts.stripped,
        "needed": list(facts.needed),
        "versions": {name: list(versions) for name, versions in facts.versions},
        "soname": facts.soname,
        "runpath": facts.runpath,
        "abi": list(facts.abi),
        "sycl": sycl_major(facts),
        "schemas": len(facts.schemas),
        "unread_registrations": [
            {"function": row.function, "namespace": row.namespace, "begins": row.known, "why": row.why}
            for row in facts.unread
        ],
        "namespaces": sorted({schema.namespace for schema in facts.schemas} - {""}),
        "images": facts.device.images,
        "targets": {code: {"name": targets.title(code), "kernels": count} for code, count in counts.items()},
        "kernels": len(kernels),
        "kernel_targets": {kernel: sorted(codes) for kernel, codes in sorted(kernels.items())},
        "without_spirv": len(targets.lacking(kernels, "")),
        "compressed": any(code.compressed for code in facts.device.codes),
        "unread": list(facts.device.unread),
    }
