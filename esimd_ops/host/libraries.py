"""Which compiled sources belong together, whether what was linked loads, and the Python files that load it.

Sources that need each other's symbols are one library, as in the tree's own build. Knows symbols and loading, and no
compiler.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from . import absent
from .sources import HostSource

FOLDER = "libraries"  # beside the files that load them: a namespace may be called like its library

NEEDED = frozenset({*sys.stdlib_module_names, "torch", "numpy", "esimd_ops", "schema_patch"})
_THROWN = re.compile(r"^ *what\(\): *(.*)", re.MULTILINE)  # of an exception that nobody has caught

_LOAD = """
import importlib.util, json, sys
import torch
for path, modules in json.loads(sys.stdin.read()):
    print(json.dumps(["at", path, ""]), flush=True)
    words = ""
    try:
        torch.ops.load_library(path)
        for name in modules:
            spec = importlib.util.spec_from_file_location(name, path)
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except (OSError, ImportError, RuntimeError) as error:
        words = str(error.__cause__ or error)  # torch says only that it could not
    print(json.dumps(["done", path, words]), flush=True)
"""

_LOADER = '''"""Loads {what} from a host build."""

import importlib.util
import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent / "{folder}"
for name in {names!r}:
    torch.ops.load_library(HERE / name)
'''
_OURS = re.compile(re.escape(_LOADER.partition("\n")[0]).replace(re.escape("{what}"), r"(torch\.ops\.|the module )\w+"))
_LOADER_OF_MODULE = """
spec = importlib.util.spec_from_file_location(__name__, HERE / {library!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
sys.modules[__name__] = module
"""


def symbols(path: Path) -> tuple[set[str], set[str], set[str]]:
    """What an object defines for good, what it defines unless another does, and what it needs."""
    listing = subprocess.run(["nm", "--format=posix", str(path)], capture_output=True, text=True, check=True).stdout
    strong, weak, needed = set[str](), set[str](), set[str]()
    for line in listing.splitlines():
        symbol, kind, *_ = line.split(" ")
        if kind in "TDB":
            strong.add(symbol)
        elif kind in "WVu":
            weak.add(symbol)
        elif kind == "U":
            needed.add(symbol)
    return strong, weak, needed


def groups(objects: Mapping[HostSource, Path]) -> list[list[HostSource]]:
    """Sources whose objects need each other's symbols, in the order of the tree, without programs and lone helpers."""
    read = {source: symbols(path) for source, path in objects.items()}
    read = {source: names for source, names in read.items() if "main" not in names[0]}
    defined: list[dict[str, list[HostSource]]] = [{}, {}]
    for source, (strong, weak, _) in read.items():
        for owners, names in zip(defined, (strong, weak), strict=True):
            for symbol in names:
                owners.setdefault(symbol, []).append(source)
    group = {source: {source} for source in read}
    for source, (_, _, needed) in read.items():
        for symbol in sorted(needed):
            if owners_of := defined[0].get(symbol) or defined[1].get(symbol):
                owner = max(owners_of, key=lambda other: len(os.path.commonpath([other.path, source.path])))
                joined = group[source] | group[owner]
                for member in joined:
                    group[member] = joined
    unique: list[list[HostSource]] = []
    for source in read:
        members = [other for other in read if other in group[source]]
        if members not in unique and not all(member.helper for member in members):
            unique.append(members)
    return unique


def names(grouped: Iterable[list[HostSource]]) -> dict[str, list[HostSource]]:
    """A file name for each library: that of its first source that registers something, with its folders where taken."""
    named: dict[str, list[HostSource]] = {}
    for group in grouped:
        chief = next((source for source in group if source.registers), group[0])
        whole = chief.name.rpartition(".")[0].replace("/", "_")
        others = (f"{whole}_{number}" for number in itertools.count(2))
        name = next(
            name
            for name in (chief.path.stem, whole, *itertools.islice(others, len(named)))
            if f"{name}.so" not in named
        )
        named[f"{name}.so"] = group
    return named


def what_does_not_load(libraries: Mapping[Path, list[HostSource]]) -> dict[Path, str]:
    """Loads each library in a child, as its users will; what the loader said of those that it refuses."""
    refused: dict[Path, str] = {}
    left = {str(path): [name for source in group for name in source.modules] for path, group in libraries.items()}
    while left:
        done = subprocess.run(
            [sys.executable, "-c", _LOAD],
            input=json.dumps(list(left.items())),
            capture_output=True,
            text=True,
            check=False,
        )
        at = ""
        for kind, path, words in map(json.loads, done.stdout.splitlines()):
            at = path if kind == "at" else ""
            if kind == "done":
                del left[path]
                if words:
                    refused[Path(path)] = _readable(words)
        if at:
            del left[at]
            why = _THROWN.search(done.stderr)
            said = why[1] if why else done.stderr[-300:].strip()
            refused[Path(at)] = f"the process that loaded it ended with {done.returncode}: {said}"
        elif done.returncode != 0:
            return refused | {Path(path): done.stderr[-300:].strip() for path in left}
    return refused


def _readable(words: str) -> str:
    """The loader's words, with the symbol that is missing as C++ spells it."""
    missing = re.search(r"undefined symbol: (\S+)", words)
    if not missing:
        return words.splitlines()[0]
    return f"it needs {absent.spelling(missing[1])}, which no source that compiled defines"


def write_loaders(
    out: Path, libraries: Mapping[str, list[HostSource]]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """A Python file for each namespace whose operators are defined, and for each module.

    Gives the names of both, and in words which have none: a file called like a module that Python needs would be
    imported in its place.
    """
    spaces: dict[str, list[str]] = {}
    modules: dict[str, list[str]] = {}
    defined = {space for group in libraries.values() for source in group for space in source.defines}
    for library, group in libraries.items():
        for source in group:
            for space in defined.intersection(source.namespaces):
                spaces.setdefault(space, []).append(library)
            for name in source.modules:
                modules.setdefault(name, []).append(library)
    for path in out.glob("*.py"):  # of an earlier build
        if _OURS.match(path.read_text("utf-8", "replace")):
            path.unlink()
    notes = []
    for name in sorted({*spaces, *modules}):
        places = list(dict.fromkeys([*spaces.get(name, []), *modules.get(name, [])]))
        if name in NEEDED:
            spaces.pop(name, None)
            modules.pop(name, None)
            notes.append(f"{name}: no file loads it, since Python needs a module of that name: {_listed(places)}")
            continue
        if len(modules.get(name, [])) > 1:
            notes.append(f"{name}: a module of {_listed(modules[name])}: its file loads the first")
        what = f"torch.ops.{name}" if name in spaces else f"the module {name}"
        text = _LOADER.format(what=what, folder=FOLDER, names=list(dict.fromkeys(spaces.get(name, []))))
        if name in modules:
            text += _LOADER_OF_MODULE.format(library=modules[name][0])
        (out / f"{name}.py").write_text(text)
    return tuple(sorted(spaces)), tuple(sorted(modules)), tuple(notes)


def _listed(libraries: Iterable[str]) -> str:
    return ", ".join(f"{FOLDER}/{name}" for name in libraries)
