"""The library as it lies in memory once the loader is done: constants, functions of others, decoded instructions."""

from __future__ import annotations

import re
import struct
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator
from functools import cached_property

from schema_patch.elf import dynamic
from schema_patch.elf.dynamic import Dynamic
from schema_patch.elf.layout import Bytes, Layout, text

from . import traced
from .instructions import END, PLAIN, Line, Step, decode
from .machine import IMAGE, IMPORTS, KERNEL, KERNEL_AT, Value

WORD = struct.Struct("<Q")
WEAK = 2  # STB_WEAK
ABSOLUTE = 1  # R_X86_64_64
IRELATIVE = 37  # R_X86_64_IRELATIVE: what a function gives that the loader calls
RELR, RELRSZ = 36, 35
INIT, INIT_ARRAY, INIT_ARRAYSZ = 12, 25, 27
VERSYM = 0x6FFFFFF0
REGISTRATIONS = ("aoti_torch_library_", "torch_library_", "_ZN5torch7Library", "_ZNR5torch7Library")
# Mangled names of torch's and C++'s namespaces: what a library defines of those comes from the headers that all share.
INLINE = re.compile(
    r"_Z(T[VIST]|G[VR]|Z)*(N[rVKRO]*)?(5torch|3c10|2at|6caffe2|9__gnu_cxx|8pybind11|3fmt|S[abdiost])|_ZT[IS]"
)
OF_C = ("GLIBC", "GCC_", "CXXABI_")  # how versions of C's and C++'s own libraries begin
LONGEST_NAME = 1 << 14
# What runs beside the code that is followed, or in its midst: it may write wherever it can come to, at any time.
BESIDE = frozenset(
    {
        "pthread_create", "thrd_create", "clone", "signal", "sigaction", "__sysv_signal", "setitimer", "timer_create",
        "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
    }
)  # fmt: skip


