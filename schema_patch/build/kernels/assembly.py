"""The assembly of a kernel -> its instructions by kind, its messages to memory, and its innermost loops.

Knows the text that `ocloc disasm` writes: a label is the offset of what follows, a jump to a label before it closes a
loop, and what a send does stands behind it as a comment. Knows nothing of what a kernel is for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .model import KINDS, Access, Loop

LABEL = re.compile(r"(L\d+):")
LINE = re.compile(r"(?:\([^)]*\)\s+)?(?P<word>[a-z][\w.]*)\s+\((?P<lanes>\d+)\|M\d+\)(?P<rest>.*)")
BARE = re.compile(r"(?:\([^)]*\)\s+)?(?P<word>[a-z][\w.]*)(?P<rest>.*)")
MESSAGE = re.compile(r"// wr:\d+\+\d+, rd:(?P<read>\d+); (?P<what>[a-z_0-9]+)(?P<form>[^ /]*)")
WRITTEN = re.compile(r"// wr:(\d+)\+(\d+)")
DATA = re.compile(r"\.d(?P<bits>\d+)(?:u\d+)?(?:x(?P<vector>\d+))?(?P<turned>t)?\b")
JUMPS = {"jmpi", "goto", "join", "if", "else", "endif", "while", "break", "cont", "brc", "brd", "call", "calla", "ret"}
# Multiplication of 64 bits, and carries: only what emulates wider integers asks for them.
WIDE = {"mach", "addc", "subb"}
MOST = 32  # registers that a message of two dimensions fills: its field of five bits then holds 31
REGISTER = 64  # bytes of a register of Xe2 and later
NOT_MEMORY = ("end", "barrier", "fence", "nbarrier", "named", "signal")
LONGEST, COMPACTED = 16, 8  # bytes of an instruction


@dataclass(frozen=True, slots=True)
class Instruction:
    offset: int
    kind: str
    target: int | None
    access: Access | None


@dataclass(frozen=True, slots=True)
class Listing:
    instructions: dict[str, int]
    accesses: tuple[Access, ...]
    loops: tuple[Loop, ...]


def read(text: str, line_of: Callable[[int], str]) -> Listing:
    """`line_of`: the source line of an offset, empty where it is not known."""
    code = list(_parse(text))
    loops = tuple(
        Loop(f"L{first.offset}", _line(body, line_of), _kinds(body), _accesses(body))
        for body in _innermost(code)
        for first in body[:1]
    )
    return Listing(_kinds(code), _accesses(code), loops)


def _parse(text: str) -> Iterable[Instruction]:
    at = 0
    for row in text.splitlines():
        row = row.strip()
        if label := LABEL.fullmatch(row):
            at = int(label[1][1:])
        elif match := LINE.match(row) or BARE.match(row):
            word = match["word"].partition(".")[0]
            rest = match["rest"]
            where = re.search(r"\bL(\d+)\b", rest) if word in JUMPS else None
            lanes = int(match.groupdict().get("lanes") or 1)
            yield Instruction(at, _kind(word, rest), int(where[1]) if where else None, _access(word, rest, lanes))
            at += COMPACTED if "Compacted" in rest else LONGEST


def _kind(word: str, rest: str) -> str:
    if word.startswith("send"):
        return "send"
    if word in ("dpas", "dpasw"):
        return "dpas"
    if word == "math":
        return "math"
    if word in JUMPS:
        return "control"
    if word in ("sync", "nop", "wait", "illegal"):
        return "sync"
    if word in WIDE or re.search(r":u?q\b", rest):
        return "int64"
    return "move" if word in ("mov", "movi") else "arithmetic"


def _access(word: str, rest: str, lanes: int) -> Access | None:
    match = MESSAGE.search(rest) if word.startswith("send") else None
    if not match or match["what"].startswith(NOT_MEMORY):
        return None
    form, what = match["form"], match["what"]
    data = DATA.search(form)
    block = "block" in what or bool(data and data["turned"])
    written = WRITTEN.search(rest)
    registers = int(match["read"]) or (int(written[2]) if written else 0)
    if what == "load_block2d" and registers == MOST - 1:
        registers = MOST
    size = registers * REGISTER
    if data and "block" not in what:  # a number of 8 or 16 bits takes the place of one of 32 in a register
        size = int(data["bits"]) // 8 * int(data["vector"] or 1) * (1 if data["turned"] else lanes)
    local = ".slm" in form or ".slm" in word
    shown = f"{what}{'.slm' if local else ''}{data[0] if data else ''}"
    return Access(shown, 1, size, block, local)


def _kinds(code: Sequence[Instruction]) -> dict[str, int]:
    counts = Counter(one.kind for one in code)
    return {kind: counts[kind] for kind in KINDS if counts[kind]}


def _accesses(code: Sequence[Instruction]) -> tuple[Access, ...]:
    counts = Counter(one.access for one in code if one.access)
    rows = (Access(a.form, count, a.size, a.block, a.local) for a, count in counts.items())
    return tuple(sorted(rows, key=lambda a: (a.form, a.size)))


def _innermost(code: Sequence[Instruction]) -> list[list[Instruction]]:
    """Bodies of loops that hold no other: between a label and the last jump back to it."""
    ends: dict[int, int] = {}
    for one in code:
        if one.target is not None and one.target <= one.offset:
            ends[one.target] = max(ends.get(one.target, 0), one.offset)
    inner = [
        (start, end)
        for start, end in ends.items()
        if not any((start, end) != (s, e) and start <= s and e <= end for s, e in ends.items())
    ]
    return [[one for one in code if start <= one.offset <= end] for start, end in sorted(inner)]


def _line(body: Sequence[Instruction], line_of: Callable[[int], str]) -> str:
    """The line that most of the instructions come from."""
    lines = Counter(line for one in body if (line := line_of(one.offset)))
    return lines.most_common(1)[0][0] if lines else ""
