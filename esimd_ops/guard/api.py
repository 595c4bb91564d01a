"""enable, disable and status: which operators of which namespaces, and keeping count of what was done."""

from __future__ import annotations

import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from schema_patch.model import Effect
from schema_patch.schemas import grammar
from schema_patch.schemas import table as tables
from schema_patch.schemas.grammar import Schema

from . import cache_key, fakes, late, twins
from .decide import Action, Decision, GuardError, decide

EffectOf = Callable[[Schema], Effect | None]
_lock = threading.RLock()
_effects: dict[str, EffectOf] = {}  # by namespace
_decisions: dict[str, Decision] = {}  # by operator
_tellers: list[Callable[[str], None]] = []


@dataclass(frozen=True)
class Guard:
    """What the guard did, operator by operator; prints as one line each."""

    decisions: tuple[Decision, ...]
    pending: tuple[str, ...] = field(default=())  # namespaces without an operator so far

    @property
    def guarded(self) -> tuple[Decision, ...]:
        return tuple(d for d in self.decisions if d.action in (Action.GUARDED, Action.CLONED))

    def __str__(self) -> str:
        lines = [str(decision) for decision in self.decisions]
        lines += [f"{namespace}: no operators yet; they are guarded when they are loaded" for namespace in self.pending]
        return "\n".join(lines)


