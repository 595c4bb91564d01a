"""Functions that a library needs and no source that compiled defines, so that it loads without them.

The rest of a library can be judged where one of its sources does not compile: what is missing throws when it is called.
Knows what the loader says; missing data cannot be stood in for, and such a library stays refused.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

WHY = "is defined by no source that compiled for the host"
_UNDEFINED = re.compile(r"^undefined symbol: (\w+)", re.MULTILINE)
_CALLED = re.compile(r"_JUMP_SLOT\s+\w+\s+(\w+)")
_NO_FUNCTION = re.compile(r"(vtable|VTT|typeinfo|typeinfo name|guard variable) for ")


def functions(library: Path) -> dict[str, str]:
    """The functions that nothing which it is linked with defines, nor this process: how each is spelled, by symbol.

    Of C++ a function is told by its name, of C by a call.
    """
    symbols = sorted({*_UNDEFINED.findall(_said("ldd", "-r", str(library)))})
    called = {*_CALLED.findall(_said("readelf", "-rW", str(library)))}
    here = ctypes.CDLL(None)  # where Python's own functions are
    lost = {symbol: spelling(symbol) for symbol in symbols if not hasattr(here, symbol)}
    return {
        symbol: words
        for symbol, words in lost.items()
        if symbol in called or ("(" in words and not _NO_FUNCTION.match(words))
    }


def _said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def spelling(symbol: str) -> str:
    return _said("c++filt", symbol).strip() or symbol
