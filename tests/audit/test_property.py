"""Random programs of pointers: what the inference says is written is what running them would write."""

from __future__ import annotations

import tempfile
from pathlib import Path

import trees
from hypothesis import given, settings
from hypothesis import strategies as st

HELPERS = """
struct Box { float* first; float* second; };
void put(float* p, int n) { p[n] = 1; }
float look(const float* p) { return *p; }
float* same(float* p) { return p; }
void through(Box& box, float* p) { box.second = p; }
"""
STEPS = ("copy", "offset", "call", "box", "array", "store", "put", "look", "replace")


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, set[str]]:
    """The body of a function of two tensors, and which of them it writes."""
    variables = {"p": "a", "q": "b"}  # pointer -> whose data it leads to
    lines = ["float* p = a.data_ptr<float>();", "float* q = b.data_ptr<float>();"]
    written: set[str] = set()
    for number in range(draw(st.integers(1, 9))):
        step, source = draw(st.sampled_from(STEPS)), draw(st.sampled_from(sorted(variables)))
        other = draw(st.sampled_from(sorted(variables)))
        new = f"v{number}"
        if step == "replace":
            lines.append(f"{other} = {source};")
            variables[other] = variables[source]
        elif step == "store":
            lines.append(f"{source}[{number}] = look({other});")
            written.add(variables[source])
        elif step == "put":
            lines.append(f"put({source}, {number});")
            written.add(variables[source])
        elif step == "look":
            lines.append(f"float f{number} = look({source});")
        else:
            made = {
                "copy": f"auto {new} = {source};",
                "offset": f"float* {new} = reinterpret_cast<float*>({source}) + {number};",
                "call": f"auto* {new} = same({source});",
                "box": f"Box b{number}; through(b{number}, {source}); b{number}.first = {other}; float* {new} = b{number}.second;",
                "array": f"float* t{number}[2] = {{{source}, {source}}}; float* {new} = t{number}[1];",
            }
            lines.append(made[step])
            variables[new] = variables[source]
    return "\n  ".join(lines), written


@settings(max_examples=60, deadline=None)
@given(programs())
def test_what_is_inferred_is_what_is_written(program: tuple[str, set[str]]) -> None:
    body, written = program
    with tempfile.TemporaryDirectory() as folder:
        code = f"{HELPERS}\nvoid op(at::Tensor a, at::Tensor b) {{\n  {body}\n}}"
        found = trees.answers(Path(folder), code)
    assert {name for name, answer in found.items() if answer == "written"} == written
    assert "unknown" not in {answer for name, answer in found.items() if name in written}
