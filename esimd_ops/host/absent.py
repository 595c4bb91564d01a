"""Functions that a library needs and no source that compiled defines, so that it loads without them.

The rest of a library can be judged where one of its sources does not compile: what is missing throws when it is called.
Knows what the loader says; missing data cannot be stood in for, and such a library stays refused.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

WHY = "is defined by no source that compiled for the host"
_UNDEFINED = re.compile(r"^undefined symbol: (_Z\S+)", re.MULTILINE)
_NO_FUNCTION = re.compile(r"(vtable|VTT|typeinfo|typeinfo name|guard variable) for ")


def functions(library: Path) -> dict[str, str]:
    """The C++ functions that nothing which it is linked with defines: how each is spelled, by symbol."""
    said = subprocess.run(["ldd", "-r", str(library)], capture_output=True, text=True, check=False)
    symbols = sorted(set(_UNDEFINED.findall(said.stdout + said.stderr)))
    spelled = [spelling(symbol) for symbol in symbols]
    return {
        symbol: words
        for symbol, words in zip(symbols, spelled, strict=True)
        if "(" in words and not _NO_FUNCTION.match(words)
    }


def spelling(symbol: str) -> str:
    done = subprocess.run(["c++filt", symbol], capture_output=True, text=True, check=False)
    return done.stdout.strip() or symbol
