"""x86-64 instructions as functions of registers and memory. The other file that knows iced-x86.

What compilers use to move text, pointers and small numbers is followed exactly. Of any other instruction it is known
what it writes, and that is not known any more afterwards.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from iced_x86 import (
    ConditionCode,
    Decoder,
    FlowControl,
    Instruction,
    InstructionInfoFactory,
    Mnemonic,
    OpAccess,
    OpKind,
    Register,
    RegisterExt,
)

from . import operands
from .machine import FOREIGN, MASK, RSP, Memory, Registers, Value, Word, mixed
from .operands import Get, Set

Act = Callable[[Registers, Memory], None]
Make = Callable[[Instruction], "Act | None"]
PLAIN, JUMP, BRANCH, CALL, RETURN, END = range(6)
KINDS = {
    FlowControl.NEXT: PLAIN, FlowControl.UNCONDITIONAL_BRANCH: JUMP, FlowControl.INDIRECT_BRANCH: JUMP,
    FlowControl.CONDITIONAL_BRANCH: BRANCH, FlowControl.CALL: CALL, FlowControl.INDIRECT_CALL: CALL,
    FlowControl.RETURN: RETURN, FlowControl.INTERRUPT: END, FlowControl.EXCEPTION: END,
}  # fmt: skip
WRITES = frozenset({OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE})
_info = InstructionInfoFactory()


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction: where it is, what comes next, and what it does. `to`: where it leads, if that is a number.

    `slot`: where it reads where it leads. `table`: an address that it takes, of a table of jumps perhaps; `place`: one that it names. `reads` and `writes`: registers, a bit each.
    """

    address: int
    next: int
    kind: int
    act: Act | None = None
    to: int = 0
    where: Get | None = None
    condition: int = 0
    slot: int = 0
    table: int = 0
    place: int = 0
    reads: int = 0
    writes: int = 0


def decode(code: bytes, address: int) -> Step:
    """The instruction at an address. What is none ends the path."""
    instruction = Decoder(64, code, ip=address).decode()
    kind = KINDS.get(instruction.flow_control, END)
    if not instruction:
        return Step(address, address, END)
    after = instruction.next_ip
    reads, writes = _uses(instruction)
    if kind == PLAIN:
        lea = instruction.mnemonic == Mnemonic.LEA and instruction.memory_base == Register.RIP
        table = instruction.memory_displacement if lea else 0
        place = instruction.memory_displacement if instruction.memory_base == Register.RIP else 0
        return Step(address, after, PLAIN, _act(instruction), table=table, place=place, reads=reads, writes=writes)
    if kind in (RETURN, END):
        return Step(address, after, kind)
    if instruction.op_kind(0) == OpKind.NEAR_BRANCH64:
        condition = instruction.condition_code
        if kind == BRANCH and condition == ConditionCode.NONE:  # jrcxz and loop
            condition = -1
        return Step(address, after, kind, to=instruction.near_branch_target, condition=condition)
    where = operands.getter(instruction, 0) or (lambda r, m: None)
    fixed = instruction.op_kind(0) == OpKind.MEMORY and instruction.memory_base == Register.RIP
    slot = instruction.memory_displacement if fixed else 0
    return Step(address, after, kind, where=where, slot=slot, reads=reads)


def _uses(instruction: Instruction) -> tuple[int, int]:
    """The general registers that an instruction reads, and those that it writes whatever happens."""
    reads = writes = 0
    for used in _info.info(instruction).used_registers():
        number = operands.general(used.register)
        if number is not None:
            reads |= (used.access != OpAccess.WRITE) << number
            writes |= (used.access in (OpAccess.WRITE, OpAccess.READ_WRITE)) << number
    push = instruction.mnemonic == Mnemonic.PUSH  # saves a register, as a function does for its caller
    return 0 if push else reads, writes


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
_CONDITIONS = {_C.E: "z", _C.B: "c", _C.S: "s", _C.O: "o", _C.BE: "be", _C.L: "l", _C.LE: "le"}
_NEGATED = {_C.NE: _C.E, _C.AE: _C.B, _C.NS: _C.S, _C.NO: _C.O, _C.A: _C.BE, _C.GE: _C.L, _C.G: _C.LE}
UNKNOWN = (None,) * 4


