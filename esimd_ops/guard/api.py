"""enable, disable and status: which operators of which namespaces, and keeping count of what was done."""

from __future__ import annotations

import inspect
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

from esimd_ops import environment, registry
from esimd_ops import replace as replacing
from schema_patch.model import Effect
from schema_patch.schemas import grammar
from schema_patch.schemas import table as tables
from schema_patch.schemas.table import Table

from . import cache_key, eager, late, never, rules
from . import infer as inference
from .decide import Action, Decision, GuardError, decide
from .known import Known, from_text, of_caller, to_text

log = logging.getLogger("esimd_ops.guard")
_lock = threading.RLock()
Words = Mapping[tuple[str, str], Effect]  # by namespace and operator
_known: dict[str, Known] = {}  # by namespace
_decisions: dict[str, Decision] = {}  # by operator
_tellers: list[Callable[[str], None]] = []


@dataclass(frozen=True)
class Guard:
    """What the guard did, operator by operator; prints as one line each. `off`: the environment forbids it."""

    decisions: tuple[Decision, ...]
    pending: tuple[str, ...] = field(default=())  # namespaces without an operator so far
    off: bool = False
    replaced: tuple[replacing.Replaced, ...] = ()  # operators in whose place this kit's stand

    @property
    def guarded(self) -> tuple[Decision, ...]:
        return tuple(d for d in self.decisions if d.action in (Action.GUARDED, Action.CLONED))

    def __str__(self) -> str:
        lines = [f"off: {environment.GUARD}=0"] if self.off else []
        lines += [str(decision) for decision in self.decisions]
        lines += [f"{namespace}: no operators yet; they are guarded when they are loaded" for namespace in self.pending]
        lines += map(str, self.replaced)
        return "\n".join(lines)


