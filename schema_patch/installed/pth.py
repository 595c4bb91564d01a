"""Where else Python looks, by the files in its site-packages: `.pth`, `.egg-link`, and what editable installs write.

Knows those files. Runs nothing: a line that Python would run is understood if it is setuptools' own, else told.
"""

from __future__ import annotations

import ast
import os
import re

SUFFIXES = (".pth", ".egg-link")
FINDER = re.compile(r"import (?P<module>__editable___\w+)")
# What lines do that change no search path: to set up coverage, a patch of distutils, the marks of an environment.
PATHS = re.compile(r"sys\.path|sitedir|meta_path|__editable__")


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
            more = _mapped(folder, line)
            if more is None and PATHS.search(line):
                unread.append(f"a line that Python runs was not followed: {line[:120]}")
            found += more or []
        elif line and not line.startswith("#"):
            found.append(os.path.normpath(os.path.join(folder, line)))
    return found, unread


def _mapped(folder: str, line: str) -> list[str] | None:
    """The folders of an editable install, by the table in the module that its line imports."""
    match = FINDER.match(line)
    if not match:
        return None
    try:
        with open(os.path.join(folder, f"{match['module']}.py"), encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == "MAPPING" for target in targets):
            try:
                table = ast.literal_eval(node.value)  # type: ignore[attr-defined]
            except ValueError:
                return None
            return [str(place) for place in table.values()] if isinstance(table, dict) else None
    return None