def _act(instruction: Instruction) -> Act | None:
    make = _makers().get(instruction.mnemonic)
    return (make(instruction) if make else None) or _forgetting(instruction)


def _forgetting(instruction: Instruction) -> Act | None:
    """An instruction that is not followed: what it writes is not known any more."""
    info = _info.info(instruction)
    general: list[int] = []
    vectors: list[int] = []
    for used in info.used_registers():
        if used.access in WRITES:
            number = operands.general(used.register)
            if number is not None:
                general.append(number)
            elif RegisterExt.is_vector_register(used.register):
                vectors.append(int(RegisterExt.number(used.register)))
    memory = any(used.access in WRITES for used in info.used_memory())
    explicit = next((i for i in range(instruction.op_count) if instruction.op_kind(i) == OpKind.MEMORY), None)
    place = operands.address(instruction) if memory and explicit is not None else None
    size = operands.size_of(instruction, explicit) if explicit is not None else 0
    flags = bool(instruction.rflags_modified)
    if not (general or vectors or memory or flags):
        return None

    def act(r: Registers, m: Memory) -> None:
        if memory:
            at = place(r, m) if place else None
            if isinstance(at, int):
                m.forget(at, at + (size or 64))
            elif at is None:
                m.forget_escaped()
        for number in general:
            r.general[number] = None
        for number in vectors:
            r.vector[number] = (None,) * 8
        if flags:
            r.flags = UNKNOWN

    return act


def _move(instruction: Instruction) -> Act | None:
    get, put = operands.getter(instruction, 1), operands.setter(instruction, 0)
    if not get or not put:
        return None
    return lambda r, m: put(r, m, get(r, m))


def _signed(instruction: Instruction) -> Act | None:
    get, put = operands.getter(instruction, 1), operands.setter(instruction, 0)
    if not get or not put:
        return None
    half = 1 << 8 * operands.size_of(instruction, 1) - 1

    def act(r: Registers, m: Memory) -> None:
        old = get(r, m)
        put(r, m, (old ^ half) - half & MASK if isinstance(old, int) else old and FOREIGN)

    return act


def _lea(instruction: Instruction) -> Act | None:
    place, put = operands.address(instruction), operands.setter(instruction, 0)
    if not put:
        return None
    return lambda r, m: put(r, m, place(r, m))


def _arithmetic(how: Callable[[int, int], int], *, keeps: bool = True, borrows: bool = False) -> Make:
    """Of two operands; `keeps` the result, `borrows` as a subtraction does."""

    def make(instruction: Instruction) -> Act | None:
        left, right = operands.getter(instruction, 0), operands.getter(instruction, 1)
        put = operands.setter(instruction, 0) if keeps else None
        if not left or not right or (keeps and not put):
            return None
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
            if isinstance(a, int) and isinstance(b, int):
                result = how(a, b) & mask
                if logic:
                    r.flags = (False, result == 0, result >= half, False)
                elif borrows:
                    b &= mask
                    over = ((a ^ b) & (a ^ result) & half) != 0
                    r.flags = (a < b, result == 0, result >= half, over)
                else:
                    b &= mask
                    over = ((a ^ result) & (b ^ result) & half) != 0
                    r.flags = (a + b > mask, result == 0, result >= half, over)
                if put:
                    put(r, m, result)
                return
            r.flags = UNKNOWN
            if put:
                if how is operator.or_ and MASK in (a, b):
                    put(r, m, MASK)
                elif how is operator.and_ and 0 in (a, b):
                    put(r, m, 0)
                else:
                    put(r, m, mixed(a, b))

        return act

    return make


def _one(how: Callable[[int], int], *, flags: bool = True) -> Make:
    def make(instruction: Instruction) -> Act | None:
        get, put = operands.getter(instruction, 0), operands.setter(instruction, 0)
        if not get or not put:
            return None
        mask = (1 << 8 * operands.size_of(instruction, 0)) - 1

        def act(r: Registers, m: Memory) -> None:
            old = get(r, m)
            if isinstance(old, int):
                result = how(old) & mask
                put(r, m, result)
                if flags:
                    r.flags = (None, result == 0, result > mask >> 1, None)
            else:
                put(r, m, mixed(old))
                if flags:
                    r.flags = UNKNOWN

        return act

    return make


