"""The operands of x86-64 instructions, as functions of registers and memory."""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Any

from iced_x86 import Instruction, MemorySizeExt, OpKind, Register, RegisterExt

from .machine import FOREIGN, LEAST_ADDRESS, MASK, Memory, Registers, Value, Word, items, mixed, reckoned, side

Get = Callable[[Registers, Memory], Value]
Set = Callable[[Registers, Memory, Value], None]
GetWords = Callable[[Registers, Memory], list[Word]]
PutWords = Callable[[Registers, Memory, list[Word]], None]

IMMEDIATES = frozenset(
    {
        OpKind.IMMEDIATE8, OpKind.IMMEDIATE8_2ND, OpKind.IMMEDIATE16, OpKind.IMMEDIATE32, OpKind.IMMEDIATE64,
        OpKind.IMMEDIATE8TO16, OpKind.IMMEDIATE8TO32, OpKind.IMMEDIATE8TO64, OpKind.IMMEDIATE32TO64,
    }
)  # fmt: skip
HIGH = {Register.AH: 0, Register.CH: 1, Register.DH: 2, Register.BH: 3}
CANARY = 0x28  # behind fs: the stack protector's word


def size_of(instruction: Instruction, index: int) -> int:
    """The bytes of an operand."""
    if instruction.op_kind(index) == OpKind.REGISTER:
        return int(RegisterExt.size(instruction.op_register(index)))
    return int(MemorySizeExt.size(instruction.memory_size))


def general(register: Any) -> int | None:
    """The number of a general register, one of iced's; None for all others."""
    if not RegisterExt.is_gpr(register):
        return None
    return HIGH[register] if register in HIGH else int(RegisterExt.number(RegisterExt.full_register(register)))


def vector(register: Any) -> int | None:
    return int(RegisterExt.number(register)) if RegisterExt.is_vector_register(register) else None


def address(instruction: Instruction) -> Get:
    """The address of the operand in memory, or what is known of it."""
    displacement = instruction.memory_displacement
    base, index = instruction.memory_base, instruction.memory_index
    if instruction.segment_prefix in (Register.FS, Register.GS):
        return lambda r, m: None  # a thread's own variables: addresses of ours may be there
    if base in (Register.RIP, Register.NONE) and index == Register.NONE:
        return lambda r, m: displacement
    b, i, scale = general(base), general(index), instruction.memory_index_scale
    if base != Register.NONE and i is None and index == Register.NONE and b is not None:

        def simple(r: Registers, m: Memory) -> Value:
            start = r.general[b]
            return start + displacement & MASK if isinstance(start, int) else start

        return simple

    def whole(r: Registers, m: Memory) -> Value:
        start: Value = 0 if b is None else r.general[b]
        step: Value = 0 if i is None else r.general[i]
        if not isinstance(start, int) or not isinstance(step, int):
            return mixed(m, start, step, displacement)
        if start < LEAST_ADDRESS > step:
            return start + step * scale + displacement & MASK
        where = mixed(m, start, step) if scale > 1 and side(step) else reckoned(m, add, start, step * scale & MASK)
        return where if where is None else where + displacement & MASK

    return whole


def getter(instruction: Instruction, index: int) -> Get | None:
    """Reads an operand of at most eight bytes; None where it is of another kind."""
    kind = instruction.op_kind(index)
    if kind in IMMEDIATES:
        constant = instruction.immediate(index) & MASK
        return lambda r, m: constant
    if kind == OpKind.MEMORY:
        size = size_of(instruction, index)
        if not 0 < size <= 8:
            return None
        if instruction.segment_prefix == Register.FS and instruction.memory_displacement == CANARY:
            return lambda r, m: 0
        place = address(instruction)
        return lambda r, m: m.load(place(r, m), size)
    register = instruction.op_register(index) if kind == OpKind.REGISTER else Register.NONE
    number = general(register)
    if number is None:
        return None
    size, shift = int(RegisterExt.size(register)), 8 if register in HIGH else 0
    if size == 8:
        return lambda r, m: r.general[number]
    mask = (1 << 8 * size) - 1

    def part(r: Registers, m: Memory) -> Value:
        whole = r.general[number]
        if isinstance(whole, int):
            return whole >> shift & mask if whole < LEAST_ADDRESS or not side(whole) else mixed(m, whole)
        return whole and FOREIGN

    return part


def setter(instruction: Instruction, index: int) -> Set | None:
    """Writes an operand of at most eight bytes; None where it is of another kind."""
    kind = instruction.op_kind(index)
    if kind == OpKind.MEMORY:
        size = size_of(instruction, index)
        place = address(instruction)
        mask = (1 << 8 * size) - 1
        if not 0 < size <= 8:
            return None

        def store(r: Registers, m: Memory, new: Value) -> None:
            m.store(place(r, m), size, new & mask if isinstance(new, int) else new)

        return store
    register = instruction.op_register(index) if kind == OpKind.REGISTER else Register.NONE
    number = general(register)
    if number is None:
        return None
    size = int(RegisterExt.size(register))
    shift = 8 if register in HIGH else 0
    mask = ((1 << 8 * size) - 1) << shift

    def whole(r: Registers, m: Memory, new: Value) -> None:
        r.general[number] = new & mask if isinstance(new, int) else new

    def part(r: Registers, m: Memory, new: Value) -> None:
        old = r.general[number]
        if isinstance(new, int) and isinstance(old, int) and not side(old):
            r.general[number] = old & ~mask | new << shift & mask
        else:
            r.general[number] = mixed(m, old, new)

    return whole if size >= 4 else part


def words(instruction: Instruction, index: int) -> tuple[GetWords, int] | None:
    """Reads a vector operand in whole words, with its size; None where it is of another kind."""
    size = size_of(instruction, index)
    if size % 8 or not size:
        return None
    count = size // 8
    if instruction.op_kind(index) == OpKind.MEMORY:
        place = address(instruction)

        def load(r: Registers, m: Memory) -> list[Word]:
            start = place(r, m)
            if not isinstance(start, int):
                return [start and FOREIGN] * count
            return [m.word(start + 8 * n) if not start & 7 else m.load(start + 8 * n, 8) for n in range(count)]

        return load, size
    number = vector(instruction.op_register(index)) if instruction.op_kind(index) == OpKind.REGISTER else None
    if number is None:
        return None
    return (lambda r, m: list(r.vector[number][:count])), size


def put_words(instruction: Instruction, index: int, *, clears: bool) -> PutWords:
    """Writes a vector operand; `clears`: what of a register lies beyond becomes zero, as AVX has it."""
    if instruction.op_kind(index) == OpKind.MEMORY:
        place = address(instruction)

        def store(r: Registers, m: Memory, new: list[Word]) -> None:
            start = place(r, m)
            for n, word in enumerate(new):
                if isinstance(start, int) and isinstance(word, tuple):
                    if start >= (0x5 << 44):
                        m.put_bytes(start + 8 * n, items(word))
                else:
                    m.store(
                        start + 8 * n if isinstance(start, int) else start,
                        8,
                        word if not isinstance(word, tuple) else None,
                    )

        return store
    number = vector(instruction.op_register(index))

    def keep(r: Registers, m: Memory, new: list[Word]) -> None:
        if number is not None:
            rest = (0,) * (8 - len(new)) if clears else r.vector[number][len(new) :]
            r.vector[number] = (*new, *rest)

    return keep
