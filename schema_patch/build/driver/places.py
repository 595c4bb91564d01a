"""Paths as the cache keeps them: one tree compiled in two places is one tree, and one runtime in two environments one.

Where a prefix map hides a folder from what is compiled (-ffile-prefix-map=FOLDER=NAME), what lies in it is told by the
name. Symbolic links are followed, so that a compiler's home may be anywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

PREFIX_MAP = re.compile(r"-f(?:file|macro|debug)-prefix-map=(.+)=(.*)")
WITH_PATH = re.compile(r"(-I|-isystem|-iquote|-idirafter|-include|)(/.*)", re.DOTALL)


def hidden(words: Sequence[str]) -> dict[str, str]:
    """The folders that the output does not name, by what it says instead; of several that fit, the last counts."""
    found = [match for word in words if (match := PREFIX_MAP.fullmatch(word))]
    return {f"<{match[2]}>": os.path.realpath(match[1]) for match in reversed(found)}


def portable(words: Sequence[str]) -> list[str]:
    """The words without what only says where things lie."""
    folders = hidden(words)
    kept = []
    for word in words:
        if not PREFIX_MAP.fullmatch(word):
            match = WITH_PATH.fullmatch(word)
            kept.append(match[1] + told(match[2], folders) if match else word)
    return [*kept, *folders]


def told(path: str, folders: Mapping[str, str]) -> str:
    """A path as the cache keeps it."""
    real = os.path.realpath(path)
    for name, folder in folders.items():
        if real == folder or real.startswith(folder.rstrip("/") + "/"):
            return name + real[len(folder) :]
    return real


def found(kept: str, folders: Mapping[str, str]) -> str:
    """The path that is kept so, where these folders lie."""
    name = next((name for name in folders if kept.startswith(name)), "")
    return folders[name] + kept[len(name) :] if name else kept
