"""Functions by which a library that is loaded may become another than its file: constants that are made writable,
functions that are found by name, libraries that are loaded. With which arguments they do none of that, is told here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from .machine import KERNEL, Value

if TYPE_CHECKING:
    from .run import Follower

UNLOCKS = "the library may make its own constants writable when it is loaded"
FINDS = "the library finds functions by names that are not known when it is loaded"
UNTOLD = "the library calls the kernel or the loader when it is loaded, for what is not known"
LOADS = "the library loads another one when it is loaded"
TOO_MUCH = "the library runs more code when it is loaded than is looked through"
MEMORY = b"/self/mem"  # the file by which a process writes where it may not
FIXED = 0x10  # MAP_FIXED, and MREMAP_FIXED shifted
# Numbers of x86-64's calls: mmap, mprotect, mremap, remap_file_pages, process_vm_writev, pkey_mprotect.
WRITING = frozenset({9, 10, 25, 216, 311, 329})
OF_TORCH = re.compile(r"_Z|aoti_|torch_")
PLATFORM = re.compile(r"lib(c|m|dl|rt|pthread|gomp|iomp5|cuda|cudart|nv\w*|cu\w+|ze_\w+|OpenCL|numa|mkl_\w+)\.so[.\d]*")
WORD = 64  # characters of a name at most


def _unlocks(f: Follower) -> str:
    return UNLOCKS


def _maps(f: Follower) -> str:
    """mmap(address, size, protection, flags, …): elsewhere than asked, but for one flag."""
    flags = f.argument(3)
    return "" if f.argument(0) == 0 or (isinstance(flags, int) and not flags & FIXED) else UNLOCKS


def _moves(f: Follower) -> str:
    """mremap(old, size, size, flags, new)"""
    flags = f.argument(3)
    return "" if isinstance(flags, int) and not flags & 2 else UNLOCKS


def _asks(number: Callable[[Follower], Value]) -> Callable[[Follower], str]:
    def harm(f: Follower) -> str:
        asked = number(f)
        return "" if isinstance(asked, int) and asked & 0xFFFFFFFF not in WRITING else UNLOCKS

    return harm


def _rax(f: Follower) -> Value:
    return f.registers.general[0]


def _finds(f: Follower) -> str:
    """dlsym(library, name)"""
    name = _text(f, f.argument(1))
    return FINDS if name is None or name in EFFECTS or OF_TORCH.match(name) else ""


def _loads(f: Follower) -> str:
    """dlopen(name, flags); without a name, what is loaded already."""
    name = _text(f, f.argument(0))
    known = f.argument(0) == 0 or (name is not None and PLATFORM.fullmatch(name.rpartition("/")[2]))
    return "" if known else LOADS


def _text(f: Follower, address: Value) -> str | None:
    parts = f.memory.text(address, WORD)
    return None if parts is None else bytes(parts).decode("latin-1")  # type: ignore[arg-type]


WRITABLE = frozenset({"mprotect", "pkey_mprotect", "remap_file_pages", "process_vm_writev"})
EFFECTS: dict[str, Callable[[Follower], str]] = {
    **dict.fromkeys(WRITABLE, _unlocks),
    **dict.fromkeys(("mmap", "mmap64"), _maps),
    "mremap": _moves,
    "syscall": _asks(lambda f: f.argument(0)),
    KERNEL: _asks(_rax),
    **dict.fromkeys(("dlsym", "dlvsym"), _finds),
    "dlopen": _loads,
    "dlmopen": lambda f: LOADS,
}
TWICE = frozenset({"setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp", "getcontext", "vfork"})
