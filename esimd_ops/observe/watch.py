"""One call, watched: bytes before, the call, bytes after, what it returned; and what that says. Decides nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from schema_patch.schemas.grammar import Schema

from . import memory, reading
from .before import Before
from .handed import Handed, Results
from .reading import NotWatched
from .record import KeptSeen, OperatorSeen, ResultSeen, TimesSeen, Where, add, count, tell

NOT_CALLERS = (f"{Path(__file__).parent}{os.sep}", f"{Path(torch.__file__).parent}{os.sep}", "<")
CALLS = (torch._ops.OpOverload.__call__.__code__, torch._ops.OpOverloadPacket.__call__.__code__)
Turn = tuple[object, int]


@dataclass(frozen=True)
class Signature:
    """What the schema of an operator says, as this module needs it. `op`: as namespace::name.overload."""

    op: str
    arguments: tuple[str, ...]
    declared: frozenset[str]
    returns: int

    @classmethod
    def of(cls, op: str, schema: Schema) -> Signature:
        return cls(op, tuple(arg.name for arg in schema.args), frozenset(schema.writes), len(schema.returns))


class Watcher:
    """What the watched calls of a process have in common: the results that were handed out."""

    def __init__(self) -> None:
        self._results = Results()

    def call(
        self,
        signature: Signature,
        seen: OperatorSeen,
        turn: Turn,
        original: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        lock: AbstractContextManager[Any],
    ) -> Any:
        """Calls the operator; what was seen goes into `seen`, under the lock. What the operator raises is raised.

        turn: calls of one shape, and which of them this is, from 1.
        """
        values = reading.named(signature.arguments, args, kwargs)
        place, depth = caller()
        before = None
        try:
            with memory.aside():
                where = Where(place, reading.shapes(values), seen.calls)
                seen.first = seen.first or where
                before = Before(values, self._results, depth, signature.declared)
        except NotWatched as error:
            count(seen.unwatched, str(error))
        if before is None:
            return original(*args, **kwargs)
        returned = False
        try:
            result = original(*args, **kwargs)
            returned = True
        finally:
            if not returned:
                with memory.aside(), lock:
                    self._raised(signature, seen, before, where)
        with memory.aside(), lock:
            try:
                found = [reading.tensors(part) for part in _split(result, signature.returns)]
            except NotWatched as error:
                count(seen.unwatched, str(error))
                return result
            parts = [[tensor for tensor in tensors if tensor.numel()] for tensors in found]
            before.compare(seen, where)
            seen.watched += 1
            seen.results = seen.results or [ResultSeen() for _ in parts]
            for index, tensors in enumerate(parts):
                self._judge(seen.results[index], tensors, parts[:index], signature, before, turn, where)
            self._remember(signature, before, parts, (turn, where, depth))
        return result

    def _raised(self, signature: Signature, seen: OperatorSeen, before: Before, where: Where) -> None:
        """A call that ended in an error tells of what it must not write, and of nothing else."""
        found = OperatorSeen(seen.schema, watched=1, results=[ResultSeen() for _ in range(signature.returns)])
        before.compare(found, where)
        if (found.writes.keys() - signature.declared) or found.either or found.outside or found.earlier:
            add(seen, found)
        else:
            count(seen.unwatched, "raised an error")

    def _remember(
        self, signature: Signature, before: Before, parts: list[list[Tensor]], call: tuple[Turn, Where, int]
    ) -> None:
        """What was handed out, and what was given."""
        turn, where, depth = call
        for tensor in (tensor for tensors in parts for tensor in tensors):
            if tensor.untyped_storage()._cdata not in before.storages:
                self._results.add(signature.op, turn, where, tensor, depth)
        for name in (name for name in before.tensors if name not in signature.declared):
            for tensor in before.tensors[name]:
                self._results.add(signature.op, turn, where, tensor, depth, name)

    def _judge(
        self,
        result: ResultSeen,
        tensors: list[Tensor],
        others: list[list[Tensor]],
        signature: Signature,
        before: Before,
        turn: Turn,
        where: Where,
    ) -> None:
        """What one result is: each tensor of it an argument, memory handed out before, or new."""
        given = [(name, tensor) for name, found in before.tensors.items() for tensor in found]
        fresh = bool(tensors)
        for number, tensor in enumerate(tensors):
            size = tensor.numel() * tensor.element_size()
            if shared := _argument(tensor, given):
                name, whole = shared
                tell(result.same if whole and len(tensors) == 1 else result.view, name, TimesSeen(where, 1, size))
                fresh = False
                continue
            if handed := self._results.earlier(tensor, before.moment):
                alike = handed.op == signature.op and handed.turn[0] == turn[0]
                calls = max(1, turn[1] - handed.turn[1]) if alike else 1
                _keep(result, handed, TimesSeen(where, 1, size), calls, self._results.calls_since(handed))
                fresh = False
            for index, other in enumerate([*others, tensors[:number]]):
                if any(memory.overlap(tensor, twin) for twin in other):
                    tell(result.twins, str(index), TimesSeen(where, 1, size))
        if fresh:
            result.fresh += 1
            for name in signature.arguments:
                if name not in before.tensors:
                    count(result.without, name)


def _argument(tensor: Tensor, given: list[tuple[str, Tensor]]) -> tuple[str, bool] | None:
    """The argument whose memory it shares, and whether it is that argument, as it stands."""
    home = tensor.untyped_storage()._cdata
    shared = [(n, t) for n, t in given if t.untyped_storage()._cdata == home or memory.overlap(tensor, t)]
    whole = next((name for name, other in shared if _identical(tensor, other)), None)
    return (whole, True) if whole else (shared[0][0], False) if shared else None


def _identical(one: Tensor, other: Tensor) -> bool:
    return (
        one.data_ptr() == other.data_ptr()
        and one.shape == other.shape
        and one.stride() == other.stride()
        and (one.dtype, one.is_conj(), one.is_neg()) == (other.dtype, other.is_conj(), other.is_neg())
    )


def _keep(result: ResultSeen, handed: Handed, times: TimesSeen, calls: int, watched: int) -> None:
    """The result was handed out before, so many calls ago, which tells the size of a ring.

    watched: of the calls between, those that were watched. Where some were not, the ring may have turned several times:
    it is known to hold what these have handed out, no more.
    """
    ring = min(calls, watched + 1)
    if result.kept is None:
        result.kept = KeptSeen(times, handed.op, handed.where, ring, handed.argument)
    else:
        result.kept.times.add(times)
        if ring == calls:
            result.kept.ring = min(result.kept.ring, ring)


def _split(result: Any, count: int) -> list[Any]:
    return [] if not count else list(result) if count > 1 else [result]


def caller() -> tuple[str, int]:
    """The innermost line of Python, as file:line, that is neither torch's nor ours; and within how many operators.

    A kernel in Python stands on the stack, between the call of its operator and what it calls.
    """
    frame: FrameType | None = sys._getframe(1)
    place, depth = "", -1
    while frame is not None:
        depth += frame.f_code in CALLS
        if not place and not frame.f_code.co_filename.startswith(NOT_CALLERS):
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return place or "?", depth
