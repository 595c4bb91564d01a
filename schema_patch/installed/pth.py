"""Where else Python looks, by the files in its site-packages: `.pth`, `.egg-link`, and what editable installs write.

Knows those files. Runs nothing: of a module that a line imports and that changes where Python looks, the places that
are written out in it count; a line or a module that has none is told.
"""

from __future__ import annotations

import ast
import os
import re

from .kind import MAYBE_SHARED

SUFFIXES = (".pth", ".egg-link")
IMPORTS = re.compile(r"import\s+(?P<module>\w+)\s*(;|$)")
# What changes where Python looks; other lines set up coverage, or the marks of an environment.
PATHS = re.compile(r"sys\.path|sitedir|meta_path|path_hooks|__editable__")
OTHERWISE = ("_virtualenv", "_distutils_hack")  # patch distutils, and find nothing else


def paths(path: str) -> tuple[list[str], list[str]]:
    """Folders and files that a file leads to, and what of it was not understood, in words."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.strip() for line in file]
    except OSError as error:
        return [], [f"cannot be read: {error.strerror}"]
    folder = os.path.dirname(path)
    found: list[str] = []
    unread: list[str] = []
    for line in lines[:1] if path.endswith(".egg-link") else lines:
        if line.startswith(("import ", "import\t")):
            match = IMPORTS.match(line)
            more = _written(os.path.join(folder, f"{match['module']}.py")) if match else None
            if not more and (more is not None or PATHS.search(line)):
                unread.append(f"a line that Python runs was not followed: {line[:120]}")
            found += more or []
        elif line and not line.startswith("#"):
            found.append(os.path.normpath(os.path.join(folder, line)))
    return found, unread


def _written(module: str) -> list[str] | None:
    """The places that a module names which changes where Python looks; None for one that does not."""
    try:
        with open(module, encoding="utf-8") as file:
            text = file.read()
        nodes = [*ast.walk(ast.parse(text))]
    except (OSError, SyntaxError, ValueError):
        return None
    if not PATHS.search(text + module) or os.path.basename(module)[:-3] in OTHERWISE:
        return None
    words = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    places = sorted(os.path.dirname(word) if word.endswith(".py") else word for word in words if os.path.isabs(word))
    return [place for place in places if (os.path.isdir(place) and place != "/") or MAYBE_SHARED.search(place)]
