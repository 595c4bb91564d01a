"""Instructions on vector registers, as far as compilers move text with them."""

from __future__ import annotations

from iced_x86 import Instruction, Mnemonic, OpKind, Register

from . import operands
from .machine import Memory, Registers, Value, Word
from .scalar import Act, Make, repeated


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
            return m.part(word, 0, size)

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
        by_name[name] = by_name[f"V{name}"] = _half(low=True)
    for name in ("MOVHPS", "MOVHPD"):
        by_name[name] = by_name[f"V{name}"] = _half(low=False)
    by_name["MOVSD"] = _movsd
    by_name["VMOVSD"] = _number
    return by_name
