"""The flags, and the conditions that branches, moves and sets ask of them."""

from __future__ import annotations

from iced_x86 import ConditionCode


def holds(condition: int, flags: tuple[bool | None, ...]) -> bool | None:
    """Whether a condition is met, where the flags tell."""
    carry, zero, sign, over = flags
    positive = _CONDITIONS.get(condition)
    if positive is None:
        negative = _NEGATED.get(condition)
        met = None if negative is None else holds(negative, flags)
        return None if met is None else not met
    if positive == "z":
        return zero
    if positive == "c":
        return carry
    if positive == "s":
        return sign
    if positive == "o":
        return over
    if positive == "be":
        return True if carry or zero else None if None in (carry, zero) else False
    less = None if None in (sign, over) else sign != over
    if positive == "l":
        return less
    return True if zero or less else None if None in (zero, less) else False


_C = ConditionCode
_CONDITIONS: dict[int, str] = {_C.E: "z", _C.B: "c", _C.S: "s", _C.O: "o", _C.BE: "be", _C.L: "l", _C.LE: "le"}
_NEGATED: dict[int, int] = {_C.NE: _C.E, _C.AE: _C.B, _C.NS: _C.S, _C.NO: _C.O, _C.A: _C.BE, _C.GE: _C.L, _C.G: _C.LE}
UNKNOWN = (None,) * 4
