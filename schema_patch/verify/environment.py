"""What the libraries and scripts of one environment must agree on -> findings. Pure: reads nothing.

Knows which SYCL runtime a library needs, who defines which operator, and how Python names operators. Does not know what
an operator must declare (verify.py), nor how an environment is read (survey.py). Codes:
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from ctypes import pythonapi

from schema_patch.elf.reader import ElfFacts
from schema_patch.elf.sycl import sycl_major
from schema_patch.installed.packages import Placed
from schema_patch.model import Finding, Location, Severity, ToolError

CALL = re.compile(r"torch\.ops\.(?P<space>\w+)\.(?P<op>\w+)")
# Of torch, of compilers and systems: what these have in common with a library of operators is meant to be theirs.
RUNTIME = re.compile(
    r"(lib(torch(_(cpu|cuda|xpu|hip|python|global_deps))?|c10(_(cuda|xpu|hip))?|stdc\+\+|gcc_s|sycl|shm|c|m|dl|rt|pthread)"
    r"|ld-linux[-\w]*)\.so\b"
)
TORCHS = ("_Z", "aoti_torch_", "torch_library_")
DEFINED = re.compile(r"""(?:["'](?:\w+::)|define\(\s*f?["']|op_name\s*=\s*["'])(?P<op>\w+)""")


def check(
    libraries: Sequence[Placed],
    names: AbstractSet[str],
    scripts: Mapping[str, Callable[[], bytes]],
    *,
    installed: bool,
    complete: bool,
) -> Iterator[Finding]:
    """The findings of one environment.

    `names`: of the libraries and links that a loader may find in it. `installed`: distributions are installed in it.
    `complete`: it is all there is, as an image is, where a missing runtime cannot come from the system.
    """
    yield from _runtimes(libraries)
    if installed:
        yield from _missing(libraries, names, complete)
    yield from _twice(libraries)
    yield from _wrappers(libraries, scripts)


def _runtimes(libraries: Sequence[Placed]) -> Iterator[Finding]:
    groups: dict[str, list[Placed]] = defaultdict(list)
    for library in libraries:
        major = sycl_major(library.facts)
        if major and not library.facts.soname.startswith("libsycl"):
            groups[major].append(library)
    if len(groups) < 2:
        return
    words = [f"libsycl.so.{major} ({_owners(group)})" for major, group in sorted(groups.items())]
    fewest = min(groups.values(), key=len)
    message = f"two SYCL runtimes in one environment: {' beside '.join(words)}; rebuild one with the other's toolchain"
    yield Finding("SP206", Location(fewest[0].facts.path), "", message)


def _owners(group: Sequence[Placed]) -> str:
    owners = sorted({library.owner or os.path.basename(library.facts.path) for library in group})
    more = f" and {len(owners) - 3} more" if len(owners) > 3 else ""
    return f"needed by {', '.join(owners[:3])}{more}"


def _missing(libraries: Sequence[Placed], names: AbstractSet[str], complete: bool) -> Iterator[Finding]:
    for major in sorted({sycl_major(library.facts) or "" for library in libraries} - {""}):
        runtime = f"libsycl.so.{major}"
        if runtime in names:
            continue
        needing = [library for library in libraries if sycl_major(library.facts) == major]
        others = sorted(name for name in names if re.fullmatch(r"libsycl\.so\.\d+", name))
        found = f"found {', '.join(others)}" if others else "found none"
        doubt = "" if complete else "; unless the system has one: install the intel-sycl-rt that torch asks for"
        message = f"expected {runtime} in the environment, {_owners(needing)}, {found}{doubt}"
        severity = Severity.ERROR if complete else Severity.WARNING
        yield Finding("SP207", Location(needing[0].facts.path), "", message, severity)


def _twice(libraries: Sequence[Placed]) -> Iterator[Finding]:
    first: dict[tuple[str, str], str] = {}
    pairs: dict[tuple[str, str], list[str]] = defaultdict(list)
    for library in libraries:
        for found in library.facts.schemas:
            space = found.space
            if not space:
                continue
            other = first.setdefault((space, found.schema.op), library.facts.path)
            if other != library.facts.path:
                pairs[other, library.facts.path].append(f"{space}::{found.schema.op}")
    for (other, path), ops in pairs.items():
        more = f" and {len(ops) - 1} more" if len(ops) > 1 else ""
        message = f"{ops[0]}{more} defined here and in {other}: whichever is loaded second fails; remove the stale one"
        yield Finding("SP208", Location(path), ops[0], message, Severity.WARNING)


def _wrappers(libraries: Sequence[Placed], scripts: Mapping[str, Callable[[], bytes]]) -> Iterator[Finding]:
    """Judges only namespaces that one package's libraries are known to define."""
    defined: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    folders: dict[str, set[str]] = defaultdict(set)
    for library in libraries:
        for found in library.facts.schemas if library.judged else ():
            space = found.space
            if space:
                defined[library.owner][space].add(found.schema.op.partition(".")[0])
                folders[library.owner].add(os.path.dirname(library.facts.path) + "/")
    for owner, spaces in defined.items():
        mine = [path for path in sorted(scripts) if path.startswith(tuple(folders[owner]))]
        texts = {path: scripts[path]().decode("utf-8", "replace") for path in mine}
        python = {match["op"] for text in texts.values() for match in DEFINED.finditer(text)}
        told: set[tuple[str, str]] = set()
        for path, text in texts.items():
            for match in CALL.finditer(text):
                space, op = match["space"], match["op"]
                if space in spaces and op not in spaces[space] | python and (space, op) not in told:
                    told.add((space, op))
                    line = text.count("\n", 0, match.start()) + 1
                    where = Location(path, line, match.start() - text.rfind("\n", 0, match.start()))
                    message = f"calls torch.ops.{space}.{op}, which no library of {owner or 'its folder'} defines"
                    yield Finding("SP209", where, op, message, Severity.WARNING)


