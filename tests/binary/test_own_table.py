"""Operators that a table of one's own knows, in an installed library: `--table` of apply, strip and verify-schemas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sites
import stable
from stable import SCHEMAS

from schema_patch.commands import main
from schema_patch.elf import reader

OWN = """
namespaces = ["mylib"]

[operators.scale]
arguments = ["x", "factor", "out"]
writes = ["out"]
returns = "out"

[operators.swap]
arguments = ["left", "right"]
inplace = ["left", "right"]
returns = "nothing"

[operators.honest]
arguments = ["x"]
returns = "fresh"

[operators.kept]
arguments = ["x"]
returns = "private buffer"
"""
TEXTS = {
    "scale": "scale(Tensor x, float factor, Tensor out) -> Tensor",
    "swap": "swap(Tensor left, Tensor right) -> ()",
    "honest": "honest(Tensor x) -> Tensor",
    "kept": "kept(Tensor x) -> Tensor",
    "esimd_gemv_fp16": SCHEMAS["fp16"],  # the kit's table knows it in another namespace alone
}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    return stable.build(folder / "_C.so", stable.source(list(map(json.dumps, TEXTS.values())), space="mylib"))


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "mylib.toml"
    path.write_text(OWN)
    return str(path)


def texts(library: Path) -> dict[str, str]:
    return {found.schema.op: found.text for found in reader.read(library).schemas}


def test_operators_of_a_table_of_ones_own(
    own: Path, table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = sites.make(tmp_path / "site-packages", own)
    library = site / "custom/_C.so"
    before = sites.content(site)
    assert main.main(["apply", str(site)]) == 2  # without the table, nothing here is known
    assert sites.content(site) == before
    assert main.main(["apply", "--table", table, str(site)]) == 2
    told = capsys.readouterr()
    assert "kept: left as it is: no annotation makes it right" in told.err
    assert "2 operators changed" in told.err
    assert "5 operators: 2 right, 1 right, but not compilable without the guard, 1 wrong, 1 unknown" in told.out
    assert texts(library) == {
        **TEXTS, "scale": "scale(Tensor x, float factor, Tensor! out)->Tensor!", "swap": "swap(Tensor! left, Tensor! right)->()",
    }  # fmt: skip
    (registered,) = stable.registered([library])
    assert "mylib::swap(Tensor($0! -> ) left, Tensor($1! -> ) right) -> ()" in registered
    assert main.main_verify(["--table", table, "--require", "scale,swap,honest", str(site)]) == 1  # for `kept`
    assert main.main(["strip", "--table", table, str(site)]) == 0
    assert sites.written(library) == set()
    assert main.main(["revert", str(site)]) == 0
    assert sites.content(site) == before


def test_the_first_table_counts(own: Path, table: str, tmp_path: Path) -> None:
    library, first = tmp_path / "_C.so", tmp_path / "first.toml"
    library.write_bytes(own.read_bytes())
    first.write_text(
        'namespaces = ["mylib"]\n[operators.swap]\narguments = ["left", "right"]\nwrites = ["right"]\nreturns = "nothing"\n'
    )
    assert main.main(["apply", "--ops", "swap", "--table", str(first), "--table", table, str(library)]) == 0
    assert sites.written(library) == {"right"}


def test_a_table_that_is_none_changes_nothing(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library, table = tmp_path / "_C.so", tmp_path / "table.toml"
    library.write_bytes(own.read_bytes())
    for text, words in (
        ("[operators.swap]\n", "not an operator table"),
        (OWN.replace('"left", "right"]\nin', '"left"]\nin'), "'right' is none of its arguments left"),
    ):
        table.write_text(text)
        assert main.main(["apply", "--table", str(table), str(library)]) == 2
        assert words in capsys.readouterr().err
    assert library.read_bytes() == own.read_bytes()
