import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema_patch.model import Edit, Span
from schema_patch.text import edits


@st.composite
def edited(draw: st.DrawFn) -> tuple[bytes, list[Edit]]:
    source = draw(st.binary(max_size=60))
    points = sorted(draw(st.lists(st.integers(0, len(source)), max_size=8)))
    pairs = zip(points[::2], points[1::2], strict=False)
    made = [Edit(Span(start, end), draw(st.binary(max_size=4))) for start, end in pairs]
    return source, draw(st.permutations(made))


@given(edited())
def test_the_inverse_gives_the_source_back(case: tuple[bytes, list[Edit]]) -> None:
    source, made = case
    assert edits.apply(edits.apply(source, made), edits.inverse(source, made)) == source


@given(edited())
def test_bytes_outside_the_spans_survive(case: tuple[bytes, list[Edit]]) -> None:
    source, made = case
    removed = edits.apply(source, [Edit(e.span, b"") for e in made])
    undo = edits.inverse(source, made)
    assert edits.apply(edits.apply(source, made), [Edit(e.span, b"") for e in undo]) == removed


@pytest.mark.parametrize("spans", [[(0, 3), (2, 4)], [(0, 3), (1, 1)], [(4, 6)], [(3, 2)]])
def test_overlaps_and_strays_are_refused(spans: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="overlaps another or lies outside"):
        edits.apply(b"12345", [Edit(Span(*span), b"") for span in spans])
