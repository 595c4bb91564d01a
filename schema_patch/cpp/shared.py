"""Constants that one file of a tree defines and another registers operators with. Reads no disk.

A registration stands where its text does: that is where it can be put right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from . import registrations
from .registered import Elsewhere, Source


def find(sources: Mapping[str, Source], paths: Iterable[str], data: Callable[[str], bytes]) -> dict[str, Elsewhere]:
    """For each file that has to be read again, by path, what others have to do with it."""
    unclear = {path: source.unclear for path, source in sources.items() if source.unclear}
    wanted = {constant.name: constant.namespace for constants in unclear.values() for constant in constants}
    if not wanted:
        return {}
    word = re.compile(rb"\b(" + b"|".join(re.escape(name.encode("latin-1")) for name in sorted(wanted)) + rb")\b")
    homes: dict[str, list[tuple[str, str]]] = {name: [] for name in wanted}  # the files that define it, with its text
    for path in paths:
        bytes_ = data(path)
        names = {match.decode("latin-1") for match in word.findall(bytes_)} if b'"' in bytes_ else set[str]()
        for name, text in registrations.constants(bytes_, sorted(names)).items() if names else ():
            homes[name].append((path, text))
    known = {name: found[0] for name, found in homes.items() if len(found) == 1}
    result: dict[str, Elsewhere] = {}
    for path in {*unclear, *(home for home, _ in known.values())}:
        mine = {c.name: known[c.name][1] for c in unclear.get(path, ()) if c.name in known}
        here = {name: wanted[name] for name, (home, _) in sorted(known.items()) if home == path}
        if mine or here:
            result[path] = Elsewhere(mine, here)
    return result
