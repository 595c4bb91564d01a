"""A source tree -> a verified wheel of it with right schemas. Works on copies; the tree that is given is only read.

Knows the order of the work: copy, patch, build (wheelbuild.py), verify, and only then put the wheel where it was asked
for, with a record of it (buildrecord.py). With a control, the tree as it is is built by the same toolchain too, and may
differ in its schemas alone.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from schema_patch.model import Location, Report, Severity, ToolError
from schema_patch.schemas.annotate import Returns
from schema_patch.schemas.table import Table
from schema_patch.source import patch, plans, tree
from schema_patch.source.patch import Unit
from schema_patch.text import diff as difftext
from schema_patch.text import files, journal
from schema_patch.text.files import SKIPPED, Steps
from schema_patch.verify import compare, provenance, survey
from schema_patch.verify.gather import gather

from . import wheelbuild
from .checks_build import fitting_jobs
from .driver import home, link, options, runtime
from .driver.runtime import at, major
from .toolchain import Facts, compiler_libraries
from .wheelbuild import Settings

Watch = Callable[[str], AbstractContextManager[Steps]]

# What earlier builds left, and what is no source: anywhere in a tree, and at its top.
IGNORED = (*SKIPPED, "*.egg-info", "*.pyc", "*.o", "*.so", "*.whl", journal.NAME)
IGNORED_AT_TOP = {"build", "dist"}
MADE = "device-links"  # the folder in a workspace where each device link says what it has made


@dataclass(frozen=True, slots=True)
class Job:
    """What is asked for. `devices`: what device code must run on; empty where there is none.

    `sycl`: the major version of the runtime that is built against; empty where there is none.
    """

    source: Path
    out: Path
    returns: Returns
    settings: Settings
    devices: tuple[str, ...] = ()
    control: bool = False
    sycl: str = ""


@dataclass(frozen=True, slots=True)
class Patch:
    """What was done to a copy. `changes`: operator, schema before, schema after."""

    files: tuple[str, ...]
    diff: bytes
    changes: tuple[tuple[str, str, str], ...]
    units: tuple[Unit, ...]

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.diff).hexdigest()

    @property
    def known(self) -> tuple[str, ...]:
        """The operators of the tree that the table knows."""
        return tuple(sorted({o.schema.op for unit in self.units for o in unit.operators if o.effect}))


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """How far it came: `report` is what was judged last; there are wheels only where it is clean."""

    made: Patch
    report: Report
    digest: str
    wheel: Path | None = None
    control: Path | None = None
    device: tuple[link.Linked, ...] = ()


def run(job: Job, work: Path, table: Table, watch: Watch) -> Rebuilt:
    """The whole course but for putting the results in place. Raises ToolError where it cannot go on."""
    root = work / "patched" / job.source.resolve().name
    copy(job.source, root, job.out)
    digest = digest_of(root)
    made, report = annotate(root, job.returns, table)
    names = {str(root): str(job.source), f"{work}/wheel/": ""}
    report = renamed(report, names)
    if job.control and report and not made.changes:
        raise ToolError(
            "nothing to patch, so no control differs from it: take the marks away with `strip`", str(job.source)
        )
    if not report:
        return Rebuilt(made, report, digest)
    with watch("building") as progress:
        wheel = _build(job, root, work / "wheel", job.out / "build.log", progress)
    with watch("verifying") as progress:
        left = left_out(made, root, (job.out / "build.log").read_text("utf-8", "replace"))
        report = renamed(verify(wheel, made, left, job, table, progress), names)
    device = link.records(work / MADE)
    if not report or not job.control:
        return Rebuilt(made, report, digest, wheel if report else None, device=device)
    root = work / "control" / job.source.resolve().name
    copy(job.source, root, job.out)
    with watch("building the control") as progress:
        control = _build(job, root, work / "control-wheel", job.out / "control.log", progress)
    difference = same_but_schemas(wheel, control, job.returns)
    if not difference:
        return Rebuilt(made, difference, digest)
    return Rebuilt(made, report, digest, wheel, control, device)


def settings(facts: Facts, python: str, purpose: str, epoch: int) -> Settings:
    """How `python` builds with what was found. `epoch`: what files in the wheel are dated with."""
    given = facts.environment
    return Settings(
        python=python,
        scripts=facts.interpreter.scripts,
        jobs=int(given.get("MAX_JOBS") or fitting_jobs(facts, purpose)),
        epoch=epoch,
        arch="" if purpose == "host" else given["TORCH_XPU_ARCH_LIST"],
        prefix=facts.interpreter.prefix,
        libraries=compiler_libraries(facts) if purpose == "xpu" else "",
    )


def runtime_of(facts: Facts) -> str:
    """The N of the libsycl.so.N that torch loads; without one, that of the kit's own compiler."""
    front_end = (facts.driver.runtime,) if facts.driver else ()
    return next(filter(None, map(major, (*(facts.torch.sycl if facts.torch else ()), *front_end))), "")


