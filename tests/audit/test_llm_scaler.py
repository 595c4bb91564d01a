"""Intel's own sources, where LLM_SCALER names a checkout: what is inferred is what the operator table was written by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from schema_patch.inference import work
from schema_patch.inference.index import tree
from schema_patch.inference.index.index import Index
from schema_patch.inference.index.store import Store
from schema_patch.schemas import grammar, table
from schema_patch.text import files

CHECKOUT = os.environ.get("LLM_SCALER")
pytestmark = pytest.mark.skipif(not CHECKOUT, reason="set LLM_SCALER to a checkout of intel/llm-scaler")


def test_every_known_operator_writes_exactly_what_the_table_says() -> None:
    root = Path(CHECKOUT or "") / "vllm" / "custom-esimd-kernels-vllm"
    whole = tree.read(list(files.find(str(root))), Store("", on=False))
    index = Index(file.index for file in whole.files)
    operators = work.operators_of(whole, index)
    known = table.load()
    checked = 0
    for operator, found in zip(operators, work.infer(operators, index), strict=True):
        effect = known.effect(grammar.parse(operator.text.text), operator.namespace)
        if effect is None:
            continue
        checked += 1
        written = tuple(answer.name for answer in found.answers if answer.kind.value == "written")
        assert written == effect.writes, operator.op
        assert found.returns[:1] == ((effect.returns,) if operator.schema.returns else ()), operator.op
    assert checked >= 45
