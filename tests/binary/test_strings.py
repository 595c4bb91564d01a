"""Texts that functions of C and of std::string put together: each is read as torch gets it, or said not to be known."""

from __future__ import annotations

from pathlib import Path

import pytest
import stable

from schema_patch.elf import reader
from schema_patch.schemas.grammar import parse

# How a text of two halves, "a" and "b", is made, of what stands in `s` or in the buffer `c`; each ends as one or the other.
WAYS = {
    "a copy": "std::string s(a b);",
    "part of one": 'std::string w("x" a b); std::string s(w, 1, std::string::npos);',
    "of so many characters": "std::string s(a b, sizeof(a b) - 1);",
    "of a range": "const char* w = a b; std::string s(w, w + sizeof(a b) - 1);",
    "of another": "std::string w(a b); std::string s(w);",
    "moved": "std::string w(a b); std::string s(std::move(w));",
    "assigned": "std::string s; s = a b;",
    "assigned a string": 'std::string w(a b), s("x"); s = w;',
    "assigned a part": "std::string s; s.assign(a b, sizeof(a b) - 1);",
    "moved into": 'std::string w(a b), s("x"); s = std::move(w);',
    "added": "std::string s(a); s += b;",
    "added a string": "std::string s(a), w(b); s += w;",
    "added so many": "std::string s(a); s.append(b, sizeof(b) - 1);",
    "a sum": "std::string s = std::string(a) + b;",
    "a character at a time": "std::string s(a); for (const char* w = b; *w; ++w) s += *w;",
    "pushed back": "std::string s(a); for (const char* w = b; *w; ++w) s.push_back(*w);",
    "repeated": "std::string s(a); s.append(1, b[0]); s += &b[1];",
    "inserted": "std::string s(b); s.insert(0, a);",
    "in place of another": 'std::string s("xyz" b); s.replace(0, 3, a);',
    "in place, so many": 'std::string s("xyz" b); s.replace(0, 3, a, sizeof(a) - 1);',
    "in place, one character": 'std::string s("xyz" a b); s.replace(0, 3, 1, 32);',
    "reserved": "std::string s(a); s.reserve(300); s += b;",
    "by its length": 'std::string w(a b "xyz"); std::string s(w.c_str(), w.size() - 3);',
    "by its end": 'std::string w(a b "xyz"); std::string s(w.data(), &*w.end() - 3);',
    "by an element": 'std::string w("xyz" a b); std::string s(&w[3]);',
    "copied": "char c[400]; memcpy(c, a, sizeof a); strcpy(c + sizeof(a) - 1, b);",
    "moved bytes": "char c[400]; memmove(c, a, sizeof a); memcpy(c + strlen(c), b, sizeof b);",
    "set": 'char c[400] = "xyz" a b; memset(c, 32, 3);',
}
HALVES = "{name}(Tensor input, ", "Tensor(a!) output, Tensor weight) -> Tensor(a!)"
UNKNOWN = {
    "a character at a time",
    "pushed back",
    "set",
}  # a loop whose end is a text's, and memset of eight bytes at once


def registrations() -> tuple[list[str], str]:
    """The words of C++ that give each text, and the functions in them."""
    made = []
    for n, way in enumerate(WAYS.values()):
        halves = f'#define a "{HALVES[0].format(name=f"way_{n}")}"\n#define b "{HALVES[1]}"'
        buffer = "char c[" in way
        what = f"static {way} return c;" if buffer else f"static std::string kept; {way} kept = s; return kept.c_str();"
        made.append(f"{halves}\nstatic const char* made_way_{n}() {{ {what} }}\n#undef a\n#undef b\n")
    return [f"made_way_{n}()" for n in range(len(WAYS))], "".join(made)


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_each_way_is_read_as_torch_gets_it(compiler: str, tmp_path: Path) -> None:
    words, more = registrations()
    library = stable.build(tmp_path / "lib.so", stable.source(words, f"#include <utility>\n{more}"), compiler, "-O2")
    (truth,) = stable.registered([library])
    facts = reader.read(library)
    read = {f"{stable.SPACE}::{parse(schema.text)}" for schema in facts.schemas}
    assert len(truth) == len(WAYS)
    assert read <= {*truth}
    known = {name for name, made in zip(WAYS, words, strict=True) if any(f"::{made[5:-2]}(" in text for text in read)}
    assert {*WAYS} - known <= UNKNOWN
    assert facts.unread