def replaced(libraries: Sequence[ElfFacts]) -> Iterator[ToolError]:
    """Libraries whose registrations go through names that another one has too: who is loaded first is asked for them.

    Of libraries with one file name Python loads one. Names of C that this process has without them, any has.
    """
    for facts in libraries:
        taken = min(
            (name for name in facts.relies if not name.startswith(TORCHS) and hasattr(pythonapi, name)), default=""
        )
        if taken:
            why = f"a process has {taken} before it loads the library, and asks that one"
            yield ToolError(f"could not verify its operators: {why}; ask torch: verify-schemas --load", facts.path)
        lengths = {*map(len, facts.relies)}  # names are long and many: few of them are looked up
        for other in libraries if facts.relies else ():
            title = os.path.basename(other.path)
            if title == os.path.basename(facts.path) or RUNTIME.match(title):
                continue
            likely = [name for name in other.exports if len(name) in lengths or not name.isascii()]
            both = facts.relies & {name.decode("ascii", "backslashreplace") for name in likely}
            if both:
                more = f" and {len(both) - 1} more names" if len(both) > 1 else ""
                why = f"{other.path} has {min(both)}{more} too, and may stand in for it"
                yield ToolError(f"could not verify its operators: {why}; ask torch: verify-schemas --load", facts.path)
                break


def unread(libraries: Sequence[ElfFacts], read: Callable[[str], ElfFacts]) -> Iterator[ToolError]:
    """Libraries that others need, or those in turn, and bring with them, which register operators too and were not
    read."""
    known = {os.path.realpath(facts.path) for facts in libraries}
    for facts in libraries:
        pending = [facts] if facts.registers else []
        for one in pending:  # which grows
            for path in _brought(one):
                if path in known:
                    continue
                known.add(path)
                try:
                    pending.append(read(path))
                    registers = pending[-1].registers
                except ToolError:
                    registers = True
                if registers:
                    yield ToolError(f"it needs {path}, which registers operators too: name it as well", facts.path)


def _brought(facts: ElfFacts) -> Iterator[str]:
    """The files that a library finds by its run path, but for those of torch and of systems."""
    home = os.path.dirname(os.path.abspath(facts.path))
    for folder in filter(None, facts.runpath.split(":")):
        where = re.sub(r"\$(ORIGIN\b|\{ORIGIN\})", lambda _: home, folder)
        paths = (os.path.realpath(os.path.join(where, name)) for name in facts.needed if not RUNTIME.match(name))
        yield from filter(os.path.isfile, paths)
