"""What is to be done to one operator, from its registered schema and what it really does. Pure: registers nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from string import ascii_lowercase

from schema_patch.model import Effect, Verdict
from schema_patch.schemas import rules
from schema_patch.schemas.grammar import Alias, Arg, Schema, Type

TWINS = "schema_kit_guard"  # the one namespace of all twins


class GuardError(RuntimeError):
    """The guard was asked for what it cannot do; the message names the operator and says what to do."""


class Action(str, Enum):
    """What the guard does to an operator."""

    NOTHING = "right already"
    FAKE = "right already, got a fake"
    GUARDED = "guarded"
    CLONED = "guarded, its result cloned"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Decision:
    """One operator and what becomes of it. `schema` is the registered one, `twin` the true one under its own name."""

    op: str  # namespace::name or namespace::name.overload
    action: Action
    reason: str
    schema: str = ""
    twin: str = ""
    returns: tuple[str, ...] = ()  # for each return value the argument that it is

    def __str__(self) -> str:
        return f"{self.op}: {self.action.value}: {self.reason}"


def decide(schema: Schema, effect: Effect | None) -> Decision:
    """The decision on an operator whose schema names its namespace. `effect` None: nothing is known of it."""
    op, text = f"{schema.namespace}::{schema.op}", str(schema)

    def refused(reason: str) -> Decision:
        return Decision(op, Action.REFUSED, reason, text)

    if effect is None:
        return Decision(op, Action.UNKNOWN, "not in the operator table: tell writes=, or infer=True with samples", text)
    arguments = {arg.name: arg for arg in schema.args}
    for name in effect.writes:
        if name not in arguments:
            return refused(f"it has no argument '{name}'; its schema is {text}")
        if not arguments[name].type.is_tensor:
            return refused(f"argument '{name}' is no tensor: its type is {arguments[name].type}")
    judgement = rules.judge(schema, effect)
    back = returned(schema, effect)
    aliases = [name for name in back if name]
    trusted = aliases or not schema.returns or effect.returns != "unknown"
    if judgement.verdict in (Verdict.RIGHT, Verdict.OVER_DECLARED) and trusted:
        return Decision(op, Action.NOTHING, judgement.reason, text, returns=back)
    if aliases and len(aliases) < len(back):
        return refused("some of its results are arguments and others are new tensors")
    name = twin_name(schema)
    if aliases or not schema.returns:
        twin = twin_schema(schema, effect, name, keep_returns=False)
        return Decision(op, Action.GUARDED, judgement.reason or "its result is an argument", text, twin, back)
    if not all(ret.type.is_tensor and not ret.type.suffixes for ret in schema.returns):
        return refused("it returns what cannot be cloned: only plain tensors can")
    return Decision(op, Action.CLONED, judgement.reason or "its result may be an argument or a buffer that it keeps",
                    text, twin_schema(schema, effect, name, keep_returns=True))  # fmt: skip


def returned(schema: Schema, effect: Effect) -> tuple[str, ...]:
    """For each return value the name of the argument that it is, "" for a tensor of its own."""
    if effect.returned_argument:
        return (effect.returned_argument,) * len(schema.returns)
    if effect.returns == "private buffer":
        return ("",) * len(schema.returns)
    by_set = {name: arg.name for arg in schema.args for name in arg.type.sets}
    return tuple(next((by_set[s] for s in sorted(ret.type.sets) if s in by_set), "") for ret in schema.returns)


def twin_name(schema: Schema) -> str:
    """Unique by construction: the lengths keep `a_b::c` and `a::b_c` apart."""
    parts = (schema.namespace or "", schema.name.rpartition("::")[2], schema.overload)
    return f"{TWINS}::t" + "_".join(f"{len(part)}{part}" for part in parts)


def operator_of(twin: str) -> str:
    """The operator, as namespace::name or namespace::name.overload, of a twin by its name."""
    rest, parts = twin.removeprefix(f"{TWINS}::t"), []
    while match := re.match(r"_?(\d+)", rest):
        end = match.end() + int(match[1])
        parts.append(rest[match.end() : end])
        rest = rest[end:]
    namespace, name, overload = parts
    return f"{namespace}::{name}" + (f".{overload}" if overload else "")


def twin_schema(schema: Schema, effect: Effect, name: str, *, keep_returns: bool) -> str:
    """The true schema: every written argument with an alias set of its own, results fresh or none."""
    letters = iter(f"{letter}{n or ''}" for n in range(100) for letter in ascii_lowercase)
    args = tuple(
        replace(arg, type=_annotated(arg.type, next(letters) if arg.name in effect.writes else None))
        for arg in schema.args
    )
    returns = tuple(Arg(_annotated(ret.type, None), "") for ret in schema.returns) if keep_returns else ()
    return str(replace(schema, name=name, overload="", args=args, returns=returns))


def _annotated(kind: Type, letter: str | None) -> Type:
    if not kind.is_tensor:
        return kind
    suffixes = tuple(replace(suffix, alias=None) for suffix in kind.suffixes)
    return replace(kind, alias=Alias((letter,), True) if letter else None, suffixes=suffixes)
