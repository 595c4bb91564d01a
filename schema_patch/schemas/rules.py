"""Does a schema tell the truth? Schema + Effect -> Judgement, the same for source, binary and process. Pure.

Codes: one a rule, in the order in which they are asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schema_patch.model import Effect, Severity, Verdict, buffers_kept, is_argument

from .grammar import Arg, Schema

NOT_IN_TABLE = "not in the operator table"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one schema is worth. `code` is empty for what is right or unknown."""

    verdict: Verdict
    code: str = ""
    reason: str = ""

    @property
    def severity(self) -> Severity:
        return Severity.ERROR if self.verdict is Verdict.WRONG else Severity.WARNING


NOT_KNOWN = Judgement(Verdict.UNKNOWN, reason=NOT_IN_TABLE)


def judge(schema: Schema, effect: Effect | None) -> Judgement:
    """The verdict on a schema, given what its operator does (None: not known)."""
    if effect is None:
        return NOT_KNOWN
    for rule in (undeclared_write, undeclared_alias, private_buffer, over_declared, alias_return, unknown_return):
        found = rule(schema, effect)
        if found:
            return found
    return Judgement(Verdict.RIGHT, reason=f"declares what it writes: {_names(effect.writes) or 'nothing'}")


def undeclared_write(schema: Schema, effect: Effect) -> Judgement | None:
    missing = [name for name in effect.writes if name not in schema.writes]
    if not missing:
        return None
    if len(missing) < len(effect.writes):
        declared = _names(n for n in effect.writes if n in schema.writes)
        reason = f"writes {_names(missing)} undeclared; only {declared} declared"
        return Judgement(Verdict.WRONG, "SP102", reason)
    return Judgement(Verdict.WRONG, "SP101", f"writes {_names(missing)} undeclared")


def undeclared_alias(schema: Schema, effect: Effect) -> Judgement | None:
    found = (_undeclared_alias(schema, ret, returned) for ret, returned in results(schema, effect))
    return next((judgement for judgement in found if judgement), None)


def _undeclared_alias(schema: Schema, ret: Arg, returned: str) -> Judgement | None:
    if not is_argument(returned):
        return None
    declared = {name for name in ret.type.sets if not name.startswith("$")}  # torch numbers those without a name
    argument = next(arg for arg in schema.args if arg.name == returned)
    if declared & argument.type.sets or (not declared and ret.type.is_write and argument.type.is_write):
        return None  # `Tensor!` says that it is an alias, not of what
    if declared:
        others = [arg.name for arg in schema.args if arg.type.sets & declared]
        says = f"the schema says {_names(others)}" if others else "the schema names a set that no argument has"
        return Judgement(Verdict.WRONG, "SP103", f"returns '{returned}', {says}")
    return Judgement(Verdict.WRONG, "SP103", f"returns '{returned}' as if it were a new tensor")


def private_buffer(schema: Schema, effect: Effect) -> Judgement | None:
    if not any(buffers_kept(returned) for _, returned in results(schema, effect)):
        return None
    return Judgement(Verdict.WRONG, "SP104", "returns a buffer that it keeps as if it were a new tensor")


def results(schema: Schema, effect: Effect) -> Iterable[tuple[Arg, str]]:
    """Each result with what is said of it; one word is said of the first (of all that are kept buffers)."""
    said = effect.results
    return zip(
        schema.returns, said if len(said) > 1 or is_argument(said[0]) else said * len(schema.returns), strict=False
    )


def over_declared(schema: Schema, effect: Effect) -> Judgement | None:
    extra = [name for name in schema.writes if name not in effect.writes]
    return (
        Judgement(Verdict.OVER_DECLARED, "SP106", f"declares {_names(extra)} as written, only read") if extra else None
    )


def alias_return(schema: Schema, _: Effect) -> Judgement | None:
    if not schema.returns_alias:
        return None
    return Judgement(
        Verdict.NEEDS_GUARD, "SP105", "returns an alias: torch.compile refuses to trace it (guard, or --returns void)"
    )


def unknown_return(schema: Schema, effect: Effect) -> Judgement | None:
    pairs = enumerate(results(schema, effect))
    places = [n for n, (ret, said) in pairs if said == "unknown" and ret.type.is_tensor and not ret.type.sets]
    reason = "whether returned value {} is an argument's is not known"
    return Judgement(Verdict.UNKNOWN, reason=reason.format(places[0])) if places else None


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