def _shift(how: Callable[[int, int, int], int]) -> Make:
    """`how` is given the number, the count, and the bits of the operand."""

    def make(instruction: Instruction) -> Act | None:
        get, count, put = operands.getter(instruction, 0), operands.getter(instruction, 1), operands.setter(instruction, 0)
        if not get or not count or not put:
            return None
        bits = 8 * operands.size_of(instruction, 0)

        def act(r: Registers, m: Memory) -> None:
            old, by = get(r, m), count(r, m)
            if isinstance(old, int) and isinstance(by, int):
                by &= 63 if bits == 64 else 31
                result = how(old, by, bits) & (1 << bits) - 1
                put(r, m, result)
                if by:
                    r.flags = (None, result == 0, bool(result >> bits - 1), None)
            else:
                put(r, m, mixed(old, by))
                r.flags = UNKNOWN

        return act

    return make


def _sar(old: int, by: int, bits: int) -> int:
    return (old - (1 << bits) if old >> bits - 1 else old) >> by


def _multiply(instruction: Instruction) -> Act | None:
    if instruction.op_count < 2:
        return None
    first = 1 if instruction.op_count == 3 else 0
    left, right = operands.getter(instruction, first), operands.getter(instruction, first + 1)
    put = operands.setter(instruction, 0)
    if not left or not right or not put:
        return None

    def act(r: Registers, m: Memory) -> None:
        a, b = left(r, m), right(r, m)
        r.flags = UNKNOWN
        put(r, m, a * b & MASK if isinstance(a, int) and isinstance(b, int) else mixed(a, b))

    return act


def _conditional(instruction: Instruction) -> Act | None:
    get, old, put = operands.getter(instruction, 1), operands.getter(instruction, 0), operands.setter(instruction, 0)
    if not get or not old or not put:
        return None
    condition = instruction.condition_code

    def act(r: Registers, m: Memory) -> None:
        met = holds(condition, r.flags)
        new, before = get(r, m), old(r, m)
        if met is None:
            put(r, m, new if new is before or new == before else mixed(new, before))
        else:
            put(r, m, new if met else before)

    return act


def _set(instruction: Instruction) -> Act | None:
    put = operands.setter(instruction, 0)
    condition = instruction.condition_code
    if not put:
        return None

    def act(r: Registers, m: Memory) -> None:
        met = holds(condition, r.flags)
        put(r, m, FOREIGN if met is None else int(met))

    return act


def _push(instruction: Instruction) -> Act | None:
    get = operands.getter(instruction, 0)
    if not get:
        return None

    def act(r: Registers, m: Memory) -> None:
        new, top = get(r, m), r.general[RSP]
        top = top - 8 if isinstance(top, int) else top
        r.general[RSP] = top
        m.store(top, 8, new)

    return act


def _pop(instruction: Instruction) -> Act | None:
    put = operands.setter(instruction, 0)
    if not put:
        return None

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
    def make(instruction: Instruction) -> Act | None:
        gets = [operands.getter(instruction, i) for i in (0, 1)]
        puts = [operands.setter(instruction, i) for i in (0, 1)]
        if None in gets or None in puts:
            return None
        mask = (1 << 8 * operands.size_of(instruction, 0)) - 1

        def act(r: Registers, m: Memory) -> None:
            a, b = (get(r, m) for get in gets if get)
            both = isinstance(a, int) and isinstance(b, int)
            puts[1](r, m, a)  # type: ignore[misc]
            if adds:
                r.flags = UNKNOWN
                b = a + b & mask if both else mixed(a, b)  # type: ignore[operator]
            puts[0](r, m, b)  # type: ignore[misc]

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


