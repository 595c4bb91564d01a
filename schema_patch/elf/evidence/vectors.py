"""Instructions on vector registers, as far as compilers move text with them."""

from __future__ import annotations

from iced_x86 import Instruction, Mnemonic, OpKind, Register

from . import operands
from .machine import Memory, Registers, Value, Word
from .operands import Get, PutWords
from .scalar import Act, Make, repeated


def _target(instruction: Instruction) -> PutWords | None:
    """Writes the vector that an instruction is about; None where it is about none, or writes only parts by a mask."""
    register = instruction.op0_register if instruction.op_kind(0) == OpKind.REGISTER else Register.NONE
    if instruction.op_mask != Register.NONE or operands.vector(register) is None:
        return None
    return operands.put_words(instruction, 0, clears=_avx(instruction))


def _avx(instruction: Instruction) -> bool:
    return instruction.encoding != 0


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


def _number(instruction: Instruction) -> Act | None:
    """movq, movd, movss and movsd: one number into or out of a vector, or from one to another."""
    if instruction.op_count != 2:
        return None
    target = _target(instruction)
    source = operands.vector(instruction.op1_register) if instruction.op_kind(1) == OpKind.REGISTER else None
    wide = instruction.mnemonic in (Mnemonic.MOVQ, Mnemonic.VMOVQ, Mnemonic.MOVSD, Mnemonic.VMOVSD)
    get = operands.getter(instruction, 1) if source is None else _low(source, 8 if wide else 4)
    if target and source is not None and instruction.mnemonic in (Mnemonic.MOVSS, Mnemonic.MOVSD):
        return None
    if target:
        return (lambda r, m: target(r, m, [get(r, m), 0])) if get else None
    put = operands.setter(instruction, 0)
    return (lambda r, m: put(r, m, get(r, m))) if get and put else None


def _low(source: int, size: int) -> Get:
    """The lowest bytes of a vector, as a number."""

    def get(r: Registers, m: Memory) -> Value:
        word = r.vector[source][0]
        if isinstance(word, tuple):
            return None
        return m.part(word, 0, size) if size < 8 and isinstance(word, int) else word

    return get


def _half(n: int) -> Make:
    """movlps, movhps and their kin: the low or the high half of 16 bytes into or out of memory."""

    def make(instruction: Instruction) -> Act | None:
        last = instruction.op_count - 1
        put, old = _target(instruction), operands.words(instruction, max(last - 1, 0))
        if not put:
            source, store = operands.words(instruction, 1), operands.setter(instruction, 0)
            return (lambda r, m: store(r, m, _single(source[0](r, m)[n]))) if source and store else None
        get = operands.getter(instruction, last)
        if not get or not old:
            return None
        return lambda r, m: put(r, m, [get(r, m) if at == n else word for at, word in enumerate(old[0](r, m)[:2])])

    return make


def _single(word: Word) -> Value:
    return None if isinstance(word, tuple) else word


def _low_words(instruction: Instruction) -> Act | None:
    """punpcklqdq: the low words of two vectors side by side."""
    last = instruction.op_count - 1
    put, left, right = _target(instruction), operands.words(instruction, last - 1), operands.words(instruction, last)
    if not put or not left or not right or right[1] != 16:
        return None
    return lambda r, m: put(r, m, [left[0](r, m)[0], right[0](r, m)[0]])


def _insert(instruction: Instruction) -> Act | None:
    """pinsrq: one word of a vector."""
    last = instruction.op_count - 1
    put, get = _target(instruction), operands.getter(instruction, last - 1)
    old, which = operands.words(instruction, last - 2), instruction.immediate(last) & 1
    if not put or not get or not old:
        return None
    return lambda r, m: put(r, m, [get(r, m) if at == which else word for at, word in enumerate(old[0](r, m)[:2])])


def _zero(instruction: Instruction) -> Act | None:
    """An exclusive or of a vector with itself."""
    last = instruction.op_count - 1
    put, kinds = _target(instruction), {instruction.op_kind(i) for i in range(instruction.op_count)}
    if not put or kinds != {OpKind.REGISTER} or instruction.op_register(last) != instruction.op_register(last - 1):
        return None
    none: list[Word] = [0] * (operands.size_of(instruction, 0) // 8)
    return lambda r, m: put(r, m, none)


def _movsd(instruction: Instruction) -> Act | None:
    """Two instructions have this name: a number in a vector, and four bytes of a string."""
    string = instruction.op_kind(0) in (OpKind.MEMORY_ESRDI, OpKind.MEMORY_ESEDI)
    return repeated(4, moves=True)(instruction) if string else _number(instruction)


def makers() -> dict[str, Make]:
    """By mnemonic."""
    by_name: dict[str, Make] = {}
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
        by_name[name] = by_name[f"V{name}"] = _half(0)
    for name in ("MOVHPS", "MOVHPD"):
        by_name[name] = by_name[f"V{name}"] = _half(1)
    by_name["MOVSD"] = _movsd
    by_name["VMOVSD"] = _number
    return by_name
