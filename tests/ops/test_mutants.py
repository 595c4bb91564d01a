"""The samples tell wrong references from right ones; here for a few operators, `make mutants` for all."""

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("mutants", Path(__file__).with_name("mutants.py"))
mutants = importlib.util.module_from_spec(spec)


@pytest.fixture(scope="module", autouse=True)
def loaded():
    import sys

    sys.path.insert(0, str(Path(__file__).parent))  # for `borders`
    sys.modules["mutants"] = mutants  # where its dataclasses look for themselves
    spec.loader.exec_module(mutants)


@pytest.mark.parametrize(
    ("operator", "least"),
    [("esimd_rms_norm", 25), ("esimd_norm_add_norm", 65), ("esimd_moe_topk", 30), ("esimd_moe_gather", 40)],
)
def test_each_change_is_told_apart(operator, least):
    tally = mutants.survivors(operator)
    assert tally.left == []
    assert tally.count >= least


def test_a_judge_that_sees_nothing_is_noticed(monkeypatch):
    monkeypatch.setattr(mutants.judge.ByReference, "told", lambda *_: [])
    tally = mutants.survivors("esimd_rms_norm")
    assert len(tally.left) > tally.count // 2
