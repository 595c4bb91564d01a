"""Instructions on general registers and memory, followed exactly: moves, arithmetic, the stack, repeated moves."""

from __future__ import annotations

import operator
from collections.abc import Callable

from iced_x86 import Instruction, Mnemonic, OpKind

from . import operands
from .conditions import UNKNOWN, holds
from .machine import FOREIGN, LEAST_ADDRESS, MASK, RSP, Item, Memory, Registers, Value, mixed, reckoned, side
from .operands import Get, Set

Act = Callable[[Registers, Memory], None]
Make = Callable[[Instruction], "Act | None"]
UNEQUAL = (None, False, None, None)


def _of(reads: tuple[int, ...], writes: tuple[int, ...] = (0,)) -> Callable[[Callable[..., Act]], Make]:
    """Hands the operands of these numbers over; there is no act where one is of a kind that is not followed."""

    def wrap(make: Callable[..., Act]) -> Make:
        def made(instruction: Instruction) -> Act | None:
            gets = [operands.getter(instruction, n) for n in reads]
            puts = [operands.setter(instruction, n) for n in writes]
            return make(instruction, *gets, *puts) if None not in gets and None not in puts else None

        return made

    return wrap


@_of((1,))
def _move(_: Instruction, get: Get, put: Set) -> Act:
    return lambda r, m: put(r, m, get(r, m))


@_of((1,))
def _signed(instruction: Instruction, get: Get, put: Set) -> Act:
    half = 1 << 8 * operands.size_of(instruction, 1) - 1

    def act(r: Registers, m: Memory) -> None:
        old = get(r, m)
        put(r, m, (old ^ half) - half & MASK if isinstance(old, int) else old and FOREIGN)

    return act


@_of(())
def _lea(instruction: Instruction, put: Set) -> Act:
    place = operands.address(instruction)
    return lambda r, m: put(r, m, place(r, m))


def _arithmetic(how: Callable[[int, int], int], *, keeps: bool = True, borrows: bool = False) -> Make:
    """Of two operands; `keeps` the result, `borrows` as a subtraction does."""

    @_of((0, 1), (0,) if keeps else ())
    def make(instruction: Instruction, left: Get, right: Get, put: Set | None = None) -> Act:
        mask = (1 << 8 * operands.size_of(instruction, 0)) - 1
        half = mask + 1 >> 1
        same = (
            instruction.op_kind(1) == OpKind.REGISTER
            and instruction.op_kind(0) == OpKind.REGISTER
            and instruction.op0_register == instruction.op1_register
        )
        logic = how in (operator.and_, operator.or_, operator.xor)
        zeroes = same and (how is operator.xor or how is operator.sub)

        def act(r: Registers, m: Memory) -> None:
            a, b = (0, 0) if zeroes else (left(r, m), right(r, m))
            new: Value = None
            r.flags = UNKNOWN
            if isinstance(a, int) and isinstance(b, int):
                b &= mask
                result = how(a, b) & mask
                if a < LEAST_ADDRESS > b or reckoned(m, how, a, b, keeps=keeps) is not None:
                    if logic:
                        over = carry = False
                    elif borrows:
                        over, carry = ((a ^ b) & (a ^ result) & half) != 0, a < b
                    else:
                        over, carry = ((a ^ result) & (b ^ result) & half) != 0, a + b > mask
                    r.flags = (carry, result == 0, result >= half, over)
                    if put:
                        put(r, m, result)
                    return
                if borrows and side(a) == side(b) == 1:  # in two spaces: another address for certain
                    r.flags = UNEQUAL
            elif how is operator.or_ and MASK in (a, b):
                new = MASK
            elif how is operator.and_ and 0 in (a, b):
                new = 0
            elif put:
                new = mixed(m, a, b)
            if put:
                put(r, m, new)

        return act

    return make


