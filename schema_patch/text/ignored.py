"""What a walk of a tree leaves alone beside other people's folders: what git ignores, and what builds make.

Asks git, where there is one and the tree is in a repository of its own; knows no language.
"""

from __future__ import annotations

import os
import subprocess

BUILDS = frozenset("build _build dist _skbuild cmake-build-debug cmake-build-release".split())
# A repository may name a program that git would start, and a hook's environment another repository.
GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "ls-files", "-z")


class Ignored:
    """The files and folders below `root` that are not read unless they are named."""

    def __init__(self, root: str) -> None:
        self.root = root
        inside = _in_repository(root)
        listed = _listed(root, "--others", "--ignored", "--exclude-standard", "--directory") if inside else ()
        # `./`: the root itself is ignored, and was named.
        self.paths = frozenset(() if "./" in listed else (path.rstrip("/") for path in listed))
        tracked = _listed(root, "--", *(f":(glob)**/{name}/**" for name in sorted(BUILDS))) if inside else ()
        self.kept = {os.path.dirname(path) for path in tracked}

    def folder(self, folder: str, name: str) -> bool:
        """Whether a folder is left alone."""
        path = self.relative(folder, name)
        if path in self.paths:
            return True
        if name in BUILDS:
            return not any(f"{kept}/".startswith(f"{path}/") for kept in self.kept)
        whole = os.path.join(folder, name)
        made = os.path.exists(f"{whole}/CMakeCache.txt") and not os.path.exists(f"{whole}/CMakeLists.txt")
        return made or os.path.exists(f"{whole}/pyvenv.cfg")  # a virtual environment

    def file(self, folder: str, name: str) -> bool:
        """Whether a file is left alone."""
        return bool(self.paths) and self.relative(folder, name) in self.paths

    def relative(self, folder: str, name: str) -> str:
        return os.path.join(os.path.relpath(folder, self.root), name).removeprefix("./")


def _in_repository(root: str) -> bool:
    folder = os.path.realpath(root)
    while not os.path.exists(os.path.join(folder, ".git")):
        if folder == os.path.dirname(folder):
            return False
        folder = os.path.dirname(folder)
    return True


def _listed(root: str, *words: str) -> tuple[str, ...]:
    """What git lists below a folder; nothing where it cannot say."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run([*GIT, *words], cwd=root, env=environment, capture_output=True, check=False)
    except OSError:
        return ()
    return tuple(os.fsdecode(path) for path in done.stdout.split(b"\0") if path)
