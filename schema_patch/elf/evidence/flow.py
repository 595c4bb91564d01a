"""One function as a graph: where paths that part at a branch meet again, and what it is given and calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .instructions import BRANCH, CALL, END, JUMP, RETURN, Step

LARGEST = 60_000  # instructions of one function
EXIT = -1
ARGUMENTS = 0b11_1100_0110  # rcx, rdx, rsi, rdi, r8, r9, a bit each
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


def given(
    entry: int, step: Callable[[int], Step], after: dict[int, tuple[int, ...]], callee: Callable[[Step], int]
) -> int:
    """The registers that a function is given: read before they are written. `callee`: those of what it calls."""
    read = 0
    seen: dict[int, int] = {}
    pending = [(entry, ARGUMENTS)]
    while pending:
        at, own = pending.pop()
        while own & ~seen.get(at, 0) and at != EXIT:
            seen[at] = seen.get(at, 0) | own
            now = step(at)
            read |= own & now.reads
            own &= ~now.writes
            if now.kind == CALL or (now.kind == JUMP and not now.to):
                read |= own & callee(now)
                own = 0
            following = after.get(at, ())
            pending += [(other, own) for other in following[1:]]
            if not following:
                break
            at = following[0]
    return read


def called(step: Callable[[int], Step], after: dict[int, tuple[int, ...]]) -> Iterator[Step]:
    """The calls of a function, and its jumps out."""
    for address in after:
        now = step(address)
        if now.kind == CALL or (now.kind == JUMP and not now.to):
            yield now


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
        found = next((other for other in ahead if other not in seen), None)
        if found is None:
            done.append(address)
            stack.pop()
        else:
            seen.add(found)
            stack.append((found, iter(before.get(found, ()))))
    return done[::-1]


def _common(nearest: dict[int, int], place: dict[int, int], left: int, right: int) -> int:
    while left != right:
        while place[left] > place[right]:
            left = nearest[left]
        while place[right] > place[left]:
            right = nearest[right]
    return left
