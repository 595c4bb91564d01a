"""What functions of C and of std::string do to text."""

from __future__ import annotations

import re
from collections.abc import Callable

from .machine import FOREIGN, IMAGE, Item, Value, mixed
from .run import Follower

Do = Callable[[Follower, int], Value]  # gives what it returns
Read = Callable[[Follower], list[Item] | None]
STRING = re.compile(r"_ZN(?P<const>K?)St7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE(?P<what>\w+)")
QUIET = re.compile(
    r"_Zd[la]Pv|_ZNSaIcE|_ZNSt(9|15__)new_allocatorIcE|free$|_ITM_|_ZNSt8ios_base4Init"
    r"|__cxa_(guard_release|begin_catch|end_catch|free_exception)"
)
ALLOCATES = re.compile(r"_Zn[wa]m|malloc$|__cxa_allocate_exception$")
LONGEST = 1 << 16  # of a text that is followed
SHORT = 15  # characters that a string holds in itself


def known(name: str) -> Do | None:
    """What the function of a name does, if it is here."""
    if name in LIBC:
        return LIBC[name]
    if ALLOCATES.match(name):
        return _allocates
    if QUIET.match(name):
        return quiet
    match = STRING.fullmatch(name)
    return next((do for pattern, do in STRINGS if pattern.fullmatch(match["what"])), None) if match else None


def _returns(value: Value) -> Do:
    return lambda f, _: value


quiet = _returns(FOREIGN)


def _allocates(f: Follower, _: int) -> Value:
    size = f.argument(0)
    return f.memory.allocate(size if isinstance(size, int) and size < 1 << 30 else LONGEST)


# C.


def _strlen(f: Follower, _: int) -> Value:
    parts = f.memory.text(f.argument(0))
    return FOREIGN if parts is None else len(parts)


def _fills(what: Callable[[Follower, int], list[Item]], size: Callable[[Follower], Value]) -> Do:
    """Puts so many bytes where the first argument says, and gives that back."""

    def do(f: Follower, _: int) -> Value:
        target, many = f.argument(0), size(f)
        if not isinstance(target, int):
            f.memory.store(target, 8, None)
        elif not isinstance(many, int) or many > 1 << 20:
            f.memory.forget(*f.memory.extent(target))
        elif target >= IMAGE:
            f.memory.put_bytes(target, what(f, many))
        return target

    return do


def _source(f: Follower, size: int) -> list[Item]:
    return _bytes(f, f.argument(1), size)


def _bytes(f: Follower, start: Value, size: int) -> list[Item]:
    return f.memory.bytes(start, size) if isinstance(start, int) and start >= IMAGE else [start and FOREIGN] * size


def _byte(f: Follower, size: int) -> list[Item]:
    value = f.argument(1)
    return [value & 255 if isinstance(value, int) else value and FOREIGN] * size


def _text_size(f: Follower) -> Value:
    parts = f.memory.text(f.argument(1))
    return None if parts is None else len(parts) + 1


_memcpy = _fills(_source, lambda f: f.argument(2))
COMPARE = frozenset({"memcmp", "bcmp", "strcmp", "strncmp"})
LIBC: dict[str, Do] = {
    **dict.fromkeys(COMPARE, quiet),
    "strlen": _strlen, "memcpy": _memcpy, "memmove": _memcpy, "__memcpy_chk": _memcpy, "__memmove_chk": _memcpy,
    "memset": _fills(_byte, lambda f: f.argument(2)), "strcpy": _fills(_source, _text_size),
    "__cxa_atexit": _returns(0), "__cxa_guard_acquire": _returns(1), "__cxa_finalize": _returns(0),
}  # fmt: skip


# std::string: where the characters are, how many, and 16 bytes of its own.


def string(f: Follower, address: Value) -> list[Item] | None:
    """The characters of a string; None where it is not known how many there are."""
    if not isinstance(address, int) or address < IMAGE:
        return None
    start, size = f.memory.load(address, 8), f.memory.load(address + 8, 8)
    if not isinstance(size, int) or size > LONGEST:
        return None
    if not isinstance(start, int) or not start >= IMAGE:
        return [None] * size
    return f.memory.bytes(start, size)


