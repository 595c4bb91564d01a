"""Finds out what unknown operators do by running each on arguments that the caller gives. Registers nothing.

An operator is run on copies of its sample, and again for each tensor in it with that tensor's contents replaced: a
buffer that already held the answer is then seen to be written, too. Integers are only put in another order, since an
index beyond its table may end the process.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from esimd_ops.registry import overload
from esimd_ops.tensors import copied, same_bits, tensors
from schema_patch.model import Effect
from schema_patch.schemas import grammar

from . import late
from .decide import GuardError

RUNS = 9  # results held at once: more than the rings of four or eight buffers that libraries keep
# What an operator raises on arguments that it does not take.
TROUBLE = (RuntimeError, ValueError, TypeError, LookupError, ArithmeticError, AssertionError, AttributeError)
Values = dict[str, Any]


def effects(
    namespaces: Collection[str], samples: Mapping[str, Any], skip: Collection[tuple[str, str]] = ()
) -> dict[tuple[str, str], Effect]:
    """The effect of each operator in `samples`: name or namespace::name, with its overload -> a tuple of arguments, or
    a dict by name. A sample of which nothing can be learnt is warned of; where it is so of all, GuardError."""
    found: dict[tuple[str, str], Effect] = {}
    failed: list[str] = []
    for op, sample in samples.items():
        space, _, name = op.rpartition("::")
        places = [each for each in ([space] if space else namespaces) if _is_registered(each, name)]
        if not places:
            failed.append(f"no operator {op} is registered in {', '.join(namespaces)}")
        for place in places:
            if (place, name) in skip:
                continue
            try:
                found[place, name] = effect(overload(f"{place}::{name}"), sample)
            except GuardError as error:
                failed.append(str(error))
    if failed and not found:
        raise GuardError(f"infer: {'; '.join(failed)}")
    for reason in failed:
        warnings.warn(f"infer: {reason}; what it does stays unknown", stacklevel=4)
    return found


def effect(op: torch._ops.OpOverload, sample: Any) -> Effect:
    """Runs the operator on copies of its sample and looks at every bit before and after. Raises GuardError."""
    parsed = grammar.parse(str(op._schema))
    arguments = _by_name(op, parsed, sample)
    try:
        with torch.no_grad():
            written, results, copies = _run(op, parsed, arguments)
            for name in arguments:
                for other in _replaced(arguments[name]) if name not in written else ():
                    written |= _written_if_it_runs(op, parsed, {**arguments, name: other})
            words = tuple(_which(value, copies, str(op)) for value in results)
            said = _kept_or_fresh(op, parsed, arguments, words)
    except TROUBLE as error:
        raise GuardError(f"{op} cannot be run on its sample: {type(error).__name__}: {error}") from error
    left_out = [a.name for a in parsed.args if a.type.is_tensor and arguments.get(a.name) is None]
    if left_out:
        text = f"infer: {op}: its sample leaves out {', '.join(left_out)}; if it writes there, tell writes="
        warnings.warn(text, stacklevel=5)
    writes = tuple(arg.name for arg in parsed.args if arg.name in written)
    returns = said[0] if len(set(said)) == 1 else ", ".join(said) or "nothing"
    return Effect(parsed.op, writes, returns, "runs on the caller's sample")


def _is_registered(namespace: str, name: str) -> bool:
    return any(grammar.parse(str(schema)).op == name for schema in late.registered(namespace))


def _by_name(op: torch._ops.OpOverload, parsed: grammar.Schema, sample: Any) -> Values:
    names = [arg.name for arg in parsed.args]
    if isinstance(sample, Mapping):
        arguments = dict(sample)
    elif isinstance(sample, (tuple, list)):
        if len(sample) > len(names):
            raise GuardError(f"{op}: its sample has {len(sample)} arguments, the operator {len(names)}")
        arguments = dict(zip(names, sample, strict=False))
    else:
        raise GuardError(f"{op}: its sample is a {type(sample).__name__}, not a tuple or dict of arguments")
    if strange := [name for name in arguments if name not in names]:
        raise GuardError(f"{op} has no argument {', '.join(strange)}; its schema is {parsed}")
    return arguments


def _run(
    op: torch._ops.OpOverload, parsed: grammar.Schema, arguments: Values
) -> tuple[set[str], tuple[Any, ...], Values]:
    """The names of arguments whose contents change, the results, and the copies that it was given."""
    copies = {name: copied(value) for name, value in arguments.items()}
    positional = [arg.name for arg in parsed.args if not arg.kwarg_only]
    given = list(itertools.takewhile(copies.__contains__, positional))
    result = op(*(copies[name] for name in given), **{n: v for n, v in copies.items() if n not in given})
    written = {
        name for name, value in arguments.items() if not all(map(same_bits, tensors(value), tensors(copies[name])))
    }
    count = len(parsed.returns)
    return written, () if not count else tuple(result) if count > 1 else (result,), copies


def _written_if_it_runs(op: torch._ops.OpOverload, parsed: grammar.Schema, arguments: Values) -> set[str]:
    try:
        return _run(op, parsed, arguments)[0]
    except TROUBLE:  # not every operator takes every input
        return set()


def _replaced(value: Any) -> Iterator[Any]:
    """The value with the contents of its tensors replaced, as often as there is a way to."""
    if isinstance(value, (tuple, list)) and value and all(isinstance(part, torch.Tensor) for part in value):
        yield from (type(value)(parts) for parts in zip(*(list(_replaced(part)) for part in value), strict=False))
    elif isinstance(value, torch.Tensor) and value.is_floating_point():
        yield (value.float() * 0.5 + 1.25).to(value.dtype)
        yield (value.float() * -2.0 - 0.75).to(value.dtype)
    elif isinstance(value, torch.Tensor) and value.dtype is torch.bool:
        yield ~value
    elif isinstance(value, torch.Tensor) and value.numel():
        yield value.flatten().flip(0).reshape(value.shape)


def _kept_or_fresh(
    op: torch._ops.OpOverload, parsed: grammar.Schema, arguments: Values, words: tuple[str, ...]
) -> tuple[str, ...]:
    """What each result is: one that is no argument is new, unless several runs give fewer storages than results."""
    if all(words):
        return words
    held = [_run(op, parsed, arguments)[1] for _ in range(RUNS)]
    said = []
    for index, word in enumerate(words):
        values = [result[index] for result in held]
        if word or not isinstance(values[0], torch.Tensor) or not values[0].numel():
            said.append(word or "fresh")
            continue
        storages = len({value.untyped_storage().data_ptr() for value in values})
        kept = "private buffer" if storages == 1 else f"private buffer of {storages}"
        said.append("fresh" if storages == RUNS else kept)
    return tuple(said)


def _which(value: Any, arguments: Values, op: str) -> str:
    """The argument that this result is, "" for none. Raises GuardError for a view of one."""
    for name, argument in arguments.items():
        for given, part in itertools.product(tensors(argument), filter(Tensor.numel, tensors(value))):
            if part.untyped_storage().data_ptr() != given.untyped_storage().data_ptr():
                continue
            whole = part.data_ptr() == given.data_ptr() and part.shape == given.shape
            if whole and part.stride() == given.stride() and part is value and given is argument:
                return name
            raise GuardError(
                f"{op} returns a view of its argument '{name}': that cannot be guarded; keep it out of the graph"
            )
    return ""
