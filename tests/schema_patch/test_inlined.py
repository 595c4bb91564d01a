"""Schemas that g++ keeps in code: every one that it compiles in must be read back, and no other."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest
from elf_files import ALIAS, OTHER, VOID

from schema_patch.elf import reader
from schema_patch.schemas import table
from schema_patch.schemas.grammar import parse
from schema_patch.verify import judge

SOURCE = """
#include <string>
namespace torch { namespace jit { int parseSchema(const std::string&, bool); } }
struct Library {};
void add(Library&, int);
template <class T> inline __attribute__((always_inline)) void def(Library& m, T&& text) {
  add(m, torch::jit::parseSchema(std::string(text), true));
}
void init(Library& m) {
%s
}
"""


def schemas() -> list[str]:
    """One for each operator of the table, and one for each length from 18 to 140."""
    known = [
        f"{name}({', '.join(f'Tensor {argument}' for argument in entry.arguments)}) -> Tensor"
        for name, entry in table.load().entries.items()
    ]
    letters = random.Random(0)
    lengths = [f"f{''.join(letters.choices('abcdefgh_', k=n))}(Tensor a) -> Tensor" for n in range(120)]
    return [*known, *lengths, VOID, ALIAS, OTHER]


def built(folder: Path, texts: list[str], *flags: str) -> Path:
    (folder / "x.cpp").write_text(SOURCE % "\n".join(f"  def(m, {json.dumps(text)});" for text in texts))
    subprocess.run(["g++", "-shared", "-fPIC", *flags, folder / "x.cpp", "-o", folder / "x.so"], check=True)
    return folder / "x.so"


@pytest.mark.parametrize(
    "flags",
    ["-O0 -std=c++20", "-O2 -std=c++17", "-O2 -std=c++20", "-O3 -std=c++17", "-O3 -std=c++20", "-O3 -std=c++20 -fno-plt",
     "-O2 -std=c++20 -fcf-protection -fstack-protector-strong", "-O2 -std=c++20 -march=haswell", "-O2 -std=c++20 -march=x86-64-v4",
     "-O3 -std=c++20 -march=sapphirerapids -mprefer-vector-width=512", "-Os -std=c++20",
     "-O2 -std=c++20 -s", "-O2 -std=c++20 -Wl,-z,noseparate-code"],
)  # fmt: skip
def test_every_schema_is_read_back(tmp_path: Path, flags: str) -> None:
    texts = schemas()
    facts = reader.read(built(tmp_path, texts, *flags.split()))
    found = facts.schemas
    tails = {text for text in texts if any(other != text and other.endswith(text) for other in texts)}
    assert {schema.text for schema in found} - set(texts) == set()
    missed = set(texts) - {schema.text for schema in found} - tails
    assert len(missed) <= (len(texts) // 50 if "march" in flags else 0)  # AVX: see inlined.py
    assert facts.unread >= len(missed)  # and none in silence
    if "-O2 -std=c++20" in flags:  # or the test would test nothing
        assert sum(schema.section == "code" for schema in found) > 50


def test_torchs_own_registration_is_read_back(tmp_path: Path) -> None:
    """The real macro and the real header; torch itself says what was registered."""
    torch = pytest.importorskip("torch")
    from torch.utils import cpp_extension

    texts = [text for text in schemas() if len(text) < 200][::6]
    source = "#include <torch/library.h>\nTORCH_LIBRARY(inlined_test, m) {\n%s\n}\n"
    (tmp_path / "x.cpp").write_text(source % "\n".join(f"  m.def({json.dumps(text)});" for text in texts))
    include = [f"-I{path}" for path in cpp_extension.include_paths()]
    link = [*(f"-L{path}" for path in cpp_extension.library_paths()), "-ltorch_cpu", "-lc10"]
    command = [
        "g++",
        "-O2",
        "-std=c++20",
        "-shared",
        "-fPIC",
        *include,
        tmp_path / "x.cpp",
        *link,
        "-o",
        tmp_path / "x.so",
    ]
    subprocess.run(command, check=True)
    torch.ops.load_library(str(tmp_path / "x.so"))
    registered = [s for s in torch._C._jit_get_all_schemas() if s.name.startswith("inlined_test::")]
    assert len(registered) == len(texts)
    found = reader.read(tmp_path / "x.so").schemas
    assert {str(s.schema) for s in found} == {str(parse(str(s))).removeprefix("inlined_test::") for s in registered}


def test_a_schema_that_is_put_together_at_run_time_is_missed_loudly(tmp_path: Path) -> None:
    source = (
        SOURCE
        % f"""
  def(m, {json.dumps(VOID)});
  def(m, {json.dumps(OTHER)});
  std::string text("other_op(Tensor"); text += m_name; text += " x) -> Tensor"; def(m, text);"""
    )
    source = source.replace("void init", "extern const char *m_name; void init")
    (tmp_path / "x.cpp").write_text(source)
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-O2", "-std=c++20", tmp_path / "x.cpp", "-o", tmp_path / "x.so"], check=True
    )
    facts = reader.read(tmp_path / "x.so")
    assert {s.text for s in facts.schemas} == {VOID, OTHER}
    assert facts.unread == 1
    report = judge.check([facts], table.load(), sycl="8")
    assert report.exit_code == 2
    assert "1 more calls take a schema than schemas were found" in report.errors[0].message
