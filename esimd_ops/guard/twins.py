"""Registers the twin of an operator and the rule that puts it in the operator's place. Knows torch, decides nothing."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import torch
from torch._library.simple_registry import singleton as registry
from torch._subclasses.functional_tensor import FunctionalTensorMode

from esimd_ops import native
from schema_patch.schemas import grammar

from . import fakes
from .decide import TWINS, Action, Decision, GuardError

_twins = torch.library.Library(TWINS, "FRAGMENT")
_rules: dict[str, torch.library.Library] = {}  # by operator: destroying its library takes the rule away
_warned: set[str] = set()


def overload(op: str) -> torch._ops.OpOverload:
    """`namespace::name.overload` -> the operator; it must be registered."""
    namespace, _, name = op.partition("::")
    name, _, variant = name.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), name), variant or "default")


def install(decision: Decision) -> Decision:
    """Does what was decided. Returns what became of it: refused where somebody else has a rule for the operator."""
    if decision.action in (Action.NOTHING, Action.UNKNOWN):
        return decision
    if decision.action is not Action.FAKE and registry.find(decision.op).torch_dispatch_rules.find(
        FunctionalTensorMode
    ):
        reason = "another functionalization rule is registered for it"
        return replace(decision, action=Action.REFUSED, reason=reason)
    _install(decision)
    return decision


def _install(decision: Decision) -> None:
    op = overload(decision.op)
    bind = Binder(decision.schema)
    if decision.action is Action.REFUSED:
        _add_rule(decision.op, _refusal(decision))
    elif decision.action is not Action.FAKE:
        _add_rule(decision.op, _rule(decision, _twin(decision, op), bind))
    # Only the library knows the shape of a result that is no argument.
    if decision.action in (Action.FAKE, Action.GUARDED):
        fakes.install(decision.op, _fake(decision, bind))


def uninstall(decision: Decision) -> None:
    """Takes rule and fake away. The twin stays: graphs that were compiled with it call it."""
    library = _rules.pop(decision.op, None)
    if library is not None:
        library._destroy()
    if fakes.is_ours(decision.op):
        fakes.remove(decision.op)


class Binder:
    """Finds an argument of a call by its name."""

    def __init__(self, schema: str) -> None:
        parsed = grammar.parse(schema)
        self.positions = {arg.name: index for index, arg in enumerate(parsed.args)}

    def __call__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        position = self.positions[name]
        return args[position] if position < len(args) else kwargs.get(name)


def _twin(decision: Decision, op: torch._ops.OpOverload) -> torch._ops.OpOverload:
    name = decision.twin.partition("(")[0].partition("::")[2]
    if not torch._C._dispatch_has_kernel(f"{TWINS}::{name}") and not hasattr(getattr(torch.ops, TWINS), name):
        _twins.define(decision.twin.partition("::")[2])
        clone = decision.action is Action.CLONED
        extension = _extension()
        if extension is not None:
            variant = op._schema.overload_name
            extension.implement_twin(f"{TWINS}::{name}", op._schema.name, variant, clone)
        else:
            _twins.impl(name, calls(op, clone), "CompositeExplicitAutograd")
        fake = (lambda *args, **kwargs: op(*args, **kwargs)) if clone else (lambda *_, **__: None)
        torch.library.register_fake(f"{TWINS}::{name}", fake, lib=_twins)
    return overload(f"{TWINS}::{name}")


def _extension() -> Any:
    """The built extension, whose twins cost a tenth of those in Python; None where there is none, or it cannot load."""
    try:
        return native.load()
    except (ImportError, OSError):
        return None


def calls(op: torch._ops.OpOverload, clone: bool) -> Any:
    """The twin in Python: calls `op`, and gives clones of its results or nothing."""

    def call(*args: Any, **kwargs: Any) -> Any:
        result = op(*args, **kwargs)
        if not clone:
            return None
        return result.clone() if isinstance(result, torch.Tensor) else tuple(part.clone() for part in result)

    return call


def _add_rule(op: str, rule: Any) -> None:
    namespace, _, name = op.partition("::")
    library = torch.library.Library(namespace, "FRAGMENT")
    library._register_torch_dispatch_rule(name, FunctionalTensorMode, rule)
    _rules[op] = library


def _rule(decision: Decision, twin: torch._ops.OpOverload, bind: Binder) -> Any:
    def rule(mode: Any, _func: Any, _types: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        kwargs = kwargs or {}
        _warn_of_gradients(decision.op, args, kwargs)
        buffers = _buffers(decision, bind, args, kwargs)
        with mode:
            result = twin(*args, **kwargs)
        if not decision.returns:
            return result
        return buffers[0] if len(buffers) == 1 else buffers

    return rule


def _buffers(decision: Decision, bind: Binder, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments that the operator hands back."""
    buffers = tuple(bind(name, args, kwargs) for name in decision.returns)
    if any(buffer is None for buffer in buffers):
        missing = decision.returns[buffers.index(None)]
        raise GuardError(
            f"{decision.op}: cannot be compiled with '{missing}' left out: the result is then new, and with the "
            "argument it is that argument. Pass a buffer."
        )
    return buffers


def _refusal(decision: Decision) -> Any:
    def rule(*_: Any) -> Any:
        raise GuardError(
            f"{decision.op}: the guard cannot make it right under torch.compile: {decision.reason}. Keep it out of the "
            "graph: call it in a function under torch.compiler.disable, or name it in vLLM's splitting_ops."
        )

    return rule


def _fake(decision: Decision, bind: Binder) -> Any:
    """An operator that hands arguments back has no shape to predict; nor has one that returns nothing."""

    def fake(*args: Any, **kwargs: Any) -> Any:
        values = _buffers(decision, bind, args, kwargs)
        return None if not values else values[0] if len(values) == 1 else values

    return fake


def _warn_of_gradients(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
    if op not in _warned and torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        _warned.add(op)
        warnings.warn(f"{op}: guarded operators have no gradient under torch.compile", stacklevel=2)
