"""Programs in which many places meet, and what is said of them: `python wide.py FOLDER` prints it."""

from __future__ import annotations

import sys
from pathlib import Path

import trees

COUNTS = (10, 47, 60, 200)


def joined(pattern: str, count: int, between: str = ", ") -> str:
    return between.join(pattern.replace("#", str(number)) for number in range(count))


def array(count: int) -> str:
    pointers = joined("t#.data_ptr<float>()", count)
    return f"float* all[] = {{{pointers}}}; for (int i = 0; i < {count}; ++i) {{ float* p = all[i]; p[0] = 1; }}"


def vector(count: int) -> str:
    pushed = joined("all.push_back(t#.data_ptr<float>());", count, " ")
    return f"std::vector<float*> all; {pushed} for (auto p : all) *p = 1;"


def branches(count: int) -> str:
    chosen = joined("if (n == #) p = t#.data_ptr<float>();", count, " ")
    return f"float* p = nullptr; {chosen} p[0] = 1;"


def objects(count: int) -> str:
    made = joined("Box b#; b#.data = t#.data_ptr<float>(); all[#] = &b#;", count, " ")
    return f"Box* all[{count}]; {made} for (int i = 0; i < {count}; ++i) all[i]->data[0] = 1;"


def handed(count: int) -> str:
    pointers = joined("t#.data_ptr<float>()", count)
    return f"float* all[] = {{{pointers}}}; set(all, {count});"


SHAPES = {shape.__name__: shape for shape in (array, vector, branches, objects, handed)}
HELPERS = "struct Box { float* data; };\nvoid set(float** all, int n) { for (int i = 0; i < n; ++i) all[i][0] = 1; }\n"


def said(folder: Path, shape: str, count: int) -> list[tuple[str, str, str]]:
    """Name, answer and reason for each of so many tensors, all of which are written."""
    arguments = joined("at::Tensor& t#", count)
    code = f"{HELPERS}void op({arguments}, int64_t n) {{ {SHAPES[shape](count)} }}"
    schema = joined("Tensor t#", count) + ", int n"
    (found,) = trees.infer(trees.write(folder, op_cpp=trees.source(code, schema)))
    return [(a.name, a.kind.value, a.reason.partition(": ")[0]) for a in found.answers]


if __name__ == "__main__":
    for name in SHAPES:
        for number in COUNTS:
            print(name, number, said(Path(sys.argv[1]), name, number))