def with_own_compiler(job: Job, work: Path, facts: Facts) -> Job:
    """The same job, SYCL compiled by the kit's driver for the runtime of the interpreter that builds."""
    assert facts.driver is not None
    if not facts.driver.front_end:
        raise ToolError(runtime.MISSING)
    (work / MADE).mkdir()
    variables = home.create(work / "compiler", at(Path(facts.driver.root)), xpu=bool(facts.torch and facts.torch.xpu))
    own = {**variables, runtime.HOME: facts.driver.root, link.RECORD: str(work / MADE)}
    return replace(job, settings=replace(job.settings, variables=tuple(own.items())))


def publish(result: Rebuilt, out: Path, record: bytes) -> list[Path]:
    """Moves the wheels to where they were asked for; the record last, so that what it names is there."""
    assert result.wheel is not None
    moves = [(result.wheel, out / result.wheel.name)]
    if result.control:
        (out / "control").mkdir(exist_ok=True)
        moves.append((result.control, out / "control" / result.control.name))
    try:
        for wheel, target in moves:
            os.replace(wheel, target)
    except OSError as error:
        raise ToolError(f"cannot be written: {error.strerror}", str(error.filename2)) from error
    files.write(out / "patch.diff", result.made.diff)
    files.write(out / "build.json", record)
    return [target for _, target in moves]


