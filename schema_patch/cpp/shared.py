"""Constants that one file of a tree defines and another registers operators with. Reads no disk.

A registration stands where its text does: that is where it can be put right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from . import registrations
from .registered import Constant, Elsewhere, Source

DECLARED = rb"^(?!\s*extern\b)[^\n]*\w[\s&*]+NAME\s*[:;,)=\[{]"
DEFINED = rb'(?:#[ \t]*define[ \t]+(NAME)[ \t]|\b(NAME)\s*(?:\[\w*\]\s*)?[={(])[\s\\]*(?:[\w:]+\s*[({]\s*)?(?:u8)?R?"'


def find(sources: Mapping[str, Source], paths: Iterable[str], data: Callable[[str], bytes]) -> dict[str, Elsewhere]:
    """For each file that has to be read again, by path, what others have to do with it."""
    unclear = {path: _foreign(source.unclear, data(path)) for path, source in sources.items() if source.unclear}
    wanted = {constant.name: constant.namespace for constants in unclear.values() for constant in constants}
    if not wanted:
        return {}
    any_name = b"|".join(re.escape(name.encode("latin-1")) for name in sorted(wanted))
    defined = re.compile(DEFINED.replace(b"NAME", any_name))
    homes: dict[str, list[tuple[str, str]]] = {name: [] for name in wanted}  # the files that define it, with its text
    for path in paths:
        here = data(path)
        names = {(match[1] or match[2]).decode("latin-1") for match in defined.finditer(here)}
        for name, text in registrations.constants(here, sorted(names)).items() if names else ():
            homes[name].append((path, text))
    known = {name: found[0] for name, found in homes.items() if len(found) == 1}
    result: dict[str, Elsewhere] = {}
    for path in {*unclear, *(home for home, _ in known.values())}:
        mine = {c.name: known[c.name][1] for c in unclear.get(path, ()) if c.name in known}
        registered = {name: wanted[name] for name, (home, _) in sorted(known.items()) if home == path}
        if mine or registered:
            result[path] = Elsewhere(mine, registered)
    return result


def _foreign(constants: Iterable[Constant], source: bytes) -> list[Constant]:
    """Those that the file does not declare itself, as a parameter or what a loop is at."""
    names = ((one, re.escape(one.name.encode("latin-1"))) for one in constants)
    return [one for one, name in names if not re.search(DECLARED.replace(b"NAME", name), source, re.MULTILINE)]