def _hold(f: Follower, address: Value, parts: list[Item] | None) -> None:
    """Makes a string of characters at an address."""
    if not isinstance(address, int) or address < IMAGE:
        f.memory.store(address if not isinstance(address, int) else FOREIGN, 8, None)
        return
    if parts is None:
        f.memory.forget(address, address + 32)
        return
    start = address + 16 if len(parts) <= SHORT else f.memory.allocate(len(parts) + 1)
    f.memory.store(address, 8, start)
    f.memory.store(address + 8, 8, len(parts))
    if len(parts) > SHORT:
        f.memory.store(address + 16, 8, len(parts))
    f.memory.put_bytes(start, [*parts, 0])


def _span(f: Follower, start: Value, size: Value) -> list[Item] | None:
    return _bytes(f, start, size) if isinstance(size, int) and size <= LONGEST else None


def _from(read: Read, *, adds: bool = False, gives: bool = False) -> Do:
    """A string made of what `read` finds, or with that added."""

    def do(f: Follower, _: int) -> Value:
        this, parts = f.argument(0), read(f)
        if adds:
            old = string(f, this)
            parts = None if old is None or parts is None else old + parts
        _hold(f, this, parts)
        return this if gives or adds else FOREIGN

    return do


# What strings are made of, from an argument on.


def _nothing(_: Follower) -> list[Item] | None:
    return []


def _c_string(n: int = 1) -> Read:
    return lambda f: f.memory.text(f.argument(n))


def _pair(n: int = 1) -> Read:
    return lambda f: _span(f, f.argument(n), f.argument(n + 1))


def _repeated(n: int = 1) -> Read:
    def read(f: Follower) -> list[Item] | None:
        size = f.argument(n)
        return _character(f, n + 1) * size if isinstance(size, int) and size <= LONGEST else None

    return read


def _character(f: Follower, n: int = 1) -> list[Item]:
    what = f.argument(n)
    return [what & 255 if isinstance(what, int) else None]


def _range(f: Follower) -> list[Item] | None:
    first, last = f.argument(1), f.argument(2)
    return _span(f, first, last - first) if isinstance(first, int) and isinstance(last, int) and last >= first else None


def _other(f: Follower) -> list[Item] | None:
    return string(f, f.argument(1))


def _part(f: Follower) -> list[Item] | None:
    whole, start, size = string(f, f.argument(1)), f.argument(2), f.argument(3)
    return (
        whole[start : start + size] if whole is not None and isinstance(start, int) and isinstance(size, int) else None
    )


def _replaces(read: Read, *, removes: bool = True) -> Do:
    """replace(start, count, …), or insert(start, …), and what is made of it."""

    def do(f: Follower, _: int) -> Value:
        this, start, count = f.argument(0), f.argument(1), f.argument(2) if removes else 0
        old, new = string(f, this), read(f)
        known = old is not None and new is not None and isinstance(start, int) and isinstance(count, int)
        _hold(f, this, [*old[:start], *new, *old[start + count :]] if known else None)  # type: ignore[index,misc,operator]
        return this

    return do


def _reserves(f: Follower, _: int) -> Value:
    """The same characters, perhaps elsewhere."""
    this, size = f.argument(0), f.argument(1)
    old = string(f, this)
    if isinstance(this, int) and this >= IMAGE:
        if old is None or not isinstance(size, int):
            f.memory.forget(this, this + 32)
        elif size > SHORT:
            start = f.memory.allocate(size + 1)
            f.memory.store(this, 8, start)
            f.memory.store(this + 16, 8, size)
            f.memory.put_bytes(start, [*old, 0])
    return FOREIGN


def _create(f: Follower, _: int) -> Value:
    """char* _M_create(size_t& capacity, size_t old): room for that many, and a NUL."""
    size = f.memory.load(f.argument(1), 8)
    return f.memory.allocate(size + 1 if isinstance(size, int) and size < LONGEST else LONGEST)


def _field(f: Follower, offset: int) -> Value:
    this = f.argument(0)
    return this + offset if isinstance(this, int) else this


