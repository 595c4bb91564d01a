"""Runs a statement as a user who may do nothing special: root reads and writes whatever it likes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def run(imports: str, statement: str, *reaches: Path) -> subprocess.CompletedProcess[str]:
    """`statement` in a child that gave up root after `imports`; the folders above `reaches` are opened for it."""
    for path in {parent for place in reaches for parent in place.parents}:
        if path.stat().st_uid == os.getuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o055)
    script = f"import os, sys\n{imports}\nos.getuid() or os.setuid(65534)\n{statement}"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=REPOSITORY)
