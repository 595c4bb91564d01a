"""What registers and memory hold while code is followed: values, and what is not known of them.

A value is a number; FOREIGN, of which it is known only that it leads to none of our memory, as all that torch made; or
None, of which nothing is known. Addresses are numbers too, in ranges of their own for the library's image, the stack,
the heap and the functions of others, so that code reckons with them as it would.

Memory is kept in words of eight bytes. Writes are logged, so that a path can be taken back and two paths can be joined:
what they do not agree on is not known any more.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, repeat

from . import traced
from .traced import Traced

IMAGE, IMPORTS, HEAP, STACK = 0x5000_0000_0000, 0x4000_0000_0000, 0x6000_0000_0000, 0x7000_0000_0000
STACK_SIZE = 1 << 24
KERNEL, KERNEL_AT = "syscall instruction", IMAGE - 16  # as if it were a function of others
POINTERS = (IMPORTS, STACK + STACK_SIZE)
MASK = (1 << 64) - 1
RSP, RBP = 4, 5


class Foreign:
    """A value that leads to none of our memory; `tag` says what it is a part of."""

    __slots__ = ("tag",)

    def __init__(self, tag: object = None) -> None:
        self.tag = tag


FOREIGN = Foreign()
Value = int | Foreign | None  # of a word, or what fits into one
Item = int | Foreign | None  # of a byte
Word = int | Foreign | None | tuple[Item, ...]
_MISSING: Word = (None,)  # told from every word by identity
NOTHING: tuple[Word, ...] = (None,) * 8  # is known of a vector
Log = dict[int, Word]
SPACES = frozenset(start >> 36 for start in (IMPORTS, IMAGE, HEAP, STACK))  # 64 GB of each: none is text in ASCII
LEAST_ADDRESS = IMPORTS
ALIGNED, ROUNDED = 16, 64  # addresses are multiples of that, as far as that is known; stacks are rounded to this


def side(number: int) -> int:
    """1 for an address, -1 for one with its sign turned, 0 for any other number."""
    return 1 if number >> 36 in SPACES else -1 if MASK + 1 - number >> 36 in SPACES else 0


def points(value: Value) -> bool:
    """Whether a value may be an address in our memory."""
    return value is None or (isinstance(value, int) and POINTERS[0] <= value < POINTERS[1])


def mixed(memory: Memory, *values: Value) -> Value:
    """What an operation that is not followed makes of values: foreign, if none of them leads anywhere."""
    turned = [MASK + 1 - value for value in values if isinstance(value, int) and side(value) < 0]
    if turned or any(map(points, values)):
        memory.lose(*values, *turned)
        return None
    return FOREIGN


def reckoned(memory: Memory, how: Callable[[int, int], int], a: int, b: int, *, keeps: bool = True) -> Value:
    """What an operation makes of two words of which one may be an address.

    Addresses are others when the library runs: known are sums and distances within one space, and how they are
    aligned. Of all else that is made of one, nothing is; and it may be made an address again, which is lost then.
    """
    left, right = side(a), side(b)
    result = how(a, b) & MASK
    if not left and not right:
        return result
    known = False
    if how is operator.and_ or (how is operator.or_ and a == b):
        mask, address = (b, a) if left else (a, b)
        known = a == b or mask < ALIGNED or mask > MASK - (ROUNDED if address >= STACK else ALIGNED)
    elif how is operator.add or how is operator.sub:
        to = left + (right if how is operator.add else -right)
        known = side(result) == to if to else memory.space(a) == memory.space(b)
    return result if known else mixed(memory, a, b) if keeps else None


def joined(memory: Memory, left: Word, right: Word) -> Word:
    """What is known where one of two paths was taken."""
    if left is right or (left == right and not isinstance(left, Foreign)):
        return left
    if isinstance(left, tuple) or isinstance(right, tuple):
        return packed([joined(memory, a, b) for a, b in zip(items(left), items(right), strict=True)])  # type: ignore[misc]
    return mixed(memory, left, right)


def items(word: Word) -> tuple[Item, ...]:
    """The eight bytes of a word."""
    if isinstance(word, tuple):
        return word
    if isinstance(word, int):
        return traced.parts(word) if type(word) is Traced else tuple((word & MASK).to_bytes(8, "little"))
    return (word,) * 8


def packed(parts: Sequence[Item]) -> Word:
    """The word of eight bytes."""
    first = parts[0]
    if not isinstance(first, int):
        return first if all(part is first for part in parts) else tuple(parts)
    try:
        return _number(parts)
    except TypeError:
        return tuple(parts)


def _number(parts: Sequence[Item]) -> int:
    """Raises TypeError where a byte is not known."""
    number = int.from_bytes(bytes(parts), "little")  # type: ignore[arg-type]
    return traced.joined(number, parts) if Traced in map(type, parts) else number


def value(parts: Sequence[Item]) -> Value:
    """The number of some bytes."""
    try:
        return _number(parts)
    except TypeError:
        if any(part is None for part in parts):
            return None
        return parts[0] if len(parts) == 8 and all(part is parts[0] for part in parts) else FOREIGN


class Memory:
    """Words by address. `constant(address)` reads what the file loads there and nobody writes, in words.

    `shared`: others may run at any time, so that nothing is known of what they can come to.
    """

    def __init__(self, constant: Callable[[int], Value], *, shared: bool = False) -> None:
        self.words: dict[int, Word] = {}
        self.constant, self.shared = constant, shared
        self.logs: list[Log] = [{}]
        self.writes: list[tuple[int, Word]] | None = None  # into the library and the heap, if asked for
        self.blocks: list[int] = []  # on the heap, by address
        self.sizes: dict[int, int] = {}
        self.looked_at = 0  # words, by those who forget
        self.tops: list[int] = []  # of the frames on the stack, which grows down
        self.floor: Callable[[], Value] = lambda: None  # where the stack ends
        self._escaped = {(IMAGE, HEAP)}
        self._reach: tuple[list[int], list[int]] | None = None
        self._next = HEAP

    def allocate(self, size: int) -> int:
        address = self._next
        self.blocks.append(address)
        self.sizes[address] = size
        self._next += (size + 64) & ~15
        return address

    def word(self, address: int) -> Word:
        found = self.words.get(address, _MISSING)
        return self.constant(address) if found is _MISSING else found

    def put(self, address: int, word: Word) -> None:
        log = self.logs[-1]
        if address not in log:
            log[address] = self.words.get(address, _MISSING)
        if self.writes is not None and address < STACK:
            self.writes.append((address, word))
        if word is None or (self.shared and self._escapes(address)):
            self.words.pop(address, None)
        else:
            self.words[address] = word

    def bytes(self, address: int, size: int) -> list[Item]:
        first = address & ~7
        parts: list[Item] = []
        for at in range(first, address + size, 8):
            parts += items(self.word(at))
        return parts[address - first : address - first + size]

    def put_bytes(self, address: int, parts: Sequence[Item]) -> None:
        at, done = address & ~7, 0
        while done < len(parts):
            start = address + done - at
            count = min(8 - start, len(parts) - done)
            if count == 8:
                self.put(at, packed(parts[done : done + 8]))
            else:
                word = self.word(at)
                if isinstance(word, int) and word >> 36 in SPACES:  # what is left of it may be made an address again
                    self.lose(word)
                    word = None
                old = list(items(word))
                old[start : start + count] = parts[done : done + count]
                self.put(at, packed(old))
            done += count
            at += 8

    def load(self, address: Value, size: int) -> Value:
        if not isinstance(address, int):
            return address and FOREIGN
        if IMPORTS <= address < IMAGE:
            return FOREIGN
        start = address & 7
        if start + size <= 8:
            word = self.word(address - start)
            if isinstance(word, int):
                return self.part(word, start, size)
            if not isinstance(word, tuple):
                return word if size == 8 else word and FOREIGN
        return value(self.bytes(address, size))

    def part(self, word: int, start: int, size: int) -> Value:
        """Some bytes of a word; those of an address, which are others when the library runs, are not known."""
        if size < 8 and word >> 36 in SPACES:
            self.lose(word)
            return None
        return word >> 8 * start & (1 << 8 * size) - 1

    def space(self, address: int) -> tuple[int, int]:
        """Within what distances are known: one block of the heap, the stack, the library. Also of a turned address."""
        address = address if side(address) > 0 else MASK + 1 - address
        return self.extent(address) if HEAP <= address < STACK else (address >> 44, 0)

    def store(self, address: Value, size: int, new: Value) -> None:
        if not isinstance(address, int):
            if address is None:
                self.forget_escaped()
            if isinstance(new, int):
                self.escape(new)
                if address is None and self.writes is not None:
                    self.writes.append((IMAGE, new))  # it may be there
            return
        if IMAGE <= address < HEAP and isinstance(new, int):
            self.escape(new)
        if not POINTERS[0] <= address < POINTERS[1] or address < IMAGE:
            return
        if size == 8 and not address & 7:
            self.put(address, new)
        else:
            if isinstance(new, int) and new >> 36 in SPACES:  # its parts may be used alone
                self.lose(new)
            part = items(new)[:size] if isinstance(new, int) else (new and FOREIGN,) * size
            self.put_bytes(address, part)

    def text(self, address: Value, limit: int = 1 << 16) -> list[Item] | None:
        """The bytes of a C string up to its end; None where the end is not known."""
        parts: list[Item] = []
        while isinstance(address, int) and len(parts) < limit:
            for part in self.bytes(address, 8 - address % 8):
                if part == 0:
                    return parts
                if not isinstance(part, int):
                    return None
                parts.append(part)
            address += 8 - address % 8
        return None

    def forget(self, start: int, end: int) -> None:
        """Nothing is known any more of a range."""
        if end - start > 8 * len(self.words):
            for at in [at for at in self.words if start - 7 <= at < end]:
                self.put(at, None)
            return
        for at in range(start & ~7, end, 8):
            if at in self.words:
                self.put(at, None)

    def extent(self, address: int) -> tuple[int, int]:
        """What others may reach who are given an address: the rest of a frame, a block, all that the library writes."""
        if address >= STACK:
            return address, min((top for top in self.tops if top > address), default=STACK + STACK_SIZE)
        if address >= HEAP:
            n = bisect_right(self.blocks, address) - 1
            start = self.blocks[n] if n >= 0 else HEAP
            return start, start + self.sizes.get(start, 0)
        return (IMAGE, HEAP) if address >= IMAGE else (0, 0)

    def escape(self, address: int) -> None:
        """Others may keep this address, and write there whenever they run."""
        if HEAP <= address < POINTERS[1]:
            self._free(self.extent(address))

    def lose(self, *values: Word) -> None:
        """Of these nothing will be known any more, and they may be used: to write anywhere around where they lead."""
        for value in values:
            if isinstance(value, int) and HEAP <= value < POINTERS[1]:
                start, end = self.extent(value)
                if value >= STACK:
                    below = [top for top in (*self.tops, self.floor()) if isinstance(top, int) and top <= value]
                    start = max(below, default=STACK)
                self._free((start, end))

    def _free(self, extent: tuple[int, int]) -> None:
        if extent not in self._escaped:
            self._escaped.add(extent)
            self._reach = None
            if self.shared:
                self.forget(*extent)

    def frame_ends(self, top: int) -> None:
        """What lay on the stack below is nobody's any more."""
        kept = {(start, end) for start, end in self._escaped if not (STACK <= start < top and end <= top)}
        if kept != self._escaped:
            self._escaped, self._reach = kept, None

    def forget_escaped(self) -> None:
        """Who can come to a word, can come to where that leads."""
        before = -1
        while len(self._escaped) > before:
            before = len(self._escaped)
            self.looked_at += len(self.words)
            escaped = [at for at in self.words if self._escapes(at)]
            for at in escaped:
                word = self.words.get(at)  # where others may run, one that escapes takes others with it
                if isinstance(word, int):
                    self.escape(word)
        for at in escaped:
            self.put(at, None)

    def _escapes(self, address: int) -> bool:
        """Whether others may write a word. Extents may be many and words few: each is looked up in where extents begin
        and how far these reach."""
        if self._reach is None:
            extents = sorted(self._escaped)
            self._reach = [start for start, _ in extents], list(accumulate((end for _, end in extents), max))
        starts, reach = self._reach
        before = bisect_right(starts, address + 7)
        return bool(before) and reach[before - 1] > address

    # Paths.

    def since(self, level: int) -> Log:
        """What was written since a log was begun, as it is now."""
        keys = set().union(*self.logs[level:])
        return {key: self.words.get(key, _MISSING) for key in keys}

    def undo(self) -> None:
        for key, old in self.logs.pop().items():
            if old is _MISSING:
                self.words.pop(key, None)
            else:
                self.words[key] = old

    def merge(self, changes: Sequence[Log]) -> bool:
        """Joins what several paths wrote; whether anything is other than it was."""
        changed = False
        for key in set().union(*changes):
            now = self.words.get(key, _MISSING)
            words = [change.get(key, now) for change in changes]
            word = words[0]
            for other in words[1:]:
                if other is not word:
                    if _MISSING in (word, other):
                        self.lose(word, other)
                        word = None
                    else:
                        word = joined(self, word, other)
            word = None if word is _MISSING else word
            if word is not now and not (word == now and not isinstance(word, Foreign)):
                changed |= not (word is None and now is _MISSING)
                self.put(key, word)
        return changed


