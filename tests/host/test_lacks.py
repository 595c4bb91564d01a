"""What a source lacks, in a line, from what g++ and clang++ say."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from esimd_ops.host import lacks

COMPILERS = [name for name in ("g++", "clang++", "clang++-19") if shutil.which(name)]


def said(tree: Path, compiler: str, text: str) -> str:
    source = tree / "csrc/a.cpp"
    source.parent.mkdir(exist_ok=True)
    source.write_text(text)
    done = subprocess.run([compiler, "-fsyntax-only", source], capture_output=True, text=True, check=False)
    return lacks.line(done.stderr, tree)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_missing_header_is_named(tmp_path: Path, compiler: str) -> None:
    found = said(tmp_path, compiler, '#include <string>\n#include "cute/tensor.hpp"\n')
    assert found == "csrc/a.cpp:2: needs the header cute/tensor.hpp, which is neither in the tree nor below -I"


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_first_error_is_at_its_place(tmp_path: Path, compiler: str) -> None:
    found = said(tmp_path, compiler, "int f() {\n  return a + 1;\n}\nint g() { return b; }\n")
    assert found.startswith("csrc/a.cpp:2: ")
    assert "'a'" in found
    assert found.endswith("(and 1 more errors)")


def test_a_compiler_that_says_nothing(tmp_path: Path) -> None:
    assert lacks.line("", tmp_path) == "the compiler ended and said nothing: most likely for want of memory"
    assert lacks.line("g++: fatal error: Killed signal terminated program cc1plus\n", tmp_path).startswith("g++: fatal")
