"""Paths as the cache keeps them: one tree compiled in two places is one tree.

Where a prefix map hides a tree's folder from what is compiled (-ffile-prefix-map=FOLDER=.), the folder is no part of
it: paths below it are told from where the compiler runs. Symbolic links are followed, so that a compiler's home may be
anywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

PREFIX_MAP = re.compile(r"-f(?:file|macro|debug)-prefix-map=(.*)=")
WITH_PATH = re.compile(r"(-I|-isystem|-iquote|-idirafter|-include|)(/.*)", re.DOTALL)


def hidden(words: Sequence[str]) -> tuple[str, ...]:
    """The folders of trees that are compiled here and that the output does not name."""
    here = os.getcwd()
    found = (match[1] for word in words if (match := PREFIX_MAP.match(word)))
    return tuple(folder for folder in found if folder and _below(here, os.path.realpath(folder)))


def portable(words: Sequence[str]) -> list[str]:
    """The words without what only says where a tree lies."""
    folders = hidden(words)
    kept = []
    for word in words:
        if not PREFIX_MAP.match(word):
            match = WITH_PATH.fullmatch(word)
            kept.append(match[1] + relative(match[2], folders) if match else word)
    return kept


def relative(path: str, folders: Sequence[str]) -> str:
    """A path as the cache keeps it."""
    real = os.path.realpath(path)
    return os.path.relpath(real) if any(_below(real, os.path.realpath(folder)) for folder in folders) else real


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
