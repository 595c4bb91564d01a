"""What is to be done to one operator, from its registered schema and what it really does. Pure: registers nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from enum import Enum
from string import ascii_lowercase

from schema_patch import __version__
from schema_patch.model import Effect, Verdict, buffers_kept, is_argument
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
    """One operator and what becomes of it.

    `schema` is the registered one. `writes` are all arguments that are declared or stated as written. `results` has for
    each result the argument that it is, "fresh", or the "private buffer" that the operator keeps.
    """

    op: str  # namespace::name or namespace::name.overload
    action: Action
    reason: str = field(compare=False)
    schema: Schema
    writes: tuple[str, ...] = ()
    results: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.op}: {self.action.value}: {self.reason}"

    @property
    def twin_schema(self) -> Schema | None:
        """What the twin declares; None for an operator that has no twin."""
        return twin_schema(self) if self.action in (Action.GUARDED, Action.CLONED) else None

    @property
    def twin(self) -> str:
        """The twin's schema as text, "" where there is none."""
        return str(self.twin_schema or "")

    @property
    def key(self) -> str:
        """Everything of the decision that changes what is traced, for the keys of compile caches."""
        return repr((__version__, self.op, self.action.value, str(self.schema), self.writes, self.results))

    def left_out(self, missing: Collection[str]) -> Decision:
        """The same for calls that leave these arguments out: what would have been one of them is then new."""
        results = tuple("fresh" if result in missing else result for result in self.results)
        return replace(self, writes=tuple(name for name in self.writes if name not in missing), results=results)


def decide(schema: Schema, effect: Effect | None) -> Decision:
    """The decision on an operator whose schema names its namespace. `effect` None: nothing is known of it."""
    op = f"{schema.namespace}::{schema.op}"
    if effect is None:
        reason = "not in the operator table: tell writes=, or infer=True with samples"
        return Decision(op, Action.UNKNOWN, reason, schema, schema.writes)
    if wrong := _misstated(schema, effect):
        return Decision(op, Action.REFUSED, wrong, schema, schema.writes)
    stated = {*schema.writes, *effect.writes}
    writes = tuple(arg.name for arg in schema.args if arg.name in stated)
    results = results_of(schema, effect)
    judgement = rules.judge(schema, effect)
    kept = any(map(buffers_kept, results))
    right = judgement.verdict in (Verdict.RIGHT, Verdict.OVER_DECLARED)
    if right and "unknown" not in results and not schema.returns_alias:
        return Decision(op, Action.NOTHING, judgement.reason, schema, writes, results)
    if wrong := _unsayable(schema, results):
        return Decision(op, Action.REFUSED, wrong, schema, writes)
    reason = judgement.reason or "its result is an argument"
    return Decision(op, Action.CLONED if kept else Action.GUARDED, reason, schema, writes, results)


def _misstated(schema: Schema, effect: Effect) -> str:
    """What is said of the operator and cannot be, by its schema."""
    arguments = {arg.name: arg for arg in schema.args}
    named = [*effect.writes, *(filter(is_argument, effect.results) if schema.returns else ())]
    for name in named:
        if name not in arguments:
            return f"it has no argument '{name}'; its schema is {schema}"
        if not arguments[name].type.is_tensor:
            return f"argument '{name}' is no tensor: its type is {arguments[name].type}"
    if len(effect.results) not in (1, len(schema.returns)):
        return f"it returns {len(schema.returns)} values, and {len(effect.results)} are described: {effect.returns}"
    return ""


def results_of(schema: Schema, effect: Effect) -> tuple[str, ...]:
    """What each result is, as said, or else as the schema declares it; "unknown" where neither is to be believed."""
    said = effect.results if len(effect.results) == len(schema.returns) else effect.results * len(schema.returns)
    by_set = {name: arg.name for arg in schema.args for name in arg.type.sets if arg.type.is_write}
    found = []
    for result, ret in zip(said, schema.returns, strict=True):
        declared = next((by_set[name] for name in sorted(ret.type.sets) if name in by_set), "")
        if result not in ("unknown", "nothing"):
            found.append(result)
        elif declared or not ret.type.is_tensor:
            found.append(declared or "fresh")
        else:  # one that writes nothing most often means what it declares; one that writes hands back its output
            found.append("unknown" if effect.writes or schema.writes or ret.type.sets else "fresh")
    return tuple(found)


