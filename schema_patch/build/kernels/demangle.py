"""A kernel's mangled name -> how its source writes it. By the C++ library that torch brings anyway."""

from __future__ import annotations

import ctypes
import re
from functools import cache

# What the SYCL compiler wraps around the name that its user wrote.
WRAPPED = (
    (re.compile(r"^typeinfo name for "), ""),
    (re.compile(r"\bsycl::_V1::detail::__pf_kernel_wrapper<(.*)>"), r"\1"),
    (re.compile(r"\b__sycl_kernel_"), ""),
    (re.compile(r"\bsycl::_V1::detail::half_impl::half\b"), "half"),
    (re.compile(r"\bsycl::_V1::"), "sycl::"),
    (re.compile(r"\(anonymous namespace\)::"), ""),
    (re.compile(r"^void (?=[^()]*<)"), ""),
    (re.compile(r"^.*\)(?: const)?::(?=\w+$|\w+<)"), ""),  # a name that is declared inside a function
)


@cache
def title(name: str) -> str:
    """The name itself where it is not mangled."""
    text = _demangled(name) or name
    for pattern, instead in WRAPPED:
        text = pattern.sub(instead, text)
    return _without_arguments(text) or name


def _demangled(name: str) -> str:
    library = ctypes.CDLL("libstdc++.so.6")
    library.__cxa_demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    place = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status)) if name.startswith("_Z") else None
    if not place:
        return ""
    text = ctypes.string_at(place).decode("ascii", "replace")
    ctypes.CDLL(None).free(ctypes.c_void_p(place))
    return text


def _without_arguments(text: str) -> str:
    """A function template's name ends in its arguments; a lambda's is left whole."""
    if not text.endswith(")") or "lambda" in text:
        return text
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if not depth:
            return text[:at]
    return text