def _vector(instruction: Instruction) -> Act | None:
    """A whole vector moved."""
    if instruction.op_count != 2 or instruction.op_mask != Register.NONE:
        return None
    source = operands.words(instruction, 1)
    if not source or operands.size_of(instruction, 0) % 8:
        return None
    get, size = source
    to_register = instruction.op_kind(0) == OpKind.REGISTER
    count = (operands.size_of(instruction, 0) if to_register else size) // 8
    put = operands.put_words(instruction, 0, clears=_avx(instruction))
    return lambda r, m: put(r, m, get(r, m)[:count])


def _avx(instruction: Instruction) -> bool:
    return instruction.encoding != 0


def _number(instruction: Instruction) -> Act | None:
    """movq, movd, movss and movsd: one number into or out of a vector, or from one to another."""
    if instruction.op_count != 2:
        return None
    register = instruction.op0_register if instruction.op_kind(0) == OpKind.REGISTER else Register.NONE
    target = operands.vector(register) if register != Register.NONE else None
    source = operands.vector(instruction.op1_register) if instruction.op_kind(1) == OpKind.REGISTER else None
    wide = instruction.mnemonic in (Mnemonic.MOVQ, Mnemonic.VMOVQ, Mnemonic.MOVSD, Mnemonic.VMOVSD)
    size = 8 if wide else 4
    if source is None:
        get = operands.getter(instruction, 1)
    else:

        def get(r: Registers, m: Memory) -> Value:
            word = r.vector[source][0]
            if isinstance(word, tuple):
                return None
            if size == 8 or not isinstance(word, int):
                return word
            return word & 0xFFFFFFFF

    if target is None:
        put = operands.setter(instruction, 0)
    elif source is not None and instruction.mnemonic in (Mnemonic.MOVSS, Mnemonic.MOVSD):
        return None

    else:

        def put(r: Registers, m: Memory, new: Value) -> None:
            rest = (0,) * 6 if _avx(instruction) else r.vector[target][2:]
            r.vector[target] = (new, 0, *rest)

    if not get or not put:
        return None
    return lambda r, m: put(r, m, get(r, m))


def _half(low: bool) -> Make:
    """movlps, movhps and their kin: one half of 16 bytes into or out of memory."""

    def make(instruction: Instruction) -> Act | None:
        n = 0 if low else 1
        if instruction.op_count == 2 and instruction.op_kind(0) == OpKind.MEMORY:
            put, source = operands.setter(instruction, 0), operands.vector(instruction.op1_register)
            if not put or source is None:
                return None

            def store(r: Registers, m: Memory) -> None:
                word = r.vector[source][n]
                put(r, m, None if isinstance(word, tuple) else word)

            return store
        last = instruction.op_count - 1
        get, target = operands.getter(instruction, last), operands.vector(instruction.op0_register)
        other = operands.vector(instruction.op_register(last - 1)) if last == 2 else target
        if not get or target is None or other is None:
            return None

        def load(r: Registers, m: Memory) -> None:
            old, new = r.vector[other], get(r, m)
            r.vector[target] = (new, old[1], *r.vector[target][2:]) if low else (old[0], new, *r.vector[target][2:])

        return load

    return make


def _low_words(instruction: Instruction) -> Act | None:
    """punpcklqdq: the low words of two vectors side by side."""
    last = instruction.op_count - 1
    source = operands.words(instruction, last)
    target = operands.vector(instruction.op0_register)
    other = operands.vector(instruction.op_register(last - 1))
    if not source or target is None or other is None or source[1] != 16:
        return None
    get = source[0]

    def act(r: Registers, m: Memory) -> None:
        rest = (0,) * 6 if last == 2 else r.vector[target][2:]
        r.vector[target] = (r.vector[other][0], get(r, m)[0], *rest)

    return act


def _insert(instruction: Instruction) -> Act | None:
    """pinsrq: one word of a vector."""
    last = instruction.op_count - 1
    get = operands.getter(instruction, last - 1)
    target = operands.vector(instruction.op0_register)
    other = operands.vector(instruction.op_register(last - 2))
    if not get or target is None or other is None:
        return None
    which = instruction.immediate(last) & 1

    def act(r: Registers, m: Memory) -> None:
        pair: list[Word] = list(r.vector[other][:2])
        pair[which] = get(r, m)
        r.vector[target] = (*pair, *r.vector[target][2:])

    return act


