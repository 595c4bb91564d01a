"""Generated libraries whose truth is torch's own registry: a small fixed set. All combinations: make test-registrations."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.importorskip("torch")
import libraries

from schema_patch.commands import main
from schema_patch.model import Verdict
from schema_patch.schemas import annotate, rules
from schema_patch.schemas.grammar import Schema, parse
from schema_patch.schemas.table import load

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
    assert sum(one.read for one in found) / sum(one.registered for one in found) > 0.7


def bare(text: str) -> Schema:
    """A schema without its annotations."""
    found = parse(text)
    return parse(annotate.apply(found.text, annotate.strip(found)))


def test_what_is_read_is_rewritten_in_place_and_torch_registers_that(
    built: list[libraries.Built], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copies = [replace(one, path=tmp_path / one.path.name) for one in built]
    originals = {one.path: shutil.copy(old.path, one.path).read_bytes() for one, old in zip(copies, built, strict=True)}
    before = libraries.registered(copies)
    assert main.main(["apply", *map(str, originals)]) in (0, 2)
    told = capsys.readouterr().err
    changed = 0
    for path, now in libraries.registered(copies).items():
        was = {parse(text).op: text for text in before[path]}
        assert {parse(text).op: bare(text) for text in now} == {op: bare(text) for op, text in was.items()}
        for text in now:
            schema = parse(text)
            changed += text != was[schema.op]
            if rules.judge(schema, load().effect(schema)).verdict is Verdict.WRONG:
                assert (
                    f"{path}: error: {schema.op}: left as it is" in told or f"{path}: error: could not verify" in told
                )
                assert text == was[schema.op]
    assert changed > 12
    assert main.main(["revert", str(tmp_path)]) == 0
    assert {path: path.read_bytes() for path in originals} == originals
