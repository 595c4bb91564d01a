"""A function that takes structs, seen as the operator of a wrapper that takes their parts one by one.

`wrap<&f>` registers `f(Camera camera, at::Tensor out)` under a schema with the camera's parts in its place. How a
wrapper takes a struct apart is template arithmetic, which is not followed: parameters that the schema calls by the same
name are those arguments, and what lies between two of them are the parts of the parameters between.
"""

from __future__ import annotations

from collections.abc import Sequence

from .domain.summary import UNKNOWN, Summary
from .domain.values import (
    DEREF,
    MIXED,
    NOTHING,
    Field,
    Local,
    Origin,
    Parameter,
    Path,
    Value,
    at,
    is_old,
    parameter,
)

Parts = list[range]  # of each parameter, the arguments that it may be made of


def parts(parameters: Sequence[str], arguments: Sequence[str]) -> Parts:
    """Which arguments belong to each parameter, by the names that both have, in order."""
    found: Parts = []
    start = 0
    run: list[str] = []  # parameters since the last that has an argument's name
    for name in (*parameters, ""):
        end = arguments.index(name, start) if name in arguments[start:] else len(arguments)
        if name and end == len(arguments):
            run.append(name)
            continue
        alike = len(run) == end - start
        found += [range(start + n, start + n + 1) if alike else range(start, end) for n in range(len(run))]
        found += [range(end, end + 1)] if name else []
        start, run = end + 1, []
    return found


class _Flattening:
    """One summary with its parameters as the wrapper's arguments."""

    def __init__(self, parameters: Sequence[str], arguments: Sequence[str]) -> None:
        self.parameters = parameters
        self.arguments = arguments
        self.parts = parts(parameters, arguments)

    def places(self, root: Parameter, path: Path) -> list[tuple[Parameter, Path, bool]]:
        """The places that one may be among the arguments, and whether it is sure that it is each of them."""
        if not 0 <= root.number < len(self.parts):
            return []
        found = self.parts[root.number]
        if len(found) == 1 and self.arguments[found[0]] == self.parameters[root.number]:
            return [(parameter(found[0]), path, True)]
        name = path[0].text[1:] if path and isinstance(path[0], Field) else ""
        named = [n for n in found if name and (self.arguments[n] == name or self.arguments[n].endswith(f"_{name}"))]
        if len(named) == 1:
            return [(parameter(named[0]), path[1:], True)]
        return [(parameter(n), path, False) for n in found]

    def value(self, value: Value) -> Value:
        found = set[Origin]()
        for root, path, const in value:
            if not isinstance(root, Parameter):
                found.add((root, path, const))
                continue
            for place, rest, sure in self.places(root, path):
                found.add((place, rest if sure else (*rest, DEREF), const))
        return frozenset(found)


def flattened(summary: Summary, parameters: Sequence[str], arguments: Sequence[str], returns: int) -> Summary:
    """What a call of the wrapper does, which has these arguments and returns so many values."""
    flat, made = _Flattening(parameters, arguments), Summary()
    for effect, chain in summary.effects.items():
        kind, root, path = effect
        for place, rest, sure in flat.places(root, path):
            if sure:
                made.add((kind, place, rest), chain, summary.reasons.get(effect, ""))
            else:
                made.add((UNKNOWN, place, ()), chain, f"perhaps a part of '{parameters[root.number]}', which is used")
    reads = ((place, const) for root, path, const in summary.reads for place in flat.places(root, path))
    made.reads = {(place, rest, const) for (place, rest, _), const in reads}
    for (root, path), value in summary.stores.items():
        for place, rest, _ in flat.places(root, path):
            made.stores[place, rest] = flat.value(value)
    made.returned = flat.value(summary.returned)
    for values, line in summary.returns:
        if len(values) != returns:  # the parts of a struct: which is which is not known
            new = not (summary.made or any(is_old(root) for v in values for root, _, _ in v))
            values = (NOTHING if new else at(Local(MIXED, 0)),) * returns
        made.returns.append((tuple(map(flat.value, values)), line))
    made.finish()
    return made