def _one(how: Callable[[int], int], *, flags: bool = True) -> Make:
    @_of((0,))
    def make(instruction: Instruction, get: Get, put: Set) -> Act:
        mask = (1 << 8 * operands.size_of(instruction, 0)) - 1

        def act(r: Registers, m: Memory) -> None:
            old = get(r, m)
            if isinstance(old, int):
                result = how(old) & mask  # of an address that is one still, or one with its sign turned
                put(r, m, result)
                if flags:
                    r.flags = (None, result == 0, result > mask >> 1, None)
            else:
                put(r, m, mixed(m, old))
                if flags:
                    r.flags = UNKNOWN

        return act

    return make


def _shift(how: Callable[[int, int, int], int]) -> Make:
    """`how` is given the number, the count, and the bits of the operand."""

    @_of((0, 1))
    def make(instruction: Instruction, get: Get, count: Get, put: Set) -> Act:
        bits = 8 * operands.size_of(instruction, 0)

        def act(r: Registers, m: Memory) -> None:
            old, by = get(r, m), count(r, m)
            if isinstance(old, int) and isinstance(by, int) and not side(old):
                by &= 63 if bits == 64 else 31
                result = how(old, by, bits) & (1 << bits) - 1
                put(r, m, result)
                if by:
                    r.flags = (None, result == 0, bool(result >> bits - 1), None)
            else:
                put(r, m, mixed(m, old, by))
                r.flags = UNKNOWN

        return act

    return make


def _sar(old: int, by: int, bits: int) -> int:
    return (old - (1 << bits) if old >> bits - 1 else old) >> by


def _multiply(instruction: Instruction) -> Act | None:
    if instruction.op_count < 2:
        return None
    first = 1 if instruction.op_count == 3 else 0
    return _of((first, first + 1))(_product)(instruction)


def _product(_: Instruction, left: Get, right: Get, put: Set) -> Act:
    def act(r: Registers, m: Memory) -> None:
        a, b = left(r, m), right(r, m)
        r.flags = UNKNOWN
        numbers = isinstance(a, int) and isinstance(b, int) and not side(a) and not side(b)
        put(r, m, a * b & MASK if numbers else mixed(m, a, b))  # type: ignore[operator]

    return act


@_of((1, 0))
def _conditional(instruction: Instruction, get: Get, old: Get, put: Set) -> Act:
    condition = instruction.condition_code

    def act(r: Registers, m: Memory) -> None:
        met = holds(condition, r.flags)
        new, before = get(r, m), old(r, m)
        if met is None:
            put(r, m, new if new is before or new == before else mixed(m, new, before))
        else:
            put(r, m, new if met else before)

    return act


@_of(())
def _set(instruction: Instruction, put: Set) -> Act:
    condition = instruction.condition_code

    def act(r: Registers, m: Memory) -> None:
        met = holds(condition, r.flags)
        put(r, m, FOREIGN if met is None else int(met))

    return act


@_of((0,), ())
def _push(_: Instruction, get: Get) -> Act:
    def act(r: Registers, m: Memory) -> None:
        new, top = get(r, m), r.general[RSP]
        top = top - 8 if isinstance(top, int) else top
        r.general[RSP] = top
        m.store(top, 8, new)

    return act


@_of(())
def _pop(_: Instruction, put: Set) -> Act:
    def act(r: Registers, m: Memory) -> None:
        top = r.general[RSP]
        old = m.load(top, 8)
        r.general[RSP] = top + 8 if isinstance(top, int) else top
        put(r, m, old)

    return act


def _leave(_: Instruction) -> Act:
    def act(r: Registers, m: Memory) -> None:
        top = r.general[5]
        r.general[5] = m.load(top, 8)
        r.general[RSP] = top + 8 if isinstance(top, int) else top

    return act


def _exchange(adds: bool) -> Make:
    @_of((0, 1), (0, 1))
    def make(_: Instruction, left: Get, right: Get, put: Set, back: Set) -> Act:
        def act(r: Registers, m: Memory) -> None:
            a, b = left(r, m), right(r, m)
            both = isinstance(a, int) and isinstance(b, int)
            back(r, m, a)
            if adds:
                r.flags = UNKNOWN
                b = reckoned(m, operator.add, a, b) if both else mixed(m, a, b)  # type: ignore[arg-type]
            put(r, m, b)

        return act

    return make


