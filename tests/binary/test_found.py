"""Files on which the fuzzer has found a crash, or the reader slow: read, and where it is a library rewritten, to an end."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
READER = runpy.run_path(str(FUZZ / "reader.py"))


@pytest.mark.parametrize("file", sorted((FUZZ / "found").iterdir()), ids=lambda file: file.name)
def test_a_file_that_was_found_comes_to_an_end(file: Path) -> None:
    assert READER["check"](file.read_bytes())[0] == 2
    READER["rewritten"](file.read_bytes())
