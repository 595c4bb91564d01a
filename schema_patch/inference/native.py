"""Functions that C++ hands to Python by a name, through pybind11 or TVM's interface: what they do to their arguments.

Each is read when it is first asked for.
"""

from __future__ import annotations

from schema_patch.schemas.inferred import Answer, Kind, Native

from .domain.values import is_old
from .engine.frame import TENSOR_LIKE
from .index.scan import Function
from .index.syntax import read_parameters
from .infer import Inference, answer


class NativeFunctions:
    """What is known of them, by the name that Python calls."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self.known: dict[str, Native | None] = {}

    def get(self, name: str) -> Native | None:
        """The function of this name; None where there is none, or where several differ in their parameters."""
        if name not in self.known:
            index = self.inference.index
            found: dict[tuple[str, int], Function] = {}
            for path, target in index.bindings.get(name, ()):
                *qualifiers, last = target.split("::")
                named = index.resolved(last, tuple(qualifiers), -1, (), path, False)
                found |= {function.key: function for function in named}
            self.known[name] = both([*map(self.read, found.values())])
        return self.known[name]

    def read(self, function: Function) -> Native:
        summary = self.inference.summaries.of(function)
        answers = []
        for number, declared in enumerate(read_parameters(self.inference.index.signature(function)[1])):
            plain = bool(TENSOR_LIKE.search(declared.type)) and "<" not in declared.type
            answers.append(answer(declared.name, number, [summary], [], plain))
        old = any(is_old(root) for values, _ in summary.returns for value in values for root, _, _ in value)
        return Native(tuple(answers), not old)


def both(natives: list[Native]) -> Native | None:
    """What functions of one name have in common; of an argument that they treat differently, nothing is known."""
    if not natives:
        return None
    first, *others = natives
    answers = list(first.answers)
    for other in others:
        if len(other.answers) != len(answers):
            return None
        for number, (mine, theirs) in enumerate(zip(answers, other.answers, strict=True)):
            if mine.kind is not theirs.kind:
                answers[number] = Answer(mine.name, Kind.UNKNOWN, (), "functions of this name treat it differently")
    return Native(tuple(answers), all(native.fresh for native in natives))
