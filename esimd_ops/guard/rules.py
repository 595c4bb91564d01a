"""What torch does with an operator that it traces: the rules that put the twin in its place. Decides nothing.

Two of torch's modes are told. Under functionalization (FunctionalTensorMode) the twin is traced for the operator; what
is an argument is handed back as the argument itself. On fake tensors (FakeTensorMode) a result that is an argument is
that argument, whatever fake is registered, by whom and when. For what reads schemas in Python (dead code elimination,
the checks of higher-order operators) the operator shows its true one meanwhile. Eager calls meet none of this.
"""

from __future__ import annotations

import functools
import logging
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch._library.simple_registry import singleton as registry
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch._subclasses.functional_tensor import CppFunctionalizeAPI, FunctionalTensor, FunctionalTensorMode
from torch.multiprocessing.reductions import StorageWeakRef

from esimd_ops.registry import overload
from esimd_ops.tensors import tensors
from schema_patch.model import buffers_kept, is_argument

from . import eager
from .decide import Action, Decision, GuardError, true_schema
from .twins import twin_of

log = logging.getLogger("esimd_ops.guard")
Rule = Callable[[Any, Any, Any, tuple[Any, ...], dict[str, Any]], Any]

_rules: dict[str, torch.library.Library] = {}  # by operator: destroying its library takes its rules away
_schemas: dict[str, tuple[Any, Any]] = {}  # by name: the operator, and the schema that it showed before
_traced: set[str] = set()  # operators that a graph may hold
_warned: set[str] = set()
_results: WeakKeyDictionary[Any, dict[Any, list[StorageWeakRef]]] = WeakKeyDictionary()  # by trace


def taken(op: str) -> bool:
    """Somebody else has a functionalization rule for the operator."""
    return op not in _rules and registry.find(op).torch_dispatch_rules.find(FunctionalTensorMode) is not None


def install(decision: Decision) -> None:
    """Makes the decision hold for everything that is traced from now on."""
    if decision.action is Action.NOTHING:
        return
    call = TracedCall(decision)
    if decision.action is Action.REFUSED:
        _add(decision.op, FunctionalTensorMode, _refusing(decision))
    elif decision.action is Action.UNKNOWN:
        if not decision.writes:
            _add(decision.op, FunctionalTensorMode, _warning(decision))
    else:
        if decision.twin_schema is not None:
            twin_of(decision)
            _add(decision.op, FunctionalTensorMode, _functional(call))
            if decision.writes or any(map(is_argument, decision.results)):
                _rules[decision.op].impl(decision.op.partition("::")[2], _functionalize(call), "Functionalize")
            show(decision)
        _add(decision.op, FakeTensorMode, _fake(call))
        torch._subclasses.fake_tensor.FakeTensorMode.cache_clear()


def show(decision: Decision) -> None:
    """Shows the true schema, also where torch has bound the operator anew: its library was registered again."""
    op = overload(decision.op)
    if decision.op not in _schemas or _schemas[decision.op][0] is not op:
        _schemas[decision.op] = (op, op._schema)
        op._schema = torch._C.parse_schema(str(true_schema(decision)))


def uninstall(op: str) -> None:
    """Takes rules and schema away. The twin stays: graphs that were compiled with it call it."""
    library = _rules.pop(op, None)
    if library is not None:
        library._destroy()
        torch._subclasses.fake_tensor.FakeTensorMode.cache_clear()
    if op in _schemas:
        operator, schema = _schemas.pop(op)
        operator._schema = schema
    _traced.discard(op)


def was_traced(op: str) -> bool:
    """A graph may hold the operator's twin."""
    return op in _traced