class Registers:
    """The registers of one moment: 16 of 64 bits, 32 of eight words, and the flags (carry, zero, sign, overflow)."""

    __slots__ = ("flags", "general", "vector")

    def __init__(self) -> None:
        self.general: list[Value] = [FOREIGN] * 16
        self.vector: list[tuple[Word, ...]] = [NOTHING] * 32
        self.flags: tuple[bool | None, ...] = (None,) * 4

    def copy(self) -> Registers:
        other = Registers.__new__(Registers)
        other.general, other.vector, other.flags = self.general[:], self.vector[:], self.flags
        return other

    def join(self, other: Registers, memory: Memory) -> bool:
        """Keeps what both agree on; whether anything is other than it was."""
        before = self.general, self.vector, self.flags
        self.general = [a if a is b else joined(memory, a, b) for a, b in zip(self.general, other.general, strict=True)]  # type: ignore[misc]
        if not all(map(operator.is_, self.vector, other.vector)):
            pairs = zip(self.vector, other.vector, strict=True)
            self.vector = [a if a is b else tuple(map(joined, repeat(memory), a, b)) for a, b in pairs]
        self.flags = tuple(a if a is b else None for a, b in zip(self.flags, other.flags, strict=True))
        return before != (self.general, self.vector, self.flags)


def tags(memory: Memory, address: Value, size: int) -> Iterator[object]:
    """What the words behind an address are parts of, in order."""
    if isinstance(address, int):
        for at in range(address & ~7, address + size, 8):
            for part in dict.fromkeys(items(memory.word(at))):
                if isinstance(part, Foreign) and part.tag is not None:
                    yield part.tag
