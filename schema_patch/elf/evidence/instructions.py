"""x86-64 instructions as functions of registers and memory, decoded by iced-x86.

What compilers use to move text, pointers and small numbers is followed exactly. Of any other instruction it is known
what it writes, and that is not known any more afterwards.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import NamedTuple

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
)

from . import operands, scalar, traced, vectors
from .conditions import UNKNOWN
from .machine import IMAGE, KERNEL_AT, MASK, NOTHING, Memory, Registers
from .operands import Get
from .scalar import Act, Make

PLAIN, JUMP, BRANCH, CALL, RETURN, END = range(6)
KINDS = {
    FlowControl.NEXT: PLAIN, FlowControl.UNCONDITIONAL_BRANCH: JUMP, FlowControl.INDIRECT_BRANCH: JUMP,
    FlowControl.CONDITIONAL_BRANCH: BRANCH, FlowControl.CALL: CALL, FlowControl.INDIRECT_CALL: CALL,
    FlowControl.RETURN: RETURN, FlowControl.INTERRUPT: END, FlowControl.EXCEPTION: END,
}  # fmt: skip
KERNELS = (Mnemonic.SYSCALL, Mnemonic.SYSENTER)
WRITES = frozenset({OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE})
_info = InstructionInfoFactory()


class Step(NamedTuple):
    """One instruction: where it is, what comes next, and what it does. `to`: where it leads, if that is a number.

    `slot`: where it reads where it leads. `table`: an address that it takes, of a table of jumps perhaps; `place`: one
    that it names.
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


class Line(NamedTuple):
    """Instructions that run one after the other: what they do, how many they are, and the first behind them."""

    end: int
    many: int
    acts: tuple[Act, ...]


def decode(code: bytes, address: int, *, traces: bool = False) -> Step:
    """The instruction at an address. What is none ends the path. `traces`: numbers in it know their place."""
    decoder = Decoder(64, code, ip=address)
    instruction = decoder.decode()
    kind = KINDS.get(instruction.flow_control, END)
    if not instruction:
        return Step(address, address, END)
    after = instruction.next_ip
    if kind == PLAIN:
        held = _held(decoder, instruction) if traces and instruction.mnemonic == Mnemonic.MOV else None
        if not instruction.is_ip_rel_memory_operand:
            return Step(address, after, PLAIN, held or _alike(code[: after - address]))
        place = instruction.ip_rel_memory_address
        table = place if instruction.mnemonic == Mnemonic.LEA else 0
        return Step(address, after, PLAIN, held or _act(instruction), table=table, place=place)
    if kind in (RETURN, END):
        return Step(address, after, kind)
    if instruction.mnemonic in KERNELS:
        return Step(address, after, kind, where=lambda r, m: KERNEL_AT)
    if instruction.op_kind(0) == OpKind.NEAR_BRANCH64:
        condition: int = instruction.condition_code
        if kind == BRANCH and condition == ConditionCode.NONE:  # jrcxz and loop
            condition = -1
        return Step(address, after, kind, to=instruction.near_branch_target, condition=condition)
    where = operands.getter(instruction, 0) or (lambda r, m: None)
    fixed = instruction.op_kind(0) == OpKind.MEMORY and instruction.memory_base == Register.RIP
    slot = instruction.memory_displacement if fixed else 0
    return Step(address, after, kind, where=where, slot=slot)


@lru_cache(1 << 14)
def _alike(code: bytes) -> Act | None:
    """What an instruction does that does the same wherever it stands."""
    return _act(Decoder(64, code).decode())


@lru_cache(1 << 14)
def uses(code: bytes) -> tuple[int, int, int]:
    """The general registers that an instruction reads, those that it writes whatever happens, and one that it pushes or
    pops, a bit each."""
    instruction = Decoder(64, code).decode()
    reads = writes = 0
    for used in _info.info(instruction).used_registers():
        number = operands.general(used.register)
        if number is not None:
            reads |= (used.access != OpAccess.WRITE) << number
            writes |= (used.access in (OpAccess.WRITE, OpAccess.READ_WRITE)) << number
    moves = instruction.mnemonic in (Mnemonic.PUSH, Mnemonic.POP) and instruction.op0_kind == OpKind.REGISTER
    return reads, writes, 1 << (operands.general(instruction.op0_register) or 0) if moves else 0


def _held(decoder: Decoder, instruction: Instruction) -> Act | None:
    """The move of a number that stands in the instruction, each byte of it with its place in the library."""
    put = operands.setter(instruction, 0) if instruction.op_kind(1) in operands.IMMEDIATES else None
    found = decoder.get_constant_offsets(instruction)
    if not put or not found.has_immediate:
        return None
    first = instruction.ip - IMAGE + found.immediate_offset
    number = traced.traced(instruction.immediate(1) & MASK, range(first, first + found.immediate_size))
    return lambda r, m: put(r, m, number)


def _act(instruction: Instruction) -> Act | None:
    make = _makers().get(instruction.mnemonic)
    return (make(instruction) if make else None) or _forgetting(instruction)


def _forgetting(instruction: Instruction) -> Act | None:
    """An instruction that is not followed: what it writes is not known any more."""
    info = _info.info(instruction)
    general, vectors, read, lanes = list[int](), list[int](), list[int](), list[int]()
    for used in info.used_registers():
        number = operands.general(used.register)
        lane = operands.vector(used.register)
        if used.access in WRITES:
            general += [] if number is None else [number]
            vectors += [] if lane is None else [lane]
        if used.access != OpAccess.WRITE:
            read += [] if number is None else [number]
            lanes += [] if lane is None else [lane]
    memory = any(used.access in WRITES for used in info.used_memory())
    source = any(used.access != OpAccess.WRITE for used in info.used_memory())
    explicit = next((i for i in range(instruction.op_count) if instruction.op_kind(i) == OpKind.MEMORY), None)
    place = operands.address(instruction) if explicit is not None else None
    size = operands.size_of(instruction, explicit) if explicit is not None else 0
    flags = bool(instruction.rflags_modified)
    if not (general or vectors or memory or flags):
        return None

    def act(r: Registers, m: Memory) -> None:
        m.lose(*(r.general[number] for number in read))
        for number in lanes:
            m.lose(*r.vector[number])
        at = place(r, m) if place and (memory or source) else None
        if source and isinstance(at, int):
            m.lose(*(m.word(word) for word in range(at & ~7, at + size, 8)))
        if memory:
            if isinstance(at, int):
                m.forget(at, at + (size or 64))
            elif at is None:
                m.forget_escaped()
        for number in general:
            r.general[number] = None
        for number in vectors:
            r.vector[number] = NOTHING
        if flags:
            r.flags = UNKNOWN

    return act


@cache
def _makers() -> dict[int, Make]:
    by_name = {**scalar.makers(), **vectors.makers()}
    return {number: by_name[name] for name, number in vars(Mnemonic).items() if name in by_name}
