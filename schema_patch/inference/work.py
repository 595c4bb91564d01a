"""The inference over all operators of a tree, shared between processes. Knows the other rooms; judges nothing."""

from __future__ import annotations

import gc
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Sequence

from schema_patch.schemas.inferred import Inferred

from . import operators, unwritten
from .domain import models
from .engine.summaries import Summaries
from .index.index import Index
from .index.mask import Macro
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
    sources = [(file.index.path, file.source) for file in tree.files if file.source]
    extra = [
        implementation
        for path in (file.index.path for file in tree.files if macros and file.index.registers)
        for implementation in operators.through_macros(index.text(path).data, path, macros)
    ]
    names = (one for _, source in sources for one in source.unwritten)
    inferred = unwritten.operators(names, inference_of(index))
    return [*inferred, *operators.match(sources, extra, elsewhere)]


def inference_of(index: Index) -> Inference:
    return Inference(index, Summaries(index, models.load()))


def infer(found: Sequence[ImplementedOperator], index: Index, step: Step = lambda _: None) -> list[Inferred]:
    """What each operator does, in order. Operators of one file share a process, and what was learnt of its callees."""
    inference = inference_of(index)
    inference.dispatch(found)
    groups = _groups(found, processes() * 4)
    results: dict[int, Inferred] = {}
    if len(found) < 8 or processes() == 1:
        for group in groups:
            results |= _group(inference, found, group)
    else:
        _shared.append((inference, found))
        try:
            with multiprocessing.get_context("fork").Pool(processes(), gc.disable) as pool:
                for part in pool.imap_unordered(_forked, groups):
                    for number in part:
                        step(found[number].op)
                    results |= part
        finally:
            _shared.pop()
    return [results[number] for number in range(len(found))]


def _groups(found: Sequence[ImplementedOperator], count: int) -> list[list[int]]:
    """The operators in groups, in an order in which each process mostly takes neighbours: they share callees."""
    order = sorted(range(len(found)), key=lambda n: (found[n].location.path, n))
    size = max(1, -(-len(order) // count))
    groups = [order[start : start + size] for start in range(0, len(order), size)]
    part = -(-len(groups) // processes())
    return [group for first in range(part) for group in groups[first::part]]


def _group(inference: Inference, found: Sequence[ImplementedOperator], group: Sequence[int]) -> dict[int, Inferred]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION))
    try:
        return {n: inference.operator(found[n].schema, found[n].implementations) for n in group}
    finally:
        sys.setrecursionlimit(limit)


def _forked(group: list[int]) -> dict[int, Inferred]:
    inference, found = _shared[-1]
    return _group(inference, found, group)
