"""Small source trees for the audit's tests: an operator with one implementation, and what is inferred of it."""

from __future__ import annotations

from pathlib import Path

from schema_patch.inference import work
from schema_patch.inference.index import tree
from schema_patch.inference.index.index import Index
from schema_patch.inference.index.store import Store
from schema_patch.schemas.inferred import Inferred

REGISTRATION = """
#include <torch/library.h>
%s
TORCH_LIBRARY(planted, m) {
  m.def("op(%s) -> %s");
  m.impl("op", torch::kCPU, &op);
}
"""


def source(code: str, arguments: str = "Tensor a, Tensor b", returns: str = "()") -> str:
    """A C++ file that registers the function `op` in `code`."""
    return REGISTRATION % (code, arguments, returns)


def write(folder: Path, **files: str) -> list[str]:
    """Files of a tree; a name stands for its suffix too (`op_cpp`)."""
    paths = []
    for name, text in files.items():
        path = folder / name.replace("_", ".")
        path.write_text(text)
        paths.append(str(path))
    return paths


def infer(paths: list[str]) -> list[Inferred]:
    """What is inferred of every operator of these files."""
    whole = tree.read(paths, Store("", on=False))
    index = Index(file.index for file in whole.files)
    return work.infer(work.operators_of(whole, index), index)


def answers(folder: Path, code: str, arguments: str = "Tensor a, Tensor b", **more: str) -> dict[str, str]:
    """The answer for each argument of the operator in `code`."""
    (found,) = infer(write(folder, op_cpp=source(code, arguments), **more))
    return {answer.name: answer.kind.value for answer in found.answers}
