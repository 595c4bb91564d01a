"""Calls that a program made, as samples: of the operator's own namespace, and read when they are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from esimd_ops.observe.saved import Folder
from esimd_ops.probe import subjects
from esimd_ops.trials import given
from schema_patch.model import ToolError


@pytest.fixture(scope="module")
def spaces() -> list[torch.library.Library]:
    found = [torch.library.Library(space, "FRAGMENT") for space in ("saved_one", "saved_two")]
    for library, schema in zip(
        found, ("same(Tensor x, Tensor(a!) out) -> ()", "same(Tensor[] x) -> Tensor"), strict=True
    ):
        library.define(schema)
    found[0].define("same.scaled(Tensor x, float by) -> Tensor")
    return found


@pytest.fixture
def folder(spaces: list[torch.library.Library], tmp_path: Path) -> Path:
    folder = Folder(tmp_path)
    for size in (2, 3, 2):
        x = torch.full((size,), float(len(list(tmp_path.iterdir()))))
        folder.save(torch.ops.saved_one.same.default, {"x": x, "out": torch.zeros(size)})
    folder.save(torch.ops.saved_one.same.scaled, {"x": torch.ones(2), "by": 2.0})
    folder.save(torch.ops.saved_two.same.default, {"x": [torch.ones(4)]})
    return tmp_path


def test_two_libraries_with_an_operator_of_one_name(folder: Path) -> None:
    assert given.named(str(folder), "saved_one") == ("same", "same.scaled")
    assert given.named(str(folder), "saved_two") == ("same",)
    found = subjects.find("saved_two", "same", str(folder))
    assert isinstance(found, subjects.Subject)
    assert [part.shape for part in found.arguments["x"]] == [(4,)]
    assert found.other() is None


def test_a_graph_is_replayed_with_another_call_of_the_same_shapes(folder: Path) -> None:
    found = subjects.find("saved_one", "same", str(folder))
    assert isinstance(found, subjects.Subject)
    shape, other = found.arguments["x"].shape, found.other()
    assert (other is None) == (shape == (3,))
    assert other is None or (other["x"].shape == shape and not torch.equal(other["x"], found.arguments["x"]))


def test_only_the_calls_that_are_tried_are_read(folder: Path) -> None:
    for path in sorted(folder.glob("saved_one.same.*.pt"))[1:]:
        path.write_bytes(b"no call")
    found = subjects.find("saved_one", "same", str(folder))
    assert isinstance(found, subjects.Subject)
    with pytest.raises(ToolError, match="not a call that `observe --save` wrote"):
        found.other()