def _zero(instruction: Instruction) -> Act | None:
    """An exclusive or of a vector with itself."""
    last = instruction.op_count - 1
    kinds = {instruction.op_kind(i) for i in range(instruction.op_count)}
    if kinds != {OpKind.REGISTER} or instruction.op_register(last) != instruction.op_register(last - 1):
        return None
    target = operands.vector(instruction.op0_register)
    if target is None:
        return None
    avx = _avx(instruction)

    def act(r: Registers, m: Memory) -> None:
        r.vector[target] = (0,) * 8 if avx else (0, 0, *r.vector[target][2:])

    return act


def _repeated(size: int, *, moves: bool) -> Make:
    """rep movs and rep stos, as far as their counts are known."""

    def make(instruction: Instruction) -> Act:
        repeats = instruction.has_rep_prefix

        def act(r: Registers, m: Memory) -> None:
            count = r.general[1] if repeats else 1
            source, target = r.general[6], r.general[7]
            if not isinstance(count, int) or not isinstance(target, int) or count > 1 << 20:
                m.store(target if not isinstance(target, int) else None, 8, None)
                if isinstance(target, int):
                    m.forget(*m.extent(target, ()))
                r.general[1], r.general[6], r.general[7] = 0, mixed(source), mixed(target)
                return
            if moves:
                parts = m.bytes(source, size * count) if isinstance(source, int) else [source and FOREIGN] * size * count
                r.general[6] = source + size * count if isinstance(source, int) else source
            else:
                what = r.general[0]
                one = list(what.to_bytes(8, "little")[:size]) if isinstance(what, int) else [what and FOREIGN] * size
                parts = one * count
            m.put_bytes(target, parts)
            r.general[7] = target + size * count
            if repeats:
                r.general[1] = 0

        return act

    return make


def _nothing(_: Instruction) -> Act:
    return lambda r, m: None


@cache
def _makers() -> dict[int, Make]:
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
        "MOVSB": _repeated(1, moves=True), "MOVSQ": _repeated(8, moves=True), "MOVSW": _repeated(2, moves=True),
        "STOSB": _repeated(1, moves=False), "STOSQ": _repeated(8, moves=False), "STOSD": _repeated(4, moves=False),
    }  # fmt: skip
    for name in "MOVUPS MOVAPS MOVDQU MOVDQA MOVUPD MOVAPD LDDQU".split():
        by_name[name] = by_name[f"V{name}"] = _vector
    for name in "VMOVDQU8 VMOVDQU16 VMOVDQU32 VMOVDQU64 VMOVDQA32 VMOVDQA64".split():
        by_name[name] = _vector
    for name in "MOVQ MOVD MOVSS".split():
        by_name[name] = by_name[f"V{name}"] = _number
    for name in "PXOR XORPS XORPD".split():
        by_name[name] = by_name[f"V{name}"] = _zero
    by_name |= {"VPXORD": _zero, "VPXORQ": _zero, "PUNPCKLQDQ": _low_words, "VPUNPCKLQDQ": _low_words}
    by_name |= {"PINSRQ": _insert, "VPINSRQ": _insert}
    for name in ("MOVLPS", "MOVLPD"):
        by_name[name] = by_name[f"V{name}"] = _half(low=True)
    for name in ("MOVHPS", "MOVHPD"):
        by_name[name] = by_name[f"V{name}"] = _half(low=False)
    by_name["MOVSD"] = _movsd
    by_name["VMOVSD"] = _number
    makers = {number: by_name[name] for name, number in vars(Mnemonic).items() if name in by_name}
    for name, number in vars(Mnemonic).items():
        if name.startswith("CMOV"):
            makers[number] = _conditional
        elif name.startswith("SET") and name not in ("SETSSBSY",):
            makers[number] = _set
    return makers


def _movsd(instruction: Instruction) -> Act | None:
    """Two instructions have this name: a number in a vector, and four bytes of a string."""
    string = instruction.op_kind(0) in (OpKind.MEMORY_ESRDI, OpKind.MEMORY_ESEDI)
    return _repeated(4, moves=True)(instruction) if string else _number(instruction)
