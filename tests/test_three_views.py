"""The operators of csrc, seen as source, as binary and as torch registers them, are the same and what the table says."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from esimd_ops import native
from schema_patch.commands import main
from schema_patch.elf import reader
from schema_patch.model import Verdict
from schema_patch.schemas import grammar, table
from schema_patch.source import patch
from schema_patch.text.files import SourceFile

ROOT = Path(__file__).parent.parent
REGISTRATION = runpy.run_path(str(ROOT / "csrc/registration.py"))["text"](ROOT).encode()
KNOWN = table.load()


def source() -> dict[str, grammar.Schema]:
    unit = patch.examine(SourceFile("registration.cpp", Path("registration.cpp"), REGISTRATION), KNOWN)
    assert not unit.findings
    assert not unit.errors
    assert all(operator.judgement.verdict is Verdict.RIGHT for operator in unit.operators)
    return {operator.schema.op: operator.schema for operator in unit.operators}


def test_source_binary_and_registry_agree() -> None:
    ours = source()
    assert set(ours) == set(KNOWN.entries)
    binary = {found.schema.op: found.schema for found in reader.read(str(native.library_path())).schemas}
    assert binary == ours

    program = (
        "import torch; from esimd_ops import native; native.load()\n"
        "for s in torch._C._jit_get_all_schemas():\n"
        "    if s.name.startswith('esimd_ops::'): print(s)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    registered = {s.op: s for s in map(grammar.parse, done.stdout.splitlines())}
    assert set(registered) == set(ours)
    for op, expected in ours.items():
        effect = KNOWN.effect(expected)
        assert effect
        assert registered[op].namespace == "esimd_ops"
        assert registered[op].args == expected.args
        assert registered[op].returns == expected.returns == ()
        assert expected.writes == effect.writes


def test_strip_then_apply_gives_back_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(ROOT / "csrc", tmp_path / "csrc")
    (tmp_path / "csrc" / "registration.cpp").write_bytes(REGISTRATION)
    before = {path: path.read_bytes() for path in (tmp_path / "csrc").rglob("*") if path.is_file()}
    assert main.main(["strip", str(tmp_path / "csrc")]) == 0
    assert main.main(["check", str(tmp_path / "csrc")]) == 1
    stripped = (tmp_path / "csrc" / "registration.cpp").read_bytes()
    assert stripped != before[tmp_path / "csrc" / "registration.cpp"]
    assert b"!)" not in stripped
    for style in ("alias", "void"):
        assert main.main(["apply", "--returns", style, str(tmp_path / "csrc")]) == 0
        assert {path: path.read_bytes() for path in before} == before
        assert main.main(["strip", str(tmp_path / "csrc")]) == 0
    capsys.readouterr()


def test_the_patient_is_as_published() -> None:
    """Every operator of the patient has the published schema, and csrc has the same operators."""
    operators = {}
    for path in sorted((ROOT / "examples" / "as_shipped" / "csrc").glob("*.cc")):
        for operator in patch.examine(SourceFile(path.name, path, path.read_bytes()), KNOWN).operators:
            operators[operator.schema.op] = operator
    assert set(operators) == set(source())
    for op, operator in operators.items():
        assert tuple(a.name for a in operator.schema.args) == KNOWN.entries[op].arguments
    wrong = {op for op, operator in operators.items() if operator.judgement.verdict is Verdict.WRONG}
    assert len(wrong) == 37
    assert wrong == {op for op, operator in operators.items() if not operator.schema.writes}
    assert {op for op in operators if KNOWN.entries[op].published} < wrong
