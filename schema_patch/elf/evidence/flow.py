"""One function as a graph: where paths that part at a branch meet again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .instructions import BRANCH, CALL, END, JUMP, RETURN, Step

LARGEST = 60_000  # instructions of one function
EXIT = -1
SEEN = 4  # addresses taken before a jump of which one may be that of its table


@dataclass(frozen=True, slots=True)
class Graph:
    """The instructions of a function by address, with those that come next. `tables`: where jumps may lead."""

    after: dict[int, tuple[int, ...]]
    tables: dict[int, tuple[int, ...]]


def graph(
    entry: int, step: Callable[[int], Step], ends: Callable[[Step], bool], table: Callable[[int, int], tuple[int, ...]]
) -> Graph:
    """`ends`: whether a call never comes back; such a path meets nobody. `table`: where a jump by a table leads."""
    after: dict[int, tuple[int, ...]] = {}
    tables: dict[int, tuple[int, ...]] = {}
    pending: list[tuple[int, tuple[int, ...]]] = [(entry, ())]
    while pending and len(after) < LARGEST:
        at, taken = pending.pop()
        while at not in after:
            now = step(at)
            if now.table:
                taken = (now.table, *taken[: SEEN - 1])
            if now.kind == RETURN:
                after[at] = (EXIT,)
            elif now.kind == END or (now.kind == CALL and ends(now)):
                after[at] = ()
            elif now.kind == JUMP and not now.to:
                found = (table(entry, address) for address in taken)
                tables[at] = next((targets for targets in found if len(targets) > 1), ())
                after[at] = tables[at] or (EXIT,)
            elif now.kind == JUMP:
                after[at] = (now.to,)
            else:
                after[at] = (now.next, now.to) if now.kind == BRANCH else (now.next,)
            following = [other for other in after[at] if other != EXIT]
            pending += [(other, taken) for other in following[1:]]
            if not following:
                break
            at = following[0]
    return Graph(after, tables)


def meetings(after: dict[int, tuple[int, ...]]) -> dict[int, int]:
    """Of each instruction, the first that every path from it to a return passes; EXIT where there is none."""
    order = _backwards(after)
    place = {address: n for n, address in enumerate(order)}
    nearest: dict[int, int] = {EXIT: EXIT}
    changed = True
    while changed:
        changed = False
        for address in order[1:]:
            found = None
            for other in after[address]:
                if other in nearest:
                    found = other if found is None else _common(nearest, place, found, other)
            if found is not None and nearest.get(address) != found:
                nearest[address] = found
                changed = True
    return nearest


def read_first(
    entry: int, own: int, after: dict[int, tuple[int, ...]], uses: Callable[[int], tuple[int, int, int]]
) -> int:
    """Those of some registers that a function reads before it writes them, but to put them back. `uses` of a step: what
    it reads, what it writes, and what it pushes or pops; a bit each."""
    read = pushed = popped = 0
    seen: dict[int, int] = {}
    pending = [(entry, own)]
    while pending:
        at, left = pending.pop()
        while at != EXIT and left & ~seen.get(at, 0):
            seen[at] = seen.get(at, 0) | left
            reads, writes, moved = uses(at)
            pushed |= left & moved & reads
            read |= left & reads & ~moved
            left &= ~writes
            following = after.get(at, ())
            pending += [(other, left) for other in following[1:]]
            if not following:
                break
            at = following[0]
    for at in after if pushed else ():
        reads, _, moved = uses(at)
        popped |= moved & ~reads
    return read | (pushed if popped & ~own else 0)


def _backwards(after: dict[int, tuple[int, ...]]) -> list[int]:
    """From the exit on, each address behind those that it leads to, as far as there are no loops."""
    before: dict[int, list[int]] = {}
    for address, others in after.items():
        for other in others:
            before.setdefault(other, []).append(address)
    done: list[int] = []
    seen = {EXIT}
    stack = [(EXIT, iter(before.get(EXIT, ())))]
    while stack:
        address, ahead = stack[-1]
        for found in ahead:
            if found not in seen:
                seen.add(found)
                stack.append((found, iter(before.get(found, ()))))
                break
        else:
            done.append(address)
            stack.pop()
    return done[::-1]


def _common(nearest: dict[int, int], place: dict[int, int], left: int, right: int) -> int:
    while left != right:
        while place[left] > place[right]:
            left = nearest[left]
        while place[right] > place[left]:
            right = nearest[right]
    return left