def _unsayable(schema: Schema, results: tuple[str, ...]) -> str:
    """Why no true schema that torch traces says this."""
    types = {arg.name: arg.type for arg in schema.args}
    for result, ret in zip(results, schema.returns, strict=True):
        if result == "unknown" and ret.type.sets:
            return "it returns a view of an argument"
        if result == "unknown":
            return (
                "it writes an argument and returns a tensor, and nothing says whether that is the argument: tell "
                f'returns={{\'{schema.op}\': NAME}}, "fresh" or "private buffer"'
            )
        if is_argument(result) and (ret.type.suffixes or {s.text for s in types[result].suffixes} - {"?"}):
            return f"it returns '{result}', and only a plain tensor can be handed back"
        if buffers_kept(result) and (not ret.type.is_tensor or ret.type.suffixes):
            return "it returns what cannot be cloned: only plain tensors can"
    return ""


def twin_name(decision: Decision) -> str:
    """A name for what is declared: another schema or other results, another name; the operator can be read from it.

    The lengths keep `a_b::c` and `a::b_c` apart.
    """
    schema = decision.schema
    parts = (schema.namespace or "", schema.name.rpartition("::")[2], schema.overload)
    declared = hashlib.sha256(decision.key.encode()).hexdigest()[:8]
    return f"{TWINS}::t" + "_".join(f"{len(part)}{part}" for part in parts) + f"_h{declared}"


def operator_of(twin: str) -> str:
    """The operator, as namespace::name or namespace::name.overload, of a twin by its name."""
    rest, parts = twin.removeprefix(f"{TWINS}::t"), []
    while match := re.match(r"_?(\d+)", rest):
        end = match.end() + int(match[1])
        parts.append(rest[match.end() : end])
        rest = rest[end:]
    namespace, name, overload = parts
    return f"{namespace}::{name}" + (f".{overload}" if overload else "")


def twin_schema(decision: Decision) -> Schema:
    """The true schema under the twin's name: an alias set for each written argument; only new results are returned."""
    args, returns = _annotated(decision)
    kept = tuple(ret for ret, result in zip(returns, decision.results, strict=True) if not is_argument(result))
    return replace(decision.schema, name=twin_name(decision), overload="", args=args, returns=kept)


def true_schema(decision: Decision) -> Schema:
    """The operator's schema as it should have been registered."""
    args, returns = _annotated(decision)
    letters = {arg.name: arg.type.alias for arg in args}
    aliased = tuple(
        replace(ret, type=replace(ret.type, alias=letters.get(result)))
        for ret, result in zip(returns, decision.results or ("fresh",) * len(returns), strict=True)
    )
    return replace(decision.schema, args=args, returns=aliased)


def _annotated(decision: Decision) -> tuple[tuple[Arg, ...], tuple[Arg, ...]]:
    letters = iter(f"{letter}{n or ''}" for n in range(100) for letter in ascii_lowercase)
    args = tuple(
        replace(arg, type=_with_alias(arg.type, next(letters) if arg.name in decision.writes else None))
        for arg in decision.schema.args
    )
    returns = tuple(replace(ret, type=_with_alias(ret.type, None), name="") for ret in decision.schema.returns)
    return args, returns


def _with_alias(kind: Type, letter: str | None) -> Type:
    if not kind.is_tensor:
        return kind
    suffixes = tuple(replace(suffix, alias=None) for suffix in kind.suffixes)
    return replace(kind, alias=Alias((letter,), True) if letter else None, suffixes=suffixes)