@contextmanager
def workspace(out: Path) -> Iterator[Path]:
    """A folder beside the results, so that they are moved, not copied; gone afterwards, however it ends."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".rebuild-", dir=out.resolve()))
    except OSError as error:
        raise ToolError(f"cannot be written to: {error.strerror}", str(out)) from error
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
        with suppress(OSError):
            out.rmdir()  # where nothing was left in it


def copy(source: Path, target: Path, out: Path) -> None:
    """Copies a tree without what earlier builds left in it. Raises ToolError."""
    if not any((source / name).is_file() for name in ("setup.py", "pyproject.toml")):
        raise ToolError("expected a Python project, found neither setup.py nor pyproject.toml", str(source))
    ignored, results = shutil.ignore_patterns(*IGNORED), out.resolve()

    def skip(folder: str, names: list[str]) -> set[str]:
        here = Path(folder).resolve()
        at_top = IGNORED_AT_TOP if here == source.resolve() else set()
        return {*ignored(folder, names), *at_top} | {name for name in names if here / name == results}

    try:
        shutil.copytree(source, target, symlinks=True, ignore=skip)
    except shutil.Error as error:
        failed, _, why = error.args[0][0]
        raise ToolError(f"cannot be copied: {why}", str(failed)) from error
    except OSError as error:
        raise ToolError(f"cannot be copied: {error.strerror}", str(error.filename)) from error


def annotate(root: Path, returns: Returns, table: Table) -> tuple[Patch, Report]:
    """Patches a copy in place and judges what it then is. Raises ToolError where a file cannot be written."""
    units, errors = tree.read([str(root)], table)
    plan = patch.annotate_all(units, table, returns)
    errors = [*errors, *plan.errors, *(plans.write(plan, str(root), []) if plan.files else ())]
    after = tuple(tree.read([str(root)], table)[0])
    python = tree.plan_python(str(root), patch.gone(after, before=units))
    errors = [*errors, *python.errors, *(plans.write(python, str(root), []) if python.files else ())]
    (root / journal.NAME).unlink(missing_ok=True)  # the copy is not reverted, and a wheel must not hold it
    planned = [*plan.files, *python.files]
    names = {one.file.path: os.path.relpath(one.file.path, root) for one in planned}
    planned.sort(key=lambda one: names[one.file.path])
    done = Patch(
        files=tuple(names[one.file.path] for one in planned),
        diff=b"".join(difftext.unified(one.file.data, one.new, names[one.file.path]) for one in planned),
        changes=tuple((c.op, _line(c.before), _line(c.after)) for one in planned for c in one.changes),
        units=after,
    )
    report = patch.report(after, errors=errors)
    return done, replace(report, findings=(*report.findings, *python.left))


def left_out(made: Patch, root: Path, log: str) -> frozenset[str]:
    """Known operators of sources that no step of the build has named; none where it names no source at all."""
    built: set[str] = set()
    for unit in made.units:
        alone = files.has_suffix(unit.file.path, options.SOURCES)  # and no header, which no step names
        if not alone or os.path.relpath(unit.file.path, root) in log:
            built |= {operator.schema.op for operator in unit.operators if operator.effect}
    return frozenset(made.known) - built if built else frozenset()


def verify(wheel: Path, made: Patch, left: frozenset[str], job: Job, table: Table, progress: Steps) -> Report:
    """Judges a wheel: every known operator of the sources that were built is in it, right, as the source has it, with
    code for the devices, for the runtime that was built against. Of those `left` out it warns."""
    wanted = frozenset(made.known) - left
    report, found = survey.survey_and_facts(
        [str(wheel)], require=sorted(wanted), sycl=job.sycl, devices=job.devices, table=table, progress=progress,
        expect=progress.expect,
    )  # fmt: skip
    told = provenance.check(found.judged, made.units)
    # A tree may hold registrations that its setup.py does not build; only the known operators must be in the wheel.
    meant = [finding for finding in told.findings if finding.code != "SP211" or finding.op in made.known]
    why = "its file is compiled by no step of the tree's own build"
    for index, finding in enumerate(meant):
        if finding.code == "SP211" and finding.op in left:
            meant[index] = replace(finding, message=f"{finding.message}: {why}", severity=Severity.WARNING)
    return report.joined(replace(told, findings=tuple(meant)))


def same_but_schemas(patched: Path, control: Path, returns: Returns) -> Report:
    """Compares two wheels, which may differ in schemas alone; where functions are wrapped (void), in symbols too."""
    ours, older = (gather([str(wheel)], deep=True) for wheel in (patched, control))
    expect = ["schemas", *(["symbols"] if returns is Returns.VOID else [])]
    return compare.compare(ours.by_key(), older.by_key(), expect=expect, errors=[*ours.errors, *older.errors])


def renamed(report: Report, names: Mapping[str, str]) -> Report:
    """A report that speaks of paths as the user knows them, and not of the workspace, which is gone when it is read."""

    def text(value: str) -> str:
        for old, new in names.items():
            value = value.replace(old, new)
        return value

    def place(where: Location) -> Location:
        return replace(where, path=text(where.path))

    return replace(
        report,
        checked=tuple(replace(row, location=place(row.location), reason=text(row.reason)) for row in report.checked),
        findings=tuple(replace(f, location=place(f.location), message=text(f.message)) for f in report.findings),
        errors=tuple(ToolError(text(e.message), place(e.where) if e.where else None) for e in report.errors),
    )


def digest_of(root: Path) -> str:
    """A SHA-256 over the names and bytes of all files of a tree, in order."""
    whole = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            whole.update(f"{content}  {path.relative_to(root)}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


def _build(job: Job, root: Path, into: Path, log: Path, progress: Steps) -> Path:
    into.mkdir()
    return wheelbuild.build(root, into, log, job.settings, job.source, progress, progress.expect)


def _line(text: str) -> str:
    return " ".join(text.split())