def _extend(source: int, target: int, *, high: bool) -> Callable[[Instruction], Act]:
    """cdqe and its kin, which name no operands: rax from eax, or rdx from the sign of rax."""

    def make(_: Instruction) -> Act:
        def act(r: Registers, m: Memory) -> None:
            old = r.general[0]
            if not isinstance(old, int):
                r.general[2 if high else 0] = old and FOREIGN
                return
            half = 1 << source - 1
            number = (old & (1 << source) - 1 ^ half) - half
            r.general[2 if high else 0] = (number >> source if high else number) & (1 << target) - 1

        return act

    return make


def repeated(size: int, *, moves: bool) -> Make:
    """rep movs and rep stos, as far as their counts are known."""

    def make(instruction: Instruction) -> Act:
        repeats = instruction.has_rep_prefix

        def act(r: Registers, m: Memory) -> None:
            count = r.general[1] if repeats else 1
            source, target = r.general[6], r.general[7]
            if not isinstance(count, int) or not isinstance(target, int) or count > 1 << 20:
                m.store(target if not isinstance(target, int) else None, 8, None)
                if isinstance(target, int):
                    m.forget(*m.extent(target))
                r.general[1], r.general[6], r.general[7] = 0, mixed(m, source), mixed(m, target)
                return
            if moves:
                parts = (
                    m.bytes(source, size * count) if isinstance(source, int) else [source and FOREIGN] * size * count
                )
                r.general[6] = source + size * count if isinstance(source, int) else source
            else:
                what = r.general[0]
                one: list[Item] = (
                    [*what.to_bytes(8, "little")[:size]] if isinstance(what, int) else [what and FOREIGN] * size
                )
                parts = one * count
            m.put_bytes(target, parts)
            r.general[7] = target + size * count
            if repeats:
                r.general[1] = 0

        return act

    return make


def _nothing(_: Instruction) -> Act:
    return lambda r, m: None


def makers() -> dict[str, Make]:
    """By mnemonic."""
    by_name: dict[str, Make] = {
        "MOV": _move, "MOVZX": _move, "MOVABS": _move, "MOVSX": _signed, "MOVSXD": _signed, "LEA": _lea,
        "ADD": _arithmetic(operator.add), "SUB": _arithmetic(operator.sub, borrows=True),
        "CMP": _arithmetic(operator.sub, keeps=False, borrows=True), "AND": _arithmetic(operator.and_),
        "OR": _arithmetic(operator.or_), "XOR": _arithmetic(operator.xor),
        "TEST": _arithmetic(operator.and_, keeps=False), "INC": _one(lambda a: a + 1), "DEC": _one(lambda a: a - 1),
        "NEG": _one(lambda a: -a), "NOT": _one(lambda a: ~a, flags=False),
        "SHL": _shift(lambda a, n, _: a << n), "SHR": _shift(lambda a, n, _: a >> n), "SAR": _shift(_sar),
        "IMUL": _multiply, "PUSH": _push, "POP": _pop, "LEAVE": _leave, "XCHG": _exchange(False),
        "XADD": _exchange(True), "CDQE": _extend(32, 64, high=False), "CWDE": _extend(16, 32, high=False),
        "CQO": _extend(64, 64, high=True), "CDQ": _extend(32, 32, high=True), "NOP": _nothing,
        "MOVSB": repeated(1, moves=True), "MOVSQ": repeated(8, moves=True), "MOVSW": repeated(2, moves=True),
        "STOSB": repeated(1, moves=False), "STOSQ": repeated(8, moves=False), "STOSD": repeated(4, moves=False),
    }  # fmt: skip
    for name in vars(Mnemonic):
        if name.startswith("CMOV"):
            by_name[name] = _conditional
        elif name.startswith("SET") and name != "SETSSBSY":
            by_name[name] = _set
    return by_name