def enable(
    namespace: str | Iterable[str] | None = None,
    *,
    table: Table | str | PathLike[str] | None = None,
    writes: Mapping[str, str | Iterable[str]] | None = None,
    returns: Mapping[str, str | Iterable[str]] | None = None,
    infer: bool = False,
    samples: Mapping[str, Any] | None = None,
    replace: str | Iterable[str] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Guard:
    """Makes the operators of these namespaces right under torch.compile. May be called again, also before they exist.

    namespace: one or several; by default all that the operator tables name.
    table: what each operator does, or a file that says it; by default the tables that SCHEMA_KIT_TABLE names and those
        that ship with the kit.
    writes: for a library that no table knows: operator -> the argument that it writes, or several. What its schema
        declares is written too, whatever is said here.
    returns: operator -> what it returns: the name of an argument, "fresh", "private buffer" for a tensor that it keeps
        ("private buffer of 4" for a ring of four); for several results one word for all, or one for each. An operator
        that writes and returns a tensor of which nothing is said is refused when it is traced.
    infer: find the written arguments of other operators by running each on `samples` (operator -> a tuple of arguments,
        or a dict by name), in copies whose buffers are poisoned. A sample that fails is warned of and passed over.
    replace: operators whose calls, eager and compiled, this kit's own operators are to answer: "races" for those that
        read what they write, or names; by default those of SCHEMA_KIT_REPLACE.
    tell: called with one line for each library whose operators are guarded, now or when it is loaded.

    What is said of an operator replaces what was said of it before. Raises GuardError for an operator of `writes` that
    does not exist, where nothing is known of any operator of a namespace, and where an operator was traced as something
    else already. Warns where torch.compile has compiled before. Does nothing where SCHEMA_KIT_GUARD=0.
    """
    if environment.guard_is_off():
        return Guard((), off=True)
    table = tables.read_file(table) if isinstance(table, (str, PathLike)) else table
    names = _namespaces(namespace, table, writes, returns)
    words = of_caller(names, writes or {}, returns or {})
    with _lock:
        if tell is not None and tell not in _tellers:
            _tellers.append(tell)
        _warn_if_compiled()
        if infer:
            words = {**inference.effects(names, samples or {}, skip=words), **words}
        result = _extend(names, words, (table,) if table else environment.operator_tables(), replace)
        if namespace is not None and tell is None:
            never.expect(result.pending, "guard.enable")
            _warn_of_children()
        return result


def _extend(
    names: tuple[str, ...], words: Words, known: tuple[Table, ...], replaced: str | Iterable[str] | None
) -> Guard:
    for name in names:
        said = {op: effect for (space, op), effect in words.items() if space == name}
        _start(name, _known.get(name, Known()).extended(said, known))
    cache_key.follow(digest)
    _put_in(replaced)  # a name that is none is an error, and the guard is on
    result = status(names)
    _check(words, names, result)
    return result


def _start(namespace: str, known: Known) -> None:
    _known[namespace] = known
    _guard(namespace, again=True)
    late.watch(namespace, _guard)
    environment.hand_down(to_text(_known, environment.operator_tables()))


@contextmanager
def enabled(namespace: str | Iterable[str] | None = None, **options: Any) -> Iterator[Guard]:
    """`enable` for the length of a block, for tests: what was compiled before and within it is forgotten with it."""
    before, replaced = dict(_known), replacing.names()
    _begin_anew(before, replaced)
    try:
        yield enable(namespace, **options)
    finally:
        _begin_anew(before, replaced)


def _begin_anew(known: Mapping[str, Known], replaced: tuple[str, ...]) -> None:
    """As if nothing had been compiled, and no more were guarded and replaced than this."""
    import torch

    tellers = list(_tellers)
    disable()
    torch._dynamo.reset()
    torch._dynamo.utils.counters["frames"].clear()  # what `_warn_if_compiled` asks; the graphs themselves are gone
    for name, each in known.items():
        _start(name, each)
    _tellers.extend(tellers)
    if replaced:
        replacing.enable(replaced)


def inherit(text: str) -> Guard:
    """Guards what the parent of this process had guarded."""
    if environment.guard_is_off():
        return Guard((), off=True)
    with _lock:
        for name, known in from_text(text, environment.operator_tables()).items():
            _start(name, known)
        _put_in(None)
        return status()


def disable() -> tuple[str, ...]:
    """Takes every rule away. Returns the operators concerned.

    Graphs compiled meanwhile keep calling the twins, which is right; torch._dynamo.reset() has them compiled anew.
    """
    with _lock:
        undone = tuple(_decisions)
        for op in undone:
            _uninstall(op)
        for namespace in tuple(_known):
            late.unwatch(namespace)
        _decisions.clear()
        _known.clear()
        _tellers.clear()
        cache_key.set_tag(None)
        environment.hand_down(None)
        never.forget()
        replacing.disable()
        return undone


def status(namespaces: Iterable[str] | None = None) -> Guard:
    """What the guard has done so far."""
    names = tuple(_known) if namespaces is None else tuple(namespaces)
    found = tuple(d for op, d in sorted(_decisions.items()) if op.partition("::")[0] in names)
    empty = tuple(name for name in names if not any(d.op.startswith(f"{name}::") for d in found))
    return Guard(found, empty, environment.guard_is_off(), replacing.status())


def _put_in(words: str | Iterable[str] | None) -> None:
    try:
        replacing.enable(words)
    except replacing.ReplaceError as error:
        raise GuardError(str(error)) from error


def digest() -> str | None:
    """What goes into the keys of compile caches; None where no operator is known.

    A compile cache may be asked before the program is traced, which is when Python reaches an operator that a shared
    library registered: so those that were loaded meanwhile are guarded first.
    """
    with _lock:
        # Once more after any: a twin in C++ loads the kit's own operators.
        while any(_guard(namespace) for namespace in tuple(_known)):
            pass
        return _digest()


def _digest() -> str | None:
    known = [d for d in _decisions.values() if d.action is not Action.UNKNOWN]
    return cache_key.digest(d.key for d in known) if known else None


def _guard(namespace: str, again: bool = False) -> bool:
    """Guards the operators of a namespace that were not seen before (`again`: or of which more is known).

    Were there any?
    """
    with _lock, late.paused():  # installing binds operators, which would lead here again
        new: list[Decision] = []
        for registered in late.registered(namespace):
            op = f"{registered.name}.{registered.overload_name}" if registered.overload_name else registered.name
            before = _decisions.get(op)
            if before is not None and before.action is not Action.UNKNOWN and not again:
                if before.action in (Action.GUARDED, Action.CLONED):
                    rules.show(before)
                continue
            decision = _decision(op, grammar.parse(str(registered)), _known[namespace])
            if decision != before:
                _replace(before, decision)
                new.append(decision)
        if new:
            cache_key.set_tag(_digest())
            _tell(namespace, new)
        return bool(new)


def _decision(op: str, schema: grammar.Schema, known: Known) -> Decision:
    decision = decide(schema, known.effect(schema))
    if decision.action is Action.NOTHING and not decision.results and not registry.has_fake(op):
        return replace(decision, action=Action.FAKE)
    if decision.action in (Action.GUARDED, Action.CLONED) and rules.taken(op):
        reason = "another functionalization rule is registered for it"
        return replace(decision, action=Action.REFUSED, reason=reason)
    return decision


def _replace(before: Decision | None, decision: Decision) -> None:
    if before is not None:
        if rules.was_traced(before.op):
            raise GuardError(
                f"{before.op} is in a graph already, as {before.twin}: that graph would stay as it is. Call "
                "guard.disable() and torch._dynamo.reset() before you tell something else of it"
            )
        _uninstall(before.op)
    if not (decision.action is Action.REFUSED and rules.taken(decision.op)):
        rules.install(decision)
    eager.install(decision)
    _decisions[decision.op] = decision


def _uninstall(op: str) -> None:
    rules.uninstall(op)
    eager.uninstall(op)


def _tell(namespace: str, new: list[Decision]) -> None:
    guarded, refused = len(Guard(tuple(new)).guarded), [d.op for d in new if d.action is Action.REFUSED]
    if guarded or refused:
        line = f"{namespace}: {guarded} operator{'' if guarded == 1 else 's'} guarded under torch.compile"
        line += f", refused: {', '.join(refused)}" if refused else ""
        log.info(line)
        for tell in _tellers:
            tell(line)


def _check(words: Words, names: tuple[str, ...], result: Guard) -> None:
    """Raises GuardError for what was said of operators that are not there, and where nothing is known of any."""
    missing = [f"{space}::{op}" for space, op in words if f"{space}::{op}" not in _decisions]
    if raw := [op for op in missing if _is_raw_function(op)]:
        raise GuardError(
            f"{', '.join(raw)}: a function of an extension module, no operator: torch.compile cannot see what "
            "it writes, and no rule can be put in its place. Register it with TORCH_LIBRARY, or call it in a "
            "function under torch.compiler.disable"
        )
    if strange := [op for op in missing if op.partition("::")[0] not in names]:
        raise GuardError(f"{', '.join(strange)}: not of the namespaces that are guarded, {', '.join(names)}")
    if missing := [op for op in missing if op.partition("::")[0] not in result.pending]:
        raise GuardError(f"no operator {', '.join(missing)} is registered")
    unknown = [d for d in result.decisions if d.action is Action.UNKNOWN]
    if unknown and len(unknown) == len(result.decisions):
        raise GuardError(f"nothing is known of any operator of {', '.join(names)}: {unknown[0]}")


def _is_raw_function(op: str) -> bool:
    """Whether a loaded module of that name has the function as pybind11 and the like make it."""
    module, _, name = op.partition("::")
    return inspect.isbuiltin(getattr(sys.modules.get(module), name, None))


def _namespaces(
    namespace: str | Iterable[str] | None, table: Table | None, *words: Mapping[str, Any] | None
) -> tuple[str, ...]:
    if namespace is None:
        if any(words):
            raise GuardError("writes= needs the namespace of the operators: enable('mylib', writes=...)")
        known = (table,) if table else environment.operator_tables()
        return tuple(dict.fromkeys(space for each in known for space in each.all_namespaces))
    return (namespace,) if isinstance(namespace, str) else tuple(dict.fromkeys(namespace))


def _warn_if_compiled() -> None:
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None and dynamo.counters["frames"]["total"]:
        message = "torch.compile has compiled before the guard was enabled: those graphs stay as they are; "
        warnings.warn(message + "call torch._dynamo.reset()", stacklevel=3)


def _warn_of_children() -> None:
    if not environment.is_entered():
        message = (
            "processes that multiprocessing spawns will not be guarded: `import torch` does not load the kit's entry "
            "point (an older installation of the kit, or TORCH_DEVICE_BACKEND_AUTOLOAD=0); call "
            "esimd_ops.door.enter() first thing in them"
        )
        warnings.warn(message, stacklevel=3)


never.ask(
    lambda: [name for name in status().pending if not late.registered(name)],  # some were registered and never reached
    lambda namespace: [d.schema.op for d in status([namespace]).decisions if d.action is not Action.UNKNOWN],
)
