"""Facts of kernels -> findings, the worst first, and what became worse since an earlier run.

What a kernel is alone is a warning: it is right, only slow. What became worse is an error. Values in, values out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from schema_patch.model import Checked, Finding, Location, Report, Severity, ToolError, Verdict
from schema_patch.schemas import cards

from .model import Document, ExaminedKernel

LINE = 64  # bytes of a cache line


def report(now: Document, before: Document | None, *, strict: bool = False) -> Report:
    """A kernel that cannot be looked at is an error; one that is new since `before` is judged by itself."""
    older = {_key(kernel): kernel for kernel in before.kernels} if before else {}
    ranked: list[tuple[int, Finding]] = []
    checked = []
    for kernel in now.kernels:
        told = list(_alone(kernel))
        ranked += told
        worse = _worse(kernel, older[_key(kernel)]) if _key(kernel) in older else []
        if worse:
            words = f"{kernel.title} on {kernel.target}: {'; '.join(worse)}"
            ranked.append((1 << 40, Finding("KR201", _place(kernel), "", words)))
        verdict = Verdict.WRONG if worse else Verdict.RIGHT
        reason = ", ".join(finding.code for _, finding in told) or "nothing of note"
        checked.append(Checked(kernel.title, _place(kernel), kernel.target, verdict, reason))
    ranked.sort(key=lambda row: (-row[0], row[1].message))
    errors = [ToolError(words) for words in now.failed]
    if before and not older.keys() & {_key(kernel) for kernel in now.kernels}:
        errors.append(ToolError("no kernel of this run is in the run of --against: nothing was compared"))
    return Report(tuple(checked), tuple(finding for _, finding in ranked), tuple(errors), strict=strict)


def read(path: str) -> Document:
    """An earlier run. Raises ToolError for a file that is none."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=Document)
    except OSError as error:
        raise ToolError(error.strerror or str(error), path) from error
    except msgspec.MsgspecError as error:
        raise ToolError(f"expected what `esimd_ops kernels --format json` prints: {error}", path) from error


def _alone(kernel: ExaminedKernel) -> Iterator[tuple[int, Finding]]:
    """Findings with their weight: bytes that spills move weigh most, then what a loop repeats."""
    who = f"{kernel.title} on {kernel.target}"
    if kernel.spill_size:
        words = f"{who} keeps {kernel.spill_size:,} bytes a thread in memory for want of {kernel.grf_count} registers"
        yield (1 << 30) + kernel.spill_size, _warning("KR101", kernel, words)
    for division in kernel.divisions or ():
        if division.in_loop:
            words = f"{who}: {_times(division.count, '64-bit division')} in a loop"
            yield (1 << 20) + division.count, _warning("KR102", kernel, words, division.line)
    for loop in kernel.loops:
        narrow = [a for a in loop.accesses if a.load and not a.local and 0 < a.size < LINE]
        if narrow and loop.bytes_loaded < LINE * sum(a.count for a in loop.accesses if a.load and not a.local):
            forms = ", ".join(f"{a.count} x {a.size} bytes ({a.form})" for a in narrow)
            words = f"{who}: the loop at {loop.start} loads {forms}, less than the {LINE} of a cache line"
            yield 1 << 10, _warning("KR103", kernel, words, loop.line)
    alone = _alone_on_a_core(kernel)
    if alone:
        words = f"{who}: {kernel.slm_size:,} bytes of local memory a group let one group run on a core ({alone})"
        yield 1 << 15, _warning("KR104", kernel, words)


def _alone_on_a_core(kernel: ExaminedKernel) -> str:
    """Cards on which no core holds two groups, for want of local memory."""
    if not kernel.slm_size:
        return ""
    return ", ".join(name for name, held in kernel.resident.items() if held.groups <= cards.find(name).cores)


def _worse(now: ExaminedKernel, before: ExaminedKernel) -> list[str]:
    told = []
    for what, new, old in (
        ("bytes of spills a thread", now.spill_size, before.spill_size),
        ("bytes of private memory a thread", now.private_size, before.private_size),
        ("bytes of local memory a group", now.slm_size, before.slm_size),
        ("64-bit divisions in loops", _divisions(now), _divisions(before)),
    ):
        if new > old:
            told.append(f"{what}: {old:,}, now {new:,}")
    for name, held in now.resident.items():
        was = before.resident.get(name)
        if was and held.threads < was.threads:
            told.append(f"threads at once on a {name}: {was.threads:,}, now {held.threads:,}")
    return told


def _divisions(kernel: ExaminedKernel) -> int:
    return sum(d.count for d in kernel.divisions or () if d.in_loop)


def _key(kernel: ExaminedKernel) -> tuple[str, str, str]:
    """A kernel of a name may be in several libraries of a wheel."""
    return kernel.target, Path(kernel.where).name, kernel.name


def _warning(code: str, kernel: ExaminedKernel, words: str, line: str = "") -> Finding:
    return Finding(code, _place(kernel, line), "", words, Severity.WARNING)


def _place(kernel: ExaminedKernel, line: str = "") -> Location:
    file, _, number = (line or kernel.line).rpartition(":")
    return Location(file, int(number), 1) if file and number.isdecimal() and int(number) else Location(kernel.where)


def _times(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
