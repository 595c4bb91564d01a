"""However the C++ spells a schema, the reader finds the same text, and an edit changes nothing but its place."""

from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import schemas, spelled

from schema_patch.cpp import literals, registrations
from schema_patch.model import Edit, Span
from schema_patch.schemas import annotate, grammar, table
from schema_patch.schemas.annotate import Returns
from schema_patch.source import patch
from schema_patch.text import edits
from schema_patch.text.files import SourceFile
from schema_patch.text.mapped import Unreadable

SETTINGS = settings(max_examples=300, deadline=None)
KNOWN = table.load()


def source(spelling: bytes, before: bytes = b"#include <x>\n", handle: str = "m", after: bytes = b"") -> bytes:
    block = f"TORCH_LIBRARY({KNOWN.namespaces[0]}, {handle}) {{\n  {handle}.def(".encode()
    return before + block + spelling + after + b");\n}\n"


@st.composite
def published(draw: st.DrawFn) -> str:
    """The schema of a known operator with no annotation, as the library shipped it."""
    name = draw(st.sampled_from(sorted(n for n, e in KNOWN.entries.items() if not e.namespaces)))
    entry = KNOWN.entries[name]
    blank = draw(st.sampled_from([", ", ",", ",  ", " , "]))
    args = blank.join(f"Tensor {a}" for a in entry.arguments)
    return f"{name}({args}) -> {'()' if entry.returns == 'nothing' else 'Tensor'}"


@SETTINGS
@given(schemas().flatmap(lambda text: st.tuples(st.just(text), spelled(text))), st.sampled_from(["m", "ops", "lib_"]))
def test_spelling_does_not_change_what_is_read(case: tuple[str, bytes], handle: str) -> None:
    text, spelling = case
    found = registrations.read(source(spelling, handle=handle, after=b", {at::Tag::pt2_compliant_tag}"), "a.cc")
    assert not found.problems
    assert [r.schema.text for r in found.registrations] == [text]


@SETTINGS
@given(
    published().flatmap(lambda text: st.tuples(st.just(text), spelled(text))),
    st.sampled_from(list(Returns)),
    st.binary(max_size=30),
)
def test_annotating_changes_only_the_schema(case: tuple[str, bytes], returns: Returns, noise: bytes) -> None:
    text, spelling = case
    op = text.split("(")[0]
    comment = b"/* " + noise.replace(b"*/", b"").replace(b"\0", b"").rstrip(b"*") + b" */\n"
    code = (
        source(spelling, before=comment)
        + f'TORCH_LIBRARY_IMPL({KNOWN.namespaces[0]}, XPU, m) {{ m.impl("{op}", &f); }}\n'.encode()
    )
    file = SourceFile("a.cc", None, code)  # type: ignore[arg-type]
    plan = patch.annotate_all([patch.examine(file, KNOWN)], KNOWN, returns)
    assert not plan.errors
    (planned,) = plan.files
    (change,) = planned.changes

    parsed = grammar.parse(text)
    effect = KNOWN.effect(parsed)
    assert effect
    assert change.after == annotate.apply(text, annotate.plan(parsed, effect, returns))
    assert grammar.parse(change.after).writes == effect.writes

    # What remains when the edited pieces are cut out of both is the same, byte for byte.
    undo = edits.inverse(code, planned.edits)
    assert cut(code, planned.edits) == cut(planned.new, undo)
    assert edits.apply(planned.new, undo) == code

    again = patch.annotate_all([patch.examine(SourceFile("a.cc", None, planned.new), KNOWN)], KNOWN, returns)  # type: ignore[arg-type]
    assert not again.files
    assert not again.errors


def cut(data: bytes, made: tuple[Edit, ...]) -> bytes:
    return edits.apply(data, [Edit(edit.span, b"") for edit in made])


@SETTINGS
@given(schemas().flatmap(lambda text: st.tuples(st.just(text), spelled(text))), st.data())
def test_each_character_knows_its_bytes(case: tuple[str, bytes], data: st.DataObject) -> None:
    text, spelling = case
    mapped = registrations.read(source(spelling), "a.cc").registrations[0].schema
    start = data.draw(st.integers(text.index("(") + 1, len(text)))
    end = data.draw(st.integers(start, len(text)))
    new = data.draw(st.sampled_from(["", "(a!)", "!", "()"]))
    code = edits.apply(source(spelling), mapped.edits(start, end, new))
    assert [r.schema.text for r in registrations.read(code, "a.cc").registrations] == [text[:start] + new + text[end:]]


@given(st.binary(max_size=300))
def test_no_bytes_crash_the_reader(noise: bytes) -> None:
    for code in (noise, b"TORCH_LIBRARY(x, m) { m.def(" + noise, source(noise)):
        registrations.read(code, "a.cc")


@SETTINGS
@given(schemas().flatmap(spelled), st.data())
def test_a_cut_file_is_never_read_as_whole(spelling: bytes, data: st.DataObject) -> None:
    code = source(spelling).rstrip()
    end = data.draw(st.integers(code.index(b"{") + 1, len(code) - 1))
    found = registrations.read(code[:end], "a.cc")
    assert any(problem.fatal for problem in found.problems)


@given(st.binary(max_size=40))
def test_no_literal_crashes_the_decoder(noise: bytes) -> None:
    try:
        mapped = literals.read(noise, [Span(0, len(noise))])
    except Unreadable:
        return
    assert len(mapped.text) == len(mapped.spans)
