"""build.json: what went into a rebuilt wheel, by which tools, and what came out. Knows git by its command line.

A wheel's name tells neither the commit, nor the patch, nor the compiler: of two with one name, only this record and the
digests in it say which is which.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

from schema_patch.model import ToolError
from schema_patch.report.text import libraries

from .driver.link import Linked
from .rebuild import Job, Rebuilt
from .toolchain import Facts

EPOCH = 315532800  # 1980-01-01, the earliest date that a wheel can hold: for a tree whose commits tell no other


def commit(source: Path) -> dict[str, object] | None:
    """The commit of a tree under git, and whether files of it differ from that; None where there is no git."""
    said = _git(source, "log", "-1", "--format=%H %ct")
    if not said:
        return None
    name, seconds = said.split()
    return {"commit": name, "time": int(seconds), "changed": bool(_git(source, "status", "--porcelain", "--", "."))}


def epoch(found: Mapping[str, object] | None, environment: Mapping[str, str]) -> int:
    """What files in the wheel are dated with: SOURCE_DATE_EPOCH, else the commit's own time."""
    given = environment.get("SOURCE_DATE_EPOCH")
    if given is not None:
        if not given.isdecimal():
            raise ToolError(f"SOURCE_DATE_EPOCH: expected seconds since 1970, found {given!r}")
        return int(given)
    time = (found or {}).get("time")
    return time if isinstance(time, int) else EPOCH


def record(job: Job, result: Rebuilt, facts: Facts, purpose: str, found: Mapping[str, object] | None) -> bytes:
    """The text of build.json. `found`: what commit() says of the tree."""
    assert result.wheel is not None
    torch, made = facts.torch, result.made
    document = {
        "version": 1,
        "source": {"tree": job.source.resolve().name, "sha256": result.digest, "git": found},
        "patch": {
            "sha256": made.digest,
            "returns": job.returns.value,
            "files": made.files,
        },
        "toolchain": {
            "for": purpose,
            "python": facts.interpreter.version,
            "torch": torch.version if torch else None,
            "torch_runtime": [os.path.basename(path) for path in torch.sycl] if torch else [],
            "programs": {name: program.said or program.version for name, program in facts.programs.items()},
            "packages": facts.interpreter.packages,
        },
        "device_code": [_linked(one) for one in result.device],
        "arch": job.settings.arch or None,
        "epoch": job.settings.epoch,
        "operators": [{"op": op, "before": before, "after": after} for op, before, after in made.changes],
        "wheel": _file(result.wheel),
        "libraries": _libraries(result),
        "control": _file(result.control) if result.control else None,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _linked(one: Linked) -> dict[str, object]:
    """Of one device link: whose compilers, which options, how many kernels, which of them spill."""
    row: dict[str, object] = msgspec.to_builtins(one)
    # The folder of the build is gone when this is read; what it is called inside tells the library.
    return {**row, "output": one.output.partition("/build/")[2] or os.path.basename(one.output)}


def _libraries(result: Rebuilt) -> list[object]:
    wheel = str(result.wheel)
    return [{**row, "path": row["path"].replace(wheel, os.path.basename(wheel))} for row in libraries(result.report)]


def _file(path: Path) -> dict[str, object]:
    data = path.read_bytes()
    return {"name": path.name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _git(source: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(source), *words], capture_output=True, text=True, check=False)
    except OSError:  # no git here: the tree is known by its digest alone
        return ""
    return done.stdout.strip() if not done.returncode else ""