class Image:
    """Reads words and code by address; addresses of the file plus IMAGE. `traces`: bytes know where they stand."""

    def __init__(self, data: Bytes, layout: Layout, dyn: Dynamic, where: str, *, traces: bool = False) -> None:
        self.data, self.layout, self.dyn, self.where, self.traces = data, layout, dyn, where, traces
        self._steps: dict[int, Step] = {}
        self._lines: dict[int, Line] = {}
        self._read: dict[int, tuple[str, int]] = {}
        self._named: dict[tuple[str, ...], set[int]] = {}
        self._words: dict[int, Value] = {}
        self._fixed = sorted(layout.fixed)
        self._weak: set[str] = set()  # functions of others that may be missing
        self._odd: set[int] = set()  # words of which the loader makes something else than an address
        self._variables: set[int] = set()  # that hold addresses at first, unlike the loader's own slots

    def constant(self, address: int) -> Value:
        """The word at an address, if nobody writes there; None otherwise."""
        if not IMAGE <= address < IMAGE + (1 << 44):
            return None
        found = self._words.get(address, False)
        if found is False:
            found = self._words[address] = self._word(address - IMAGE)
        return found

    def _word(self, address: int) -> Value:
        symbol = self._symbols.get(address)
        fixed = any(start <= address < end for start, end in self._fixed)
        if symbol is not None:
            word = self._resolved(*symbol)
            told = fixed or address not in self._variables or word < IMAGE
            return word if told and self.name(word) not in self._weak else None
        if not fixed or address in self._odd:
            return None
        own = self._own(address)
        if own:
            return own
        raw = self.layout.constant(self.data, address, 8)
        if len(raw) < 8:  # the last bytes of a segment, or zeros that the file does not hold
            raw = b"".join(self.layout.constant(self.data, address + n, 1) or b"\0" for n in range(8))
        number = int(WORD.unpack(raw)[0])
        return traced.traced(number, range(address, address + 8)) if self.traces else number

    def _own(self, address: int) -> int:
        """The address that the loader puts there of the library itself; 0 for none."""
        starts, addends = self._relative
        index = bisect_left(starts, address)
        return IMAGE + addends[index] if index < len(starts) and starts[index] == address else 0

    def first(self, address: int) -> int:
        """The word at an address before any code runs, as far as it is an address; also of what may be missing."""
        symbol = self._symbols.get(address - IMAGE)
        return self._resolved(*symbol) if symbol else self._own(address - IMAGE)

    def _resolved(self, index: int, addend: int) -> int:
        value = self._symbol(index)[1]
        return IMAGE + value + addend if value else IMPORTS + 16 * index

    def name(self, address: int) -> str | None:
        """What the function of another library at an address is called."""
        if not IMPORTS <= address < IMAGE:
            return None
        if address == KERNEL_AT:
            return KERNEL
        return self._symbol(address - IMPORTS >> 4)[0]

    def _symbol(self, index: int) -> tuple[str, int]:
        """The name of a dynamic symbol, and its address, 0 where it is another library's."""
        if index not in self._read:
            self._read[index] = self._symbol_read(index)
        return self._read[index]

    def _symbol_read(self, index: int) -> tuple[str, int]:
        at, info, section, value = self._row(index)
        start, end = self.dyn.names
        name = text(self.data, start + at, min(end, start + at + LONGEST_NAME))
        if section == dynamic.UNDEFINED and info >> 4 == WEAK and not self._version(index).startswith(OF_C):
            self._weak.add(name)
        return name, value

    def _row(self, index: int) -> tuple[int, int, int, int]:
        """Of a dynamic symbol where its name is, what it is, its section, and its address."""
        if index >= len(self._rows):
            return 0, 0, dynamic.UNDEFINED, 0
        at, info, _, section, value, _ = self._rows[index]
        return at, info, section, 0 if section == dynamic.UNDEFINED else value

    @cached_property
    def _rows(self) -> list[tuple[int, ...]]:
        """The dynamic symbols that relocations name, and those before."""
        first = self.layout.offset(self.dyn.tags.get(dynamic.SYMTAB, 0), dynamic.SYMBOL.size) or len(self.data)
        count = 1 + max((index for index, _ in self._symbols.values()), default=-1)
        table = self.data[first : first + dynamic.SYMBOL.size * count]
        return list(dynamic.SYMBOL.iter_unpack(table[: len(table) - len(table) % dynamic.SYMBOL.size]))

    @cached_property
    def _tables(self) -> tuple[dict[int, tuple[int, int]], list[tuple[int, int]], list[int]]:
        """What the loader fills: slots of symbols, places of own addresses, functions that it asks for one."""
        symbols: dict[int, tuple[int, int]] = {}
        relative: list[tuple[int, int]] = []
        asked: list[int] = []
        for place, info, addend in dynamic.relocations(self.data, self.layout, self.dyn, self.where):
            kind = info & 0xFFFFFFFF
            if kind == dynamic.RELATIVE:
                relative.append((place, addend))
                if not place & 7:
                    continue
            elif kind == IRELATIVE:
                asked.append(addend)
            elif kind in (dynamic.GLOB_DAT, dynamic.JUMP_SLOT, ABSOLUTE):
                symbols[place] = (info >> 32, addend)
                if kind == ABSOLUTE:
                    self._variables.add(place)
            if place % 8 or kind not in (dynamic.RELATIVE, dynamic.GLOB_DAT, dynamic.JUMP_SLOT, ABSOLUTE):
                self._odd |= {place & ~7, place + 7 & ~7}
        return symbols, sorted([*relative, *self._packed()]), asked

    @property
    def _symbols(self) -> dict[int, tuple[int, int]]:
        return self._tables[0]

    @cached_property
    def _relative(self) -> tuple[array[int], array[int]]:
        rows = self._tables[1]
        rows[:] = [row for row in rows if 0 <= row[0] < 1 << 63 and 0 <= row[1] < 1 << 63]  # others are damage
        found = array("q", [place for place, _ in rows]), array("q", [addend for _, addend in rows])
        rows.clear()
        return found

    def _packed(self) -> Iterator[tuple[int, int]]:
        """Relocations that linkers pack: an address, or 63 bits for the words behind the last."""
        table = self.layout.constant(self.data, self.dyn.tags.get(RELR, 0), self.dyn.tags.get(RELRSZ, 0))
        at = 0
        for (row,) in WORD.iter_unpack(table[: len(table) & ~7]) if RELR in self.dyn.tags else ():
            if not row & 1:
                places = [row]
                at = row + 8
            else:
                places = [at + 8 * n for n in range(63) if row >> n + 1 & 1]
                at += 63 * 8
            for place in places:
                raw = self.layout.constant(self.data, place, 8)
                if len(raw) == 8:
                    yield place, WORD.unpack(raw)[0]

    def addresses(self) -> Iterator[tuple[int, int]]:
        """Where the loader puts addresses of the library itself, and which."""
        yield from zip(*self._relative, strict=True)
        for place, (index, addend) in self._symbols.items():
            value = self._symbol(index)[1]
            if value:
                yield place, value + addend

    def is_of_c(self, name: str) -> bool:
        """Whether a function of others is asked for in a version of C's or C++'s own libraries."""
        indices = {self._symbols[place][0] for place in self._places.get(name, ())}
        return bool(indices) and all(self._version(index).startswith(OF_C) for index in indices)

    def _version(self, index: int) -> str:
        """The version in which a dynamic symbol is asked for; empty where none is."""
        table = self.dyn.tags.get(VERSYM, 0)
        raw = self.layout.constant(self.data, table + 2 * index, 2) if table else b""
        return self.dyn.numbered.get(int.from_bytes(raw, "little") & 0x7FFF, "")

    def started(self) -> set[int]:
        """The functions that the loader calls, before anybody has the library, and those that Python calls first."""
        first = self.dyn.tags.get(INIT_ARRAY, 0)
        last = first + self.dyn.tags.get(INIT_ARRAYSZ, 0)
        places, addresses = self._relative
        found = {*addresses[bisect_left(places, first) : bisect_left(places, last)]}
        named = (row for place, row in self._symbols.items() if first <= place < last)
        found |= {self._symbol(index)[1] + addend for index, addend in named if self._symbol(index)[1]}
        found |= {self.dyn.tags[INIT]} if INIT in self.dyn.tags else set()
        return found | self.own(("PyInit_",)) | {*self._tables[2]}

    def was_read(self, place: int) -> bool:
        """Whether code that was followed read the word at a place of the file."""
        return IMAGE + place in self._words

    def own(self, begins: tuple[str, ...]) -> set[int]:
        """The addresses of functions of the library itself whose names begin so."""
        if begins not in self._named:
            names, rows = self._exported
            prefixes = tuple(name.encode() for name in begins)
            self._named[begins] = {value for at, value, _ in rows if names.startswith(prefixes, at)}
        return self._named[begins]

    @cached_property
    def _exported(self) -> tuple[bytes, list[tuple[int, int, int]]]:
        return dynamic.exported(self.data, self.layout, self.dyn, self.where)

    def relied(self, entered: Collection[int]) -> set[str]:
        """The names by which what was followed is found: functions that were entered, data, torch's registration."""
        found = {self._symbol(self._symbols[place][0]) for place in self.slots(REGISTRATIONS)}
        names = set[str]()
        for value, places in self.inner_slots.items():
            data = any(map(self.was_read, places)) and not any(part.holds(value) for part in self.layout.code)
            if data or IMAGE + value in entered:
                names |= {self._symbol(self._symbols[place][0])[0] for place in places}
        return {name for name, value in found if not value} | {name for name in names if not INLINE.match(name)}

    @property
    def filled(self) -> Collection[int]:
        """Where the loader puts addresses by their names."""
        return self._symbols.keys()

    def slots(self, begins: tuple[str, ...]) -> list[int]:
        """Where the addresses of functions are kept whose names begin so, the library's own among them."""
        found = [place for name, places in self._places.items() if name.startswith(begins) for place in places]
        return found + [place for address in self.own(begins) for place in self.inner_slots.get(address, ())]

    def imports(self, names: Collection[str]) -> bool:
        """Whether the library needs one of some functions of others."""
        return not self._places.keys().isdisjoint(names)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """The slots of each function of others."""
        found: dict[str, list[int]] = {}
        for place, (index, _) in self._symbols.items():
            if not self._row(index)[3]:
                found.setdefault(self._symbol(index)[0], []).append(place)
        return found

    @cached_property
    def inner_slots(self) -> dict[int, list[int]]:
        """Of each function of the library itself that is reached through slots, these."""
        found: dict[int, list[int]] = {}
        for place, (index, addend) in self._symbols.items():
            value = self._row(index)[3]
            if value:
                found.setdefault(value + addend, []).append(place)
        return found

    @property
    def decoded(self) -> int:
        """How many instructions were looked at."""
        return len(self._steps)

    def step(self, address: int) -> Step:
        found = self._steps.get(address)
        if found is None:
            found = self._steps[address] = self._decoded(address)
        return found

    def line(self, address: int) -> Line:
        """The instructions from an address on up to one that may lead elsewhere."""
        found = self._lines.get(address)
        if found is None:
            acts, count, step = [], 0, self.step(address)
            while step.kind == PLAIN:
                count += 1
                if step.act:
                    acts.append(step.act)
                step = self.step(step.next)
            found = self._lines[address] = Line(step.address, count, tuple(acts))
        return found

    def _decoded(self, address: int) -> Step:
        for part in self.layout.code:
            at = address - IMAGE - part.address + part.start
            if part.start <= at < part.end:
                return decode(self.data[at : min(at + 15, part.end)], address, traces=self.traces)
        return Step(address, address, END)
