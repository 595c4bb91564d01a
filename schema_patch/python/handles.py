"""What Python modules of one tree take from each other that stands for torch operators: `from .handles import _ops`.

Knows how an import names a file beside or below others; knows no sys.path, and runs nothing. Where several files may be
meant, all are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from schema_patch.model import ToolError
from schema_patch.schemas.gone import Gone

from .calls import named, parse
from .modules import Files
from .names import Names

OPERATORS = "torch.ops"
BINDS = rb"(?m)^\s*NAME\s*(?:[=:,)]|$)|\bimport\b[^\n]*\bNAME\b"


class Handles:
    """The Python files of a tree, path to bytes, as modules that import each other."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self._modules = Files(files)
        self._names: dict[str, Names | None] = {}
        self._known: dict[tuple[str, str], frozenset[str]] = {}

    def other_names(self, gone: Gone) -> frozenset[str]:
        """The names, other than their own, that modules give to these operators and their namespaces: in other files
        they count too."""
        spaces = {f"{OPERATORS}.{one.namespace}" for one in gone}
        words = {word.encode() for one in gone for word in (one.op, one.namespace) if word}
        found: set[str] = set()
        for path, data in self._files.items():
            names = self._read(path) if any(word in data for word in words) else None
            if names:
                told = {name: names.exported(name) for name in names.own}
                found |= {name for name, paths in told.items() if any(named(p, gone) or p in spaces for p in paths)}
        return frozenset(found - {one.op for one in gone})

    def paths(self, importer: str, name: str) -> frozenset[str]:
        """The operators, as dotted paths, that a name stands for which a file imports; none where it is no handle.

        `name` is as pynames gives it: the module and the name in it, with a dot in front for each level.
        """
        plain = name.lstrip(".")
        *module, last = plain.split(".")
        paths = self._modules.named(module, len(name) - len(plain), importer)
        return frozenset[str]().union(*(self._given(path, last) for path in paths))

    def _given(self, path: str, name: str) -> frozenset[str]:
        if (path, name) not in self._known:
            self._known[path, name] = frozenset()  # modules that import each other
            data = self._files[path]
            # A cheap look first: most imports are of functions and classes.
            binds = name.encode() in data and re.search(BINDS.replace(b"NAME", re.escape(name.encode())), data)
            names = self._read(path) if binds else None
            told = names.exported(name) if names else frozenset()
            if any(one.startswith(OPERATORS) for one in told):
                self._known[path, name] = told
        return self._known[path, name]

    def _read(self, path: str) -> Names | None:
        if path not in self._names:
            try:
                self._names[path] = Names(parse(self._files[path], path), partial(self.paths, path))
            except ToolError:  # told where that file is looked at for its own sake
                self._names[path] = None
        return self._names[path]
