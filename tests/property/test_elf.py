"""Damaged libraries: cut or with one bit turned, they raise nothing but ToolError and never pass."""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "schema_patch"))
from elf_files import OTHER, VOID, build, sstrip

from schema_patch.elf import reader
from schema_patch.model import Report, ToolError
from schema_patch.verify import survey

OP = "esimd_gemv_int4"
RESADD = "esimd_norm_add_norm(Tensor h2_raw, Tensor(a!) h1, Tensor w1, Tensor w2, Tensor(b!) out, float eps1, float eps2) -> ()"
SETTINGS = settings(max_examples=300, deadline=None)


@pytest.fixture(scope="module", params=["whole", "stripped", "sstripped"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    flags = ("-s",) if request.param != "whole" else ()
    texts = [OTHER, VOID, RESADD]
    path = build(tmp_path_factory.mktemp("damaged"), texts, needed=("libsycl.so.8",), flags=flags)
    if request.param == "sstripped":
        sstrip(path, cut=True)
    return path.read_bytes()


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "x.so"


def verified(place: Path, data: bytes) -> Report:
    place.write_bytes(data)
    return survey.survey([str(place)], require=(OP, "esimd_norm_add_norm"))


def turned(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_undamaged_it_is_clean(library: bytes, place: Path) -> None:
    assert verified(place, library).exit_code == 0


@SETTINGS
@given(data=st.data())
def test_cut_anywhere_it_is_an_error(library: bytes, place: Path, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, len(library) - 1))
    report = verified(place, library[:size])
    assert report.exit_code == 2
    assert len(report.errors) == 1


@SETTINGS
@given(data=st.data())
def test_a_turned_bit_never_crashes(library: bytes, place: Path, data: st.DataObject) -> None:
    headers = st.integers(0, 64 * 8 + 56 * 8 * 12)
    tail = st.integers(max(0, len(library) * 8 - 64 * 8 * 40), len(library) * 8 - 1)
    bit = data.draw(st.one_of(headers, tail, st.integers(0, len(library) * 8 - 1)))
    place.write_bytes(turned(library, bit))
    with contextlib.suppress(ToolError):
        assert reader.read(place).size == len(library)


@pytest.mark.parametrize("text", [VOID, RESADD])
def test_a_turned_bit_in_a_required_schema_is_never_clean(library: bytes, place: Path, text: str) -> None:
    start = library.index(text.encode())
    damaged = [turned(library, bit) for bit in range(start * 8, (start + len(text)) * 8)]
    clean = [data[start : start + len(text)].decode() for data in damaged if verified(place, data).exit_code == 0]
    # The letter of an alias set may be any; all else changes what is declared.
    assert {re.sub(r"\(\w!\)", "(_!)", other) for other in clean} <= {re.sub(r"\(\w!\)", "(_!)", text)}
    assert len(clean) < 20


@SETTINGS
@given(noise=st.binary(max_size=300), head=st.booleans())
def test_noise_is_refused(place: Path, noise: bytes, head: bool) -> None:
    place.write_bytes((b"\x7fELF\x02\x01\x01" if head else b"") + noise)
    with pytest.raises(ToolError):
        reader.read(place)
