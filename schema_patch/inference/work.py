"""The inference over all operators of a tree, shared between processes and with earlier runs. Judges nothing."""

from __future__ import annotations

import gc
import hashlib
import multiprocessing
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from schema_patch.schemas.inferred import Inferred

from . import operators, unwritten
from .domain import models
from .engine.summaries import Summaries
from .index.asked import EVERY_RUN, number, touches
from .index.index import PASTES, Index, mentions
from .index.mask import Macro
from .index.scan import FileIndex
from .index.store import Kept, Store
from .index.tree import Tree, processes
from .infer import Inference
from .operators import ImplementedOperator

Step = Callable[[str], None]
RECURSION = 20_000
# What a forked process finds; it is never sent.
_shared: list[tuple[Inference, Sequence[ImplementedOperator]]] = []


def operators_of(tree: Tree, index: Index, elsewhere: Iterable[operators.Defined] = ()) -> list[ImplementedOperator]:
    """Every operator that the tree registers, with its implementations; last those whose schema stands elsewhere."""
    macros: dict[str, Macro] = {
        name: definitions[-1][1]
        for name, definitions in index.macros.items()
        if any(m.parameters and operators.IMPL_MACRO.search(m.body) for _, m in definitions)
    }
    extra = [
        implementation
        for path in (file.index.path for file in tree.files if macros and file.index.registers)
        for implementation in operators.through_macros(index.text(path).data, path, macros)
    ]
    names = (one for source in tree.sources.values() for one in source.unwritten)
    inferred = unwritten.operators(names, inference_of(index))
    return [*inferred, *operators.match(tree.sources.values(), extra, elsewhere)]


def inference_of(index: Index) -> Inference:
    return Inference(index, Summaries(index, models.load()))


def infer(found: Sequence[ImplementedOperator], index: Index, step: Step = lambda _: None) -> list[Inferred]:
    """What each operator does, in order."""
    return [inferred for inferred, _ in told(found, index, range(len(found)), step).values()]


def again(
    found: Sequence[ImplementedOperator], index: Index, tree: Tree, store: Store, step: Step = lambda _: None
) -> list[Inferred]:
    """The same. What an earlier run told of an operator holds as long as nothing that it looked up has changed."""
    now = Kept({file.index.path: file for file in tree.files}, {made.path: made for made in index.made})
    keys = [key_of(operator) for operator in found]
    registered = (key.partition(" ")[0] for key in store.kept.results.keys() ^ set(keys))
    changed = frozenset(map(number, (EVERY_RUN, *changes(store.kept, now), *registered)))
    known = {key: kept for key, kept in store.kept.results.items() if not touches(kept[1], changed)}
    missing = [n for n, key in enumerate(keys) if key not in known]
    new = told(found, index, missing, step)
    now.results = {key: new[n] if n in new else known[key] for n, key in enumerate(keys)}
    if now != store.kept:
        store.save(now)
    return [now.results[key][0] for key in keys]


def changes(before: Kept, after: Kept) -> Iterator[str]:
    """The paths of all changed files, and the names that stand for something else in them than they did."""
    for path in {*before.files, *after.files}:
        old, new = before.files.get(path), after.files.get(path)
        if old is None or new is None or old.digest != new.digest:
            yield path
            yield from differing(*(file.index if file else None for file in (old, new)))
    for path in {*before.made, *after.made}:
        yield from differing(before.made.get(path), after.made.get(path))


def differing(old: FileIndex | None, new: FileIndex | None) -> Iterator[str]:
    """The names that two readings of a file do not give the same meaning."""
    if old != new:
        was, now = (meanings(index) if index else {} for index in (old, new))
        yield from (name for name in {*was, *now} if was.get(name) != now.get(name))


def meanings(index: FileIndex) -> dict[str, list[object]]:
    """Everything that a file gives a meaning to, and what is seen of that without reading it."""
    found: dict[str, list[object]] = defaultdict(list)
    for function in index.functions:
        found[function.name].append((function.scope, function.arity, function.in_class, function.declared))
        found[function.read_as].append(function.whole)
    for macro in index.macros:
        for name in (macro.name, *([PASTES] if PASTES in macro.body else [])):
            found[name].append((macro.parameters, macro.body))
    for kind in index.classes:
        found[kind.name].append(kind)
    for pairs in (index.prototypes, index.aliases, index.stubs, index.bindings, mentions(index)):
        for name, meaning in pairs:
            found[name].append(meaning)
    return found


def key_of(operator: ImplementedOperator) -> str:
    """An operator's name, and a digest of how it is registered."""
    text = repr((operator.schema.text, operator.implementations))
    digest = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
    return f"{operator.full_name} {digest}"


def told(
    found: Sequence[ImplementedOperator], index: Index, wanted: Sequence[int], step: Step
) -> dict[int, tuple[Inferred, bytes]]:
    """What operators do, by their place, with the names that were looked up. Operators of one file share a process, and
    what was learnt of its callees."""
    inference = inference_of(index)
    inference.dispatch(found)
    groups = _groups(found, wanted, processes() * 8)
    results: dict[int, tuple[Inferred, bytes]] = {}
    if len(wanted) < 8 or processes() == 1:
        for group in groups:
            results |= _group(inference, found, group)
    else:
        _shared.append((inference, found))
        try:
            with multiprocessing.get_context("fork").Pool(processes(), gc.disable) as pool:
                for part in pool.imap_unordered(_forked, groups):
                    for place in part:
                        step(found[place].op)
                    results |= part
        finally:
            _shared.pop()
    return {place: results[place] for place in wanted}


def _groups(found: Sequence[ImplementedOperator], wanted: Sequence[int], count: int) -> list[list[int]]:
    """The operators in groups, in an order in which each process mostly takes neighbours: they share callees."""
    order = sorted(wanted, key=lambda n: (found[n].location.path, n))
    size = max(1, -(-len(order) // count))
    groups = [order[start : start + size] for start in range(0, len(order), size)]
    part = -(-len(groups) // processes())
    return [group for first in range(part) for group in groups[first::part]]


def _group(
    inference: Inference, found: Sequence[ImplementedOperator], group: Sequence[int]
) -> dict[int, tuple[Inferred, bytes]]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION))
    try:
        return {place: _deep(inference, found[place]) for place in group}
    finally:
        sys.setrecursionlimit(limit)


def _deep(inference: Inference, operator: ImplementedOperator) -> tuple[Inferred, bytes]:
    return inference.told(operator)


# Python keeps frames in pieces of 16 KB, and maps and unmaps memory each time that a call crosses from one to the next.
# Behind a frame that wants as much as this, all deeper ones have room in one piece, which is touched where it is used.
_deep.__code__ = _deep.__code__.replace(co_stacksize=1 << 20)


def _forked(group: list[int]) -> dict[int, tuple[Inferred, bytes]]:
    inference, found = _shared[-1]
    return _group(inference, found, group)