def enable(
    namespace: str | Iterable[str] | None = None,
    *,
    table: tables.Table | None = None,
    writes: Mapping[str, Iterable[str]] | None = None,
    returns: Mapping[str, str] | None = None,
    infer: bool = False,
    samples: Mapping[str, tuple[Any, ...]] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Guard:
    """Makes the operators of these namespaces right under torch.compile. May be called again, also before they exist.

    namespace: one or several; by default all that the operator table names.
    table: what each operator does; by default the tables that ship with the kit.
    writes: for a library that the table does not know: operator -> names of the arguments that it writes.
    returns: operator -> the argument that it hands back, "fresh", or "private buffer" for a tensor that it keeps. Where
        an operator of `writes` returns a tensor and this says nothing, its result is cloned: always right, one copy.
    infer: find the written arguments of other operators by running each once on `samples` (operator -> arguments),
        whose outputs hold what the operator would not write.
    tell: called with one line for each library whose operators are guarded, now or when it is loaded.

    Raises GuardError for an operator of `writes` that does not exist, and where nothing is known of any operator of a
    namespace. Warns where torch.compile has already compiled: those graphs stay as they are.
    """
    known = table or tables.everything()
    names = _namespaces(namespace, known, writes)
    with _lock:
        if tell is not None and tell not in _tellers:
            _tellers.append(tell)
        _warn_if_compiled()
        given = _given(names, writes, returns)
        if infer:
            from . import infer as inference

            given.update(inference.effects(names, samples or {}, skip=given))
        for name in names:
            _effects[name] = _effect_of(
                known, {op: e for (space, op), e in given.items() if space == name}, _effects.get(name)
            )
            _guard(name)
            late.watch(name, _guard)
        cache_key.follow(digest)
        result = status(names)
        missing = [f"{space}::{op}" for space, op in given if f"{space}::{op}" not in _decisions]
        if raw := [op for op in missing if _is_raw_function(op)]:
            raise GuardError(
                f"{', '.join(raw)}: a function of an extension module, no operator: torch.compile cannot see what "
                "it writes, and no rule can be put in its place. Register it with TORCH_LIBRARY, or call it in a "
                "function under torch.compiler.disable"
            )
        if missing and not result.pending:
            raise GuardError(f"no operator {', '.join(missing)} is registered")
        unknown = [d for d in result.decisions if d.action is Action.UNKNOWN]
        if unknown and len(unknown) == len(result.decisions):
            raise GuardError(f"nothing is known of any operator of {', '.join(names)}: {unknown[0]}")
        return result


def disable() -> tuple[str, ...]:
    """Takes every rule and fake away. Returns the operators concerned.

    Graphs compiled meanwhile keep calling the twins, which is right; torch._dynamo.reset() has them compiled anew.
    """
    with _lock:
        undone = tuple(_decisions)
        for decision in _decisions.values():
            twins.uninstall(decision)
        for namespace in tuple(_effects):
            late.unwatch(namespace)
        _decisions.clear()
        _effects.clear()
        _tellers.clear()
        cache_key.set_tag(None)
        return undone


def status(namespaces: Iterable[str] | None = None) -> Guard:
    """What the guard has done so far."""
    names = tuple(_effects) if namespaces is None else tuple(namespaces)
    found = tuple(d for op, d in sorted(_decisions.items()) if op.partition("::")[0] in names)
    empty = tuple(name for name in names if not any(d.op.startswith(f"{name}::") for d in found))
    return Guard(found, empty)


def digest() -> str | None:
    """What goes into the keys of compile caches; None where no operator is known.

    A compile cache may be asked before the program is traced, which is when Python reaches an operator that a shared
    library registered: so those that were loaded meanwhile are guarded first.
    """
    with _lock:
        # Once more after any: a twin in C++ loads the kit's own operators.
        while any(_guard(namespace) for namespace in tuple(_effects)):
            pass
        return _digest()


def _digest() -> str | None:
    known = [d for d in _decisions.values() if d.action is not Action.UNKNOWN]
    return cache_key.digest(f"{d.action.value} {d.schema} {d.twin}" for d in known) if known else None


def _guard(namespace: str) -> bool:
    """Guards the operators of a namespace that are registered and were not seen before. Were there any?"""
    with _lock, late.paused():  # installing binds operators, which would lead here again
        new: list[Decision] = []
        for registered in late.registered(namespace):
            op = f"{registered.name}.{registered.overload_name}" if registered.overload_name else registered.name
            before = _decisions.get(op)
            if before is not None and before.action is not Action.UNKNOWN:
                continue
            parsed = grammar.parse(str(registered))
            decision = decide(parsed, _effects[namespace](parsed))
            if decision == before:
                continue
            if decision.action is Action.NOTHING and fakes.existing(op) == "none" and all(decision.returns):
                decision = replace(decision, action=Action.FAKE)
            _decisions[op] = twins.install(decision)
            new.append(_decisions[op])
        if new:
            cache_key.set_tag(_digest())
            _tell(namespace, new)
        return bool(new)


def _tell(namespace: str, new: list[Decision]) -> None:
    guarded, refused = len(Guard(tuple(new)).guarded), [d.op for d in new if d.action is Action.REFUSED]
    if guarded or refused:
        line = f"{namespace}: {guarded} operators guarded under torch.compile"
        for tell in _tellers:
            tell(line + (f", refused: {', '.join(refused)}" if refused else ""))


def _effect_of(known: tables.Table, given: Mapping[str, Effect], before: EffectOf | None) -> EffectOf:
    def effect(schema: Schema) -> Effect | None:
        found = given.get(schema.op) or known.effect(schema)
        return found or (before(schema) if before else None)

    return effect


def _given(
    names: tuple[str, ...], writes: Mapping[str, Iterable[str]] | None, returns: Mapping[str, str] | None
) -> dict[tuple[str, str], Effect]:
    """What the caller says of operators, keyed by namespace and name; an operator may be named with its namespace."""
    found: dict[tuple[str, str], Effect] = {}
    for op in {**(writes or {}), **(returns or {})}:
        namespace, _, name = op.rpartition("::")
        for space in [namespace] if namespace else names:
            written = tuple((writes or {}).get(op, ()))
            found[space, name] = Effect(name, written, (returns or {}).get(op, "unknown"), "the caller")
    return found


def _is_raw_function(op: str) -> bool:
    """Whether a loaded module of that name has the function as pybind11 and the like make it."""
    module, _, name = op.partition("::")
    return inspect.isbuiltin(getattr(sys.modules.get(module), name, None))


def _namespaces(
    namespace: str | Iterable[str] | None, known: tables.Table, writes: Mapping[str, Iterable[str]] | None
) -> tuple[str, ...]:
    if namespace is None:
        if writes:
            raise GuardError("writes= needs the namespace of the operators: enable('mylib', writes=...)")
        return known.all_namespaces
    return (namespace,) if isinstance(namespace, str) else tuple(namespace)


def _warn_if_compiled() -> None:
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None and dynamo.counters["frames"]["total"]:
        message = "torch.compile has compiled before the guard was enabled: those graphs stay as they are; "
        warnings.warn(message + "call torch._dynamo.reset()", stacklevel=3)
