"""Generated schemas, C++ literals and registration files."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = st.sampled_from(["x", "output", "o0", "residual", "weight_scale", "K", "_t", "a1", "out", "self"])
LETTERS = st.sampled_from(["a", "b", "c", "a0", "word", "z"])


@st.composite
def annotations(draw: st.DrawFn) -> str:
    form = draw(st.integers(0, 6))
    one, two = draw(LETTERS), draw(LETTERS)
    return [
        "", "", "!", f"({one}!)", f"({one})", f"({one} -> *)", f"({one}|{two}!)",
    ][form]  # fmt: skip


@st.composite
def tensor_types(draw: st.DrawFn) -> str:
    annotation = draw(annotations())
    suffix = draw(st.sampled_from(["", "", "", "?", "[]", "[]?", "?[]", "[3]"]))
    return f"Tensor{annotation}{suffix}"


PLAIN = st.sampled_from(
    ["int", "SymInt", "float", "bool", "str", "Scalar", "ScalarType", "Device?", "int[2]", "int[]", "SymInt[2]?", "(int, int)?",
     "(int, Tensor)", "Dict(str, Tensor)", "Generator?", "t", "Any", "float[]?", "bool[3]", "Future(Tensor)"]
)  # fmt: skip
DEFAULTS = {
    "int": ["0", "-1", "0x1F", "Mean"],
    "SymInt": ["1", "None"],
    "float": ["1e-05", "1.", ".5", "-2.5"],
    "bool": ["True", "False"],
    "str": ['"none"', "'a b'", '"x\\"y"'],
    "Scalar": ["1", "2.5"],
    "ScalarType": ["float", "long"],
    "Device?": ["None"],
    "int[2]": ["1", "[1, 2]"],
    "int[]": ["[]", "[1,2,3]"],
    "(int, int)?": ["None"],
    "Generator?": ["None"],
    "SymInt[2]?": ["None"],
    "float[]?": ["None"],
}
BLANKS = st.sampled_from([" ", "  ", "\n", " \t ", "\r\n   "])
NO_BLANKS = st.sampled_from(["", "", "", " ", "\n"])
NO_BREAKS = st.sampled_from(["", " ", "  ", "\t"])  # outside parentheses torch ends a schema at a line break


@st.composite
def schemas(draw: st.DrawFn) -> str:
    """A schema text that torch accepts, spaced at random."""
    args: list[str] = []
    defaulted = False
    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.one_of(tensor_types(), PLAIN))
        arg = f"{kind}{draw(BLANKS)}{draw(NAMES)}"
        if defaulted or draw(st.booleans()):
            choices = DEFAULTS.get(kind)
            if choices:
                arg += f"{draw(NO_BLANKS)}={draw(NO_BLANKS)}{draw(st.sampled_from(choices))}"
                defaulted = True
            elif defaulted and not kind.endswith("]"):
                break
        args.append(arg)
    if args and draw(st.booleans()):
        star = draw(st.integers(0, len(args) - 1))
        args.insert(star, "*")
    returns = draw(
        st.one_of(
            st.just("()"),
            tensor_types(),
            st.sampled_from(
                ["int", "Tensor out", "(Tensor, Tensor(a!))", "(Tensor q, Tensor(b) k)", "Tensor[]", "...", "None"]
            ),
        )
    )
    comma = f"{draw(NO_BLANKS)},{draw(NO_BLANKS)}"
    name = draw(st.sampled_from(["op", "ns::op", "op.out", "ns::op.overload", "_x9"]))
    blank = draw(NO_BLANKS)
    return f"{name}{draw(NO_BREAKS)}({blank}{comma.join(args)}{blank}){draw(NO_BREAKS)}->{draw(NO_BREAKS)}{returns}"


@st.composite
def spelled(draw: st.DrawFn, text: str) -> bytes:
    """C++ that spells this text: adjacent literals cut anywhere, raw or not, escapes, comments, line splices."""
    pieces: list[str] = []
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        pieces.append(_literal(draw, text[start:end]))
    between = draw(st.sampled_from([" ", "\n    ", "\r\n", " /* Tensor x */ ", ' // "(a!)"\n', ""]))
    return between.join(pieces).encode("latin-1")


def _literal(draw: st.DrawFn, text: str) -> str:
    form = draw(st.integers(0, 3))
    if form == 0 and ')"' not in text and "\r" not in text:
        return f'R"({text})"'
    if form == 1 and "\r" not in text:
        return f'R"--({text})--"'
    escapes = {
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        '"': '\\"',
        "\\": "\\\\",
        "?": draw(st.sampled_from(["?", "\\?"])),
    }
    spliced = draw(st.integers(0, max(len(text), 1)))
    splice = draw(st.sampled_from(["", "", "\\\n", "\\\r\n"]))
    body = [escapes.get(char, char) for char in text]
    body.insert(spliced, splice)
    if form == 2 and text and text[-1].isalpha():
        at = body.index(text[-1]) if text[-1] in body else 0
        body[at] = f"\\{ord(body[at]):03o}"
    return '"' + "".join(body) + '"'
