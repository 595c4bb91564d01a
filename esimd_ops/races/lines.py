"""Code addresses -> source lines, by addr2line. The stand-in headers are passed over: who called them is meant."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

from esimd_ops.host.build import HERE
from esimd_ops.trials.files import near
from schema_patch.model import Location


@functools.cache
def locate(file: str, offset: int) -> Location:
    """The innermost line that is not of the kit's headers; the library itself where no line is known."""
    tool = shutil.which("addr2line")
    if not file or not tool:
        return Location(file)
    command = [tool, "-i", "-e", file, hex(offset)]
    listing = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    for line in listing.splitlines():
        path, _, number = line.partition(" ")[0].rpartition(":")
        if path and path != "??" and number.isdigit() and int(number) and not Path(path).resolve().is_relative_to(HERE):
            return Location(near(path), int(number), 1)
    return Location(file)
