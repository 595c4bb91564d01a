"""The way of a person with a closed library: observe, guard, done. And the table in the other commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from esimd_ops import guard
from esimd_ops.observe import observe
from schema_patch.commands.main import main, main_verify

SCHEMA = "hand_back(Tensor x, Tensor out) -> Tensor"
SOURCE = """
#include <torch/library.h>
at::Tensor hand_back(const at::Tensor& x, const at::Tensor& out);
TORCH_LIBRARY(closed, m) { m.def("hand_back(Tensor x, Tensor out) -> Tensor", &hand_back); }
"""


@pytest.fixture(scope="module")
def library():
    library = torch.library.Library("closed", "FRAGMENT")
    library.define(SCHEMA)
    library.impl("hand_back", lambda x, out: out.copy_(x * 2), "CPU")
    torch.library.register_fake("closed::hand_back", lambda x, out: torch.empty_like(out), lib=library)
    yield library
    library._destroy()


@pytest.fixture
def observed(library: torch.library.Library, tmp_path: Path) -> Path:
    with observe("closed") as seen:
        torch.ops.closed.hand_back(torch.ones(4), torch.zeros(4))
    seen.write(tmp_path / "closed.toml")
    return tmp_path / "closed.toml"


def program(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    torch.ops.closed.hand_back(x, out)
    return out + 1


def test_what_was_observed_makes_the_guard_right(observed: Path) -> None:
    x = torch.ones(4)
    torch._dynamo.reset()
    assert torch.equal(torch.compile(program, backend="aot_eager")(x), torch.ones(4))  # wrong
    with guard.enabled("closed", table=observed) as guarded:
        assert [decision.op for decision in guarded.guarded] == ["closed::hand_back"]
        assert torch.equal(torch.compile(program, backend="aot_eager")(x), torch.full((4,), 3.0))


def test_check_and_audit_take_the_table(observed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "ops.cpp").write_text(SOURCE)
    for command, without in (("check", 2), ("audit", 2)):
        words = [command, str(tmp_path / "tree"), "--format", "json"]
        assert main(words) == without
        capsys.readouterr()
        assert main([*words, "--table", str(observed)]) == 1
        (finding,) = json.loads(capsys.readouterr().out)["findings"][:1]
        assert (finding["code"], finding["op"]) == ("SP101", "hand_back")


def test_verify_schemas_takes_the_table(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(built), "--format", "json"]
    assert main_verify(words) == 2
    capsys.readouterr()
    (tmp_path / "mine.toml").write_text(
        'namespaces = ["observed_liars"]\n[operators.partly]\narguments = ["x", "o0", "o1"]\n'
        'writes = ["o0", "o1"]\nreturns = "nothing"\nobserved = 1\nevidence = "seen"\n'
    )
    assert main_verify([*words, "--table", str(tmp_path / "mine.toml")]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [(finding["code"], finding["op"]) for finding in findings] == [("SP102", "partly")]
