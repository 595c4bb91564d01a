"""Calls that a program made, as samples: of the operator's own namespace, and read when they are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from esimd_ops.observe import observe
from esimd_ops.observe.opcheck import Replay
from esimd_ops.observe.saved import Folder
from esimd_ops.probe import subjects
from esimd_ops.probe.programs import ProbedCall
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
        folder.save(torch.ops.saved_one.same.default, {"x": x, "out": torch.zeros(size)})()
    folder.save(torch.ops.saved_one.same.scaled, {"x": torch.ones(2), "by": 2.0})()
    folder.save(torch.ops.saved_two.same.default, {"x": [torch.ones(4)]})()
    return tmp_path


def test_two_libraries_with_an_operator_of_one_name(folder: Path) -> None:
    assert given.named(str(folder), "saved_one") == ("same", "same.scaled")
    assert given.named(str(folder), "saved_two") == ("same",)
    found = subjects.find("saved_two", "same", str(folder))
    assert isinstance(found, subjects.ProbedOperator)
    assert [part.shape for part in found.arguments["x"]] == [(4,)]
    assert found.other() is None


def test_a_graph_is_replayed_with_another_call_of_the_same_shapes(folder: Path) -> None:
    found = subjects.find("saved_one", "same", str(folder))
    assert isinstance(found, subjects.ProbedOperator)
    shape, other = found.arguments["x"].shape, found.other()
    assert (other is None) == (shape == (3,))
    assert other is None or (other["x"].shape == shape and not torch.equal(other["x"], found.arguments["x"]))


def test_only_the_calls_that_are_tried_are_read(folder: Path) -> None:
    for path in sorted(folder.glob("saved_one.same.*.pt"))[1:]:
        path.write_bytes(b"no call")
    found = subjects.find("saved_one", "same", str(folder))
    assert isinstance(found, subjects.ProbedOperator)
    with pytest.raises(ToolError, match="not a call that `observe --save` wrote"):
        found.other()


def test_a_call_is_made_again_as_it_was_made(tmp_path: Path) -> None:
    """With arguments left out and out of order; one that the operator refused is no sample."""
    library = torch.library.Library("saved_three", "FRAGMENT")
    library.define("digits(Tensor x, int a=1, int b=2, *, int c=3) -> Tensor")

    def digits(x: torch.Tensor, a: int = 1, b: int = 2, *, c: int = 3) -> torch.Tensor:
        assert a < 9, "expected a digit"
        return x * 1000 + 100 * a + 10 * b + c

    library.impl("digits", digits, "CompositeExplicitAutograd")
    torch.library.register_fake("saved_three::digits", lambda x, a=1, b=2, *, c=3: torch.empty_like(x), lib=library)
    folder, replay = Folder(tmp_path), Replay(["saved_three"])
    for save in (folder.save, replay.save):
        with observe("saved_three", save=save):
            with pytest.raises(AssertionError):
                torch.ops.saved_three.digits(torch.ones(1), 9)
            torch.ops.saved_three.digits(c=7, b=5, x=torch.ones(1))
    subject = subjects.find("saved_three", "digits", str(tmp_path))
    assert isinstance(subject, subjects.ProbedOperator)
    call = ProbedCall(torch.ops.saved_three.digits.default, subject.arguments, (), True)
    assert call({"x": torch.tensor([4.0])}).tolist() == [4157]
    assert replay.run("a test") == []
