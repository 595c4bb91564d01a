"""What is observed in this process: which operators, where their calls are counted, and the file it ends in."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import util as processes
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch._ops import OpOverload

from esimd_ops import registry
from schema_patch.model import ToolError
from schema_patch.schemas import grammar

from . import entry, reading, record
from .entry import Callee, Instead, Interception
from .reading import TRACED
from .record import OperatorSeen, SeenRecord, count
from .schedule import OVER, Schedule
from .watch import Signature, Watcher

WRITE_S = 1.0  # how old a part of the record may grow: a worker may be killed
WATCHING_S, BYTE_S = 5e-4, 2e-9  # what an operator's first watching may cost, and each byte that it can reach
_clock = time.perf_counter
log = logging.getLogger("schema_kit")

Keep = Callable[[], None]
Save: TypeAlias = "Callable[[OpOverload[..., Any], dict[str, Any]], Keep]"


@dataclass
class _State:
    """One overload, as long as its schema is the same.

    `turns`: calls by their shape, but those refused for the budget. `cost_s`: of its last watching.
    """

    signature: Signature
    schema: str
    seen: OperatorSeen
    turns: dict[tuple[Any, ...], int] = field(default_factory=dict)
    saved: set[tuple[Any, ...]] = field(default_factory=set)
    cost_s: float | None = None


class Session:
    """Observes from `start` to `stop`.

    namespaces  whose operators; none for all that are not torch's own
    save        is given a call of each shape, before it is made, and keeps it once it has returned
    allowed     operators that may lie for now, as namespace::name, each with a reason; their calls are not watched
    """

    def __init__(self, namespaces: Collection[str], schedule: Schedule, save: Save | None = None) -> None:
        self.namespaces = tuple(namespaces)
        self.schedule, self.save = schedule, save
        self.allowed: dict[str, str] = {}
        self.watcher = Watcher()
        self.lock = threading.RLock()
        self._states: dict[str, _State] = {}
        self._entry = Interception(self._replace)
        self._path: Path | None = None
        self._written = 0.0

    def start(self) -> None:
        entry.hide_from_dynamo(_ObservedCallee.__call__)
        self.schedule.start()
        self._entry.open()

    def stop(self) -> None:
        self._entry.close()
        self.schedule.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is watched or counted meanwhile."""
        self._entry.close()
        try:
            yield
        finally:
            self._entry.open()

    def keep_in(self, path: Path) -> None:
        """Writes what was seen, now and then and at the end of the process, into a file that others add to.

        Raises ToolError where there can be no such file. What cannot be written later is an error in the log.
        """
        self._path = path.absolute()
        if self._path.exists() and not self._path.is_file():
            raise ToolError("what is observed cannot be written: expected a file or nothing there", str(path))
        try:
            record.parts_of(self._path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ToolError(f"what is observed cannot be written: {error.strerror}", str(path)) from error
        atexit.register(self._finish)
        processes.Finalize(None, self._finish, exitpriority=100)  # children of multiprocessing end without atexit
        os.register_at_fork(after_in_child=self._begin_anew)

    def record(self) -> SeenRecord:
        """What was seen so far; registered operators that were never called are in it."""
        found, others = {}, set()
        for schema in torch._C._jit_get_all_schemas():
            if self.takes(schema.name):
                found[full_name(schema.name, schema.overload_name)] = OperatorSeen(str(schema))
            else:
                others.add(schema.name.partition("::")[0])
        found |= {name: state.seen for name, state in self._states.items()}
        schedule = self.schedule
        return SeenRecord(
            dict(sorted(found.items())), self.namespaces, tuple(sorted(others - entry.TORCHS_OWN)),
            spent_s=schedule.spent_s, ran_s=schedule.ran_s,
        )  # fmt: skip

    def takes(self, name: str) -> bool:
        space = name.partition("::")[0]
        return space in self.namespaces if self.namespaces else space not in entry.TORCHS_OWN

    def state(self, name: str, overload: str) -> _State:
        full, text = full_name(name, overload), str(torch._C._get_schema(name, overload))
        there = self._states.get(full)
        key = full if there is None or there.schema == text else text  # registered again, as another
        signature = Signature.of(full, grammar.parse(text))
        return self._states.setdefault(key, _State(signature, text, OperatorSeen(text)))

    def wrote(self) -> None:
        """Called after a watched call."""
        if self._path and _clock() > self._written + WRITE_S:
            self._write()

    def _replace(self, callee: Callee, original: Callable[..., Any]) -> Instead | None:
        return _ObservedCallee(original, callee, self) if self.takes(entry.name_of(callee)) else None

    def _write(self) -> None:
        assert self._path
        try:
            with self.lock:
                record.write(record.parts_of(self._path), self.record())
        except OSError as error:  # no reason for the program to fail
            log.error("what was observed could not be written: %s", error)
        self._written = _clock()

    def _finish(self) -> None:
        if self._path:
            self._write()
            try:
                record.gather(self._path)
            except OSError as error:
                log.error("what was observed could not be gathered: %s", error)
            self._path = None

    def _begin_anew(self) -> None:
        """In a process that was forked: what its parent saw is told by its parent."""
        self.lock = threading.RLock()
        for state in self._states.values():
            state.seen, state.turns = OperatorSeen(state.schema), {}
        self.schedule.begin_anew()


class _ObservedCallee(Instead):
    """In the place of one packet or overload."""

    def __init__(self, original: Callable[..., Any], callee: Callee, session: Session) -> None:
        super().__init__(original, callee)
        self._session = session
        self._name = entry.name_of(callee)
        self._only: _State | None = None  # of an overload, or a packet with no other
        self._states: dict[str, _State] = {}

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        session, began = self._session, _clock()
        state = self._only or self._state(args, kwargs)
        with torch._C.DisableTorchFunction():
            seen, shape = state.seen, reading.key(args, kwargs)
        seen.calls += 1
        try:
            turn = state.turns[shape] = state.turns.get(shape, 0) + 1
        except TypeError:  # a size that is a symbol cannot be hashed
            return self._traced(state, args, kwargs)
        needs = 0.0
        if session.allowed and (reason := session.allowed.get(self._name)):
            count(seen.allowed, reason)
        elif session.schedule.watches(turn):
            needs = self._needs(state, args, kwargs)
            if session.schedule.affords(needs, self.put):
                return self._watch(state, (shape, turn), args, kwargs, began)
            state.turns[shape] -= 1
            count(seen.unwatched, OVER)
        self._spend(state, _clock() - began, needs)
        return self.original(*args, **kwargs)

    def _state(self, args: Any, kwargs: Any) -> _State:
        overload = entry.overload_of(self.callee, args, kwargs)
        state = self._states.get(overload) or self._session.state(self._name, overload)
        self._states[overload] = state
        if isinstance(self.callee, OpOverload) or len(self.callee._overload_names) == 1:
            self._only = state
        return state

    def _watch(self, state: _State, turn: tuple[tuple[Any, ...], int], args: Any, kwargs: Any, began: float) -> Any:
        session, inside = self._session, 0.0
        session.schedule.redeem(self.put)
        if torch._C._get_tracing_state() is not None:  # torch.jit.trace would record what we ask; a shape is of tensors
            state.turns.pop(turn[0])
            return self._traced(state, args, kwargs)

        def timed(*args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            start = _clock()
            try:
                return self.original(*args, **kwargs)
            finally:
                inside = _clock() - start

        keep: Keep | None = None
        if session.save and turn[0] not in state.saved:
            values = reading.named(state.signature.arguments, args, kwargs)
            keep = session.save(registry.overload(state.signature.op), values)
        try:
            result = session.watcher.call(state.signature, state.seen, turn, timed, args, kwargs, session.lock)
            if keep:
                state.saved.add(turn[0])
                keep()
            return result
        finally:
            session.wrote()
            state.cost_s = _clock() - began - inside
            self._spend(state, state.cost_s, 0.0)

    def _traced(self, state: _State, args: Any, kwargs: Any) -> Any:
        count(state.seen.unwatched, TRACED)
        return self.original(*args, **kwargs)

    def _needs(self, state: _State, args: Any, kwargs: Any) -> float:
        """What watching this call will cost, in seconds, where there is a budget: as the last one, or by its bytes."""
        if self._session.schedule.budget is None:
            return 0.0
        if state.cost_s is not None:
            return state.cost_s
        return WATCHING_S + BYTE_S * reading.size([*args, *kwargs.values()])

    def _spend(self, state: _State, seconds: float, needs: float) -> None:
        """Rests where there is not so much left as it needs."""
        schedule = self._session.schedule
        schedule.spend(seconds)
        if not schedule.affords(needs, self.put):
            self.take()
            state.seen.rested = True
            schedule.rest(needs, self.put)


def full_name(name: str, overload: str) -> str:
    return f"{name}.{overload}" if overload else name


def namespaces(words: Iterable[str]) -> tuple[str, ...]:
    """One by one, or with commas or spaces between."""
    return tuple(dict.fromkeys(name for word in words for name in word.replace(",", " ").split()))
