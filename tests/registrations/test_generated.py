"""Generated libraries whose truth is torch's own registry: a small fixed set. All combinations: make test-registrations."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.importorskip("torch")
import libraries

# Each form once, and each compiler, level, linker and way to strip at least once.
CHOSEN = [
    ("literals", "g++", "-O2", "bfd", "sstrip"),
    ("tables", "g++", "-O2", "mold", "strip"),
    ("changed", "g++", "-O2", "gold", ""),
    ("helpers", "clang++", "-O0", "lld", "strip"),
    ("built", "clang++", "-O0", "bfd", ""),
    ("names", "clang++", "-O0", "gold", "sstrip"),
    ("stable", "clang++", "-O0", "mold", ""),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[libraries.Built]:
    folder = tmp_path_factory.mktemp("generated")
    compilers, linkers = libraries.available()
    assert (compilers, linkers) == (list(libraries.COMPILERS), list(libraries.LINKERS))  # CI installs them all
    return [
        one
        for form, compiler, level, linker, strip in CHOSEN
        for one in libraries.build(folder, [(form, 0, compiler, level)], [(linker, strip)])
    ]


def test_what_torch_registers_is_read_or_said_to_be_unknown(built: list[libraries.Built]) -> None:
    found = list(libraries.outcomes(built))
    assert {one.built.words: one.faults for one in found if one.faults} == {}
    share = {one.built.form: one.read / one.registered for one in found}
    assert {form for form, part in share.items() if part == 1} >= {"literals", "stable"}
    assert min(share.values()) < 1  # what is put together at run time is told, not guessed
    assert sum(one.read for one in found) / sum(one.registered for one in found) > 0.75
