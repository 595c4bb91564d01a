"""A program that is observed, as `__main__` with its arguments: `script.py ARGS` or `-m module ARGS`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from . import process


def main() -> None:
    process.start()  # where torch loads no entry points, nobody has
    sys.argv = sys.argv[1:]
    if sys.argv[0] == "-m":
        sys.argv = sys.argv[1:]
        sys.path[0] = ""
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
