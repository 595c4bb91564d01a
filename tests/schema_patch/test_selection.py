"""What a name in --ops means, wherever it is typed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema_patch.commands import main
from schema_patch.schemas.selection import ALL, Selection

NAMES = st.from_regex(r"[a-z_]\w{0,6}", fullmatch=True)
SPACES = st.none() | NAMES


@given(st.lists(st.tuples(SPACES, NAMES, SPACES), min_size=1, max_size=5), st.tuples(SPACES, NAMES))
def test_a_name_means_every_operator_that_it_can_be(asked: list[tuple], there: tuple[str | None, str]) -> None:
    words = [(f"{s}::" if s else "") + op + (f".{overload}" if overload else "") for s, op, overload in asked]
    for spelled in (words, [",".join(words)], [" , ".join(words)]):
        chosen = Selection.of(spelled)
        space, op = there
        fits = [
            name for (s, o, _), name in zip(asked, words, strict=True) if o == op and (not s or not space or s == space)
        ]
        assert chosen.takes(op, space) == bool(fits)
        assert set(chosen.missing([(space, op)])) == set(words) - set(fits)


def test_no_name_means_all() -> None:
    assert ALL.takes("op", "ns")
    assert not ALL.missing([])


@pytest.mark.parametrize("word", ["a::b::c", "a(", "::op", "op.", "-"])
def test_what_is_no_name_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="expected the name of an operator"):
        Selection.of([word])


SOURCE = """
TORCH_LIBRARY_FRAGMENT({space}, m) {{
  m.def("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor");
}}
"""


@pytest.mark.parametrize("command", ["check", "apply", "strip"])
def test_a_qualified_name_is_that_of_one_namespace(command: str, tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.cc").write_text(SOURCE.format(space="esimd_ops") + SOURCE.format(space="custom_esimd_kernels"))
    before = (tmp_path / "a.cc").read_text()
    assert main.main([command, "--ops", "no_such::esimd_rms_norm", str(tmp_path)]) == (0 if command == "strip" else 2)
    assert (tmp_path / "a.cc").read_text() == before
    code = main.main([command, "--ops", "esimd_ops::esimd_rms_norm", str(tmp_path)])
    assert code == {"check": 1, "apply": 0, "strip": 0}[command]
    after = (tmp_path / "a.cc").read_text()
    assert after.count("Tensor(a!) output") == (1 if command == "apply" else 0)
    assert after.index("custom_esimd_kernels") > after.find("(a!)")