def _gives(offset: int, *, loads: bool) -> Do:
    return lambda f, _: f.memory.load(_field(f, offset), 8) if loads else _field(f, offset)


def _keeps(offset: int) -> Do:
    def do(f: Follower, _: int) -> Value:
        f.memory.store(_field(f, offset), 8, f.argument(1))
        return FOREIGN

    return do


def _set_length(f: Follower, _: int) -> Value:
    f.memory.store(_field(f, 8), 8, f.argument(1))
    f.memory.store(_at(f, 0), 1, 0)
    return FOREIGN


def _behind(f: Follower, distance: Value) -> Value:
    start = f.memory.load(f.argument(0), 8)
    if isinstance(start, int) and isinstance(distance, int):
        return start + distance
    return mixed(f.memory, start, distance)


def _end(f: Follower, _: int) -> Value:
    return _behind(f, f.memory.load(_field(f, 8), 8) if isinstance(f.argument(0), int) else None)


def _at(f: Follower, _: int) -> Value:
    return _behind(f, f.argument(1))


def _moves(f: Follower, site: int) -> Value:
    """The other is empty afterwards, where it is known at all."""
    other = f.argument(1)
    this = _from(_other, gives=True)(f, site)
    _hold(f, other, [])
    return this


STRINGS: list[tuple[re.Pattern[str], Do]] = [
    (re.compile(pattern), do)
    for pattern, do in (
        (r"C[12]E(IS3_E)?PKcRKS3_|C[12]IS3_EEPKcRKS3_", _from(_c_string())),
        (r"C[12]EPKcmRKS3_", _from(_pair())),
        (r"C[12]ERKS4_", _from(_other)),
        (r"C[12]EOS4_", _moves),
        (r"C[12]E(v|RKS3_)", _from(_nothing)),
        (r"C[12]EmcRKS3_", _from(_repeated())),
        (r"C[12]ERKS4_mm", _from(_part)),
        (r"12_M_constructI(PKc|Pc|N9__gnu_cxx.*)EE?vT_.*", _from(_range)),
        (r"D[12]Ev|10_M_disposeEv|10_M_destroyEm", quiet),
        (r"9_M_createERmm", _create),
        (r"9_M_appendEPKcm|6appendEPKcm", _from(_pair(), adds=True)),
        (r"6appendEPKc|pLEPKc", _from(_c_string(), adds=True)),
        (r"6appendERKS4_|pLERKS4_", _from(_other, adds=True)),
        (r"6appendEmc", _from(_repeated(), adds=True)),
        (r"9push_backEc|pLEc", _from(_character, adds=True)),
        (r"9_M_assignERKS4_|6assignERKS4_|aSERKS4_", _from(_other, gives=True)),
        (r"6assignEOS4_|aSEOS4_", _moves),
        (r"6assignEPKc|aSEPKc", _from(_c_string(), gives=True)),
        (r"6assignEPKcm", _from(_pair(), gives=True)),
        (r"10_M_replaceEmmPKcm|7replaceEmmPKcm", _replaces(_pair(3))),
        (r"7replaceEmmPKc", _replaces(_c_string(3))),
        (r"14_M_replace_auxEmmmc|7replaceEmmmc", _replaces(_repeated(3))),
        (r"6insertEmPKc", _replaces(_c_string(2), removes=False)),
        (r"7reserveEm", _reserves),
        (r"5c_strEv|4dataEv|5beginEv|7_M_dataEv", _gives(0, loads=True)),
        (r"4sizeEv|6lengthEv", _gives(8, loads=True)),
        (r"13_M_local_dataEv", _gives(16, loads=False)),
        (r"16_M_get_allocatorEv|13get_allocatorEv", _gives(0, loads=False)),
        (r"7_M_dataEPc|12_Alloc_hiderC[12]EPcRKS3_|12_Alloc_hiderC[12]EPcOS3_", _keeps(0)),
        (r"9_M_lengthEm", _keeps(8)),
        (r"11_M_capacityEm", _keeps(16)),
        (r"13_M_set_lengthEm", _set_length),
        (r"3endEv", _end),
        (r"ixEm|2atEm", _at),
    )
]
