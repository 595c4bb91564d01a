"""A source tree -> the wheel that its own build makes with the kit's compiler driver, for as long as it is looked at.

The build is that of `rebuild`, of a copy, without a patch: what is judged is the tree as it is.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from schema_patch.build import rebuild, record, toolchain, wheelbuild
from schema_patch.build.driver import compiling
from schema_patch.elf import targets
from schema_patch.model import ToolError
from schema_patch.schemas.annotate import Returns

PROJECT = ("setup.py", "pyproject.toml")


@contextmanager
def built(tree: Path, ips: Sequence[str], progress: Callable[[str], None]) -> Iterator[Path]:
    """Raises ToolError where there is no compiler, or the build fails, with the end of its log."""
    arch = ",".join(targets.title(ip) for ip in ips)
    facts = toolchain.gather(sys.executable, {**os.environ, "TORCH_XPU_ARCH_LIST": arch})
    if facts.driver is None:
        raise ToolError("expected the kit's compiler driver: `schema-patch doctor --for bmg` says what is missing")
    with tempfile.TemporaryDirectory(prefix="schema-patch-") as folder:
        work = Path(folder)
        settings = rebuild.settings(facts, sys.executable, "bmg", record.EPOCH)
        job = rebuild.with_own_compiler(rebuild.Job(tree, work, Returns.ALIAS, settings), work, facts)
        settings = replace(job.settings, variables=(*job.settings.variables, (compiling.LINES, "1")))
        root = work / "tree" / tree.resolve().name
        rebuild.copy(tree, root, work)
        (work / "wheel").mkdir()
        yield wheelbuild.build(root, work / "wheel", work / "build.log", settings, tree, progress)