class TracedCall:
    """Reads the arguments of a call of one operator by their names."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self.positions = {arg.name: index for index, arg in enumerate(decision.schema.args)}
        self.underived = not eager.is_differentiated(decision.op)

    def argument(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        position = self.positions[name]
        return args[position] if position < len(args) else kwargs.get(name)

    def back(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments that are handed back, by name; without those that the call leaves out."""
        named = {result: self.argument(result, args, kwargs) for result in self.decision.results if is_argument(result)}
        return {name: value for name, value in named.items() if value is not None}

    def left_out(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> set[str]:
        """What may be written or handed back and is not there."""
        named = {*self.decision.writes, *filter(is_argument, self.decision.results)}
        return {name for name in named if self.argument(name, args, kwargs) is None}

    def made(self, make: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What `make` gives: as of any operator without a derivative, it requires grad where an argument does."""
        if not self.underived or not torch.is_grad_enabled():
            return make()
        needed = any(tensor.requires_grad for tensor in tensors((*args, *kwargs.values())))
        return eager.underived(make) if needed else make()

    def new(self, returned: Any, back: dict[str, Any]) -> list[Any]:
        """Of all that the operator returned, what is not handed back."""
        parts = returned if len(self.decision.results) > 1 else (returned,)
        return [part for part, result in zip(parts, self.decision.results, strict=False) if result not in back]

    def merged(self, back: dict[str, Any], new: Iterable[Any]) -> Any:
        """All results in their order: arguments, and what is new."""
        fresh = iter(new)
        values = [back[result] if result in back else next(fresh) for result in self.decision.results]
        return None if not values else values[0] if len(values) == 1 else tuple(values)


def _add(op: str, mode: type, rule: Rule) -> None:
    namespace, _, name = op.partition("::")
    library = _rules.setdefault(op, torch.library.Library(namespace, "FRAGMENT"))

    def with_kwargs(mode: Any, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        return rule(mode, func, types, args, kwargs or {})

    library._register_torch_dispatch_rule(name, mode, with_kwargs)


def _functional(call: TracedCall) -> Rule:
    decision = call.decision

    def rule(mode: Any, _func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if any(kind not in (torch.Tensor, FunctionalTensor) and not issubclass(kind, FakeTensor) for kind in types):
            return NotImplemented  # a subclass may have a rule of its own for the operator
        _say(decision, args, kwargs)
        back = call.back(args, kwargs)
        twin = twin_of(decision.left_out(call.left_out(args, kwargs)))
        with mode:
            make = functools.partial(twin, *args, **kwargs)
            new = make() if len(back) == len(decision.results) else call.made(make, args, kwargs)
        _refuse_overwritten(decision, mode, new)
        return call.merged(back, new if sum(result not in back for result in decision.results) > 1 else (new,))

    return rule


def _fake(call: TracedCall) -> Rule:
    def rule(mode: Any, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if any(kind is not torch.Tensor and not issubclass(kind, FakeTensor) for kind in types):
            return mode.__torch_dispatch__(func, types, args, kwargs)
        back = {name: value for name, value in call.back(args, kwargs).items() if isinstance(value, FakeTensor)}
        if all(result in back for result in call.decision.results):
            return call.merged(back, ())
        found = call.made(functools.partial(mode.__torch_dispatch__, func, types, args, kwargs), args, kwargs)
        return call.merged(back, call.new(found, back))

    return rule


def _functionalize(call: TracedCall) -> Callable[..., Any]:
    """The same by torch's functionalization in C++: of torch.func, and of regions within a graph.

    Torch refuses declared writes there. Where views are kept, a write to one is a write to its base, and right.
    """

    def kernel(*args: Any, **kwargs: Any) -> Any:
        where = ""
        if torch._guards.TracingContext.try_get() is not None:
            where = "a region that torch.compile traces by itself (nested_compile_region or a higher-order operator)"
        elif not torch._C._functionalization_reapply_views_tls():
            where = "functionalization that copies views, as torch.func.functionalize(remove='mutations_and_views')"
        if where:
            raise GuardError(f"{call.decision.op} writes its arguments within {where}; call it outside")
        context: Any = CppFunctionalizeAPI()
        with context.redispatch_to_next():
            found = overload(call.decision.op)(*context.unwrap_tensors(args), **context.unwrap_tensors(kwargs))
        back = call.back(args, kwargs)
        return call.merged(back, map(context.wrap_tensors, call.new(found, back)))

    return kernel


def _refusing(decision: Decision) -> Rule:
    def rule(*_: Any) -> Any:
        raise GuardError(
            f"{decision.op}: the guard cannot make it right under torch.compile: {decision.reason}. Keep it out of the "
            "graph: call it in a function under torch.compiler.disable, or name it in vLLM's splitting_ops."
        )

    return rule


def _warning(decision: Decision) -> Rule:
    def rule(mode: Any, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        _warn_once(
            f"{decision.op} is traced, and nothing is known of it: its schema declares no write, and torch.compile "
            f"deletes or moves a call that writes undeclared. Tell the guard writes={{'{decision.op}': [...]}}"
        )
        return mode.__torch_dispatch__(func, types, args, kwargs)

    return rule


def _say(decision: Decision, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Everything that a person should know of this operator in a graph."""
    _traced.add(decision.op)
    log.debug("%s is traced as %s", decision.op, decision.twin)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors((*args, *kwargs.values()))):
        _warn_once(f"{decision.op}: guarded operators have no gradient under torch.compile")
    if _is_kept():
        twin = decision.twin.partition("(")[0]
        _warn_once(
            f"{decision.op} is exported as {twin}: a process that loads the program must guard the operator in the "
            "same way before, or it will not find that name"
        )


def _is_kept() -> bool:
    """Whether what is traced is for other processes: by torch.export or AOTInductor, which torch 2.7 tells apart."""
    inductor = sys.modules.get("torch._inductor.virtualized")
    return bool(torch.compiler.is_exporting() or (inductor and inductor.V.aot_compilation))


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, stacklevel=3)


def _refuse_overwritten(decision: Decision, mode: Any, new: Any) -> None:
    """Eager overwrites the earliest of the results that are still to be read; no graph can say so."""
    kept = [result for result in decision.results if not is_argument(result)]
    for result, tensor in zip(kept, new if len(kept) > 1 else (new,), strict=False):
        depth = buffers_kept(result)
        if not depth:
            continue
        like = f"{decision.op} {result} {tensor.shape} {tensor.dtype} {tensor.device}"  # as text: asks no symbol
        earlier = _results.setdefault(mode, {}).setdefault(like, [])
        alive = sum(not storage.expired() for storage in earlier)
        if alive >= depth:
            raise GuardError(
                f"{decision.op}: {alive} of its earlier results may still be read after this call, and it keeps "
                f"{depth} buffer{'s' * (depth > 1)}: without torch.compile this call overwrites one of them, which no "
                "graph can say. Use up a result, or clone it, before the next call; where it keeps more buffers, tell "
                f"the guard returns={{'{decision.op}': 'private buffer of N'}}"
            )
        earlier.append(StorageWeakRef(tensor.untyped_storage()))
