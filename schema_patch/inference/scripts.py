"""Triton kernels that C++ takes by a file's name and their own: `get_instance(sources() / "rope.py", "kernel")`.

Each is read when it is first asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from schema_patch.python import flow
from schema_patch.python.modules import Modules
from schema_patch.schemas.inferred import Answer, Native

from .native import both


class Scripts:
    """The kernels of a tree's Python files."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = list(paths)
        self.modules = Modules(self.paths)
        self.known: dict[tuple[tuple[str, ...], str], list[Native]] = {}

    def get(self, file: tuple[str, ...], name: str, count: int) -> Sequence[Answer] | None:
        """What a kernel does to each of so many parameters, by the last parts of its file's path; None where there is
        none. What several of that name treat differently is unknown."""
        key = file, name
        if key not in self.known:
            tail = "/" + "/".join(file)
            found = [self.read(path, name) for path in self.paths if f"/{path}".replace(os.sep, "/").endswith(tail)]
            self.known[key] = [Native(answers, fresh=False) for answers in found]
        kernel = both([native for native in self.known[key] if len(native.answers) == count])
        return kernel.answers if kernel else None

    def read(self, path: str, name: str) -> tuple[Answer, ...]:
        module = self.modules.at(path)
        function = module.functions.get(name)
        if function is None:
            return ()
        answers, _ = flow.read(function, path, module.functions, {}, self.modules)
        return tuple(answers.values())
