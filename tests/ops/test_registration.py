"""registration.cpp is made of the typed functions and the table; where the two disagree nothing is made."""

import re
import runpy
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
POLICY = "schema_patch/schemas/policies/esimd.toml"
NORM = "esimd_ops/ops/norm.py"
SIGNATURE = "def esimd_rms_norm(input: Tensor, output: Tensor, weight: Tensor, eps: float) -> Tensor:"


@pytest.fixture
def tree(tmp_path):
    shutil.copytree(ROOT / "esimd_ops/ops", tmp_path / "esimd_ops/ops", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / POLICY).parent.mkdir(parents=True)
    shutil.copy(ROOT / POLICY, tmp_path / POLICY)
    return tmp_path


@pytest.fixture(scope="module")
def registration():
    return runpy.run_path(str(ROOT / "csrc/registration.py"))


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (NORM, SIGNATURE, SIGNATURE.replace("weight", "scale"), "esimd_rms_norm: the table has other arguments"),
        (
            NORM,
            SIGNATURE,
            SIGNATURE.replace("float", "complex"),
            "eps: expected one of Tensor, int, float, bool, found",
        ),
        (NORM, SIGNATURE, SIGNATURE.replace("-> Tensor", "-> None"), "returns output in the table"),
        (
            NORM,
            SIGNATURE,
            SIGNATURE.replace("rms_norm", "rms_nrom"),
            "not in both: ['esimd_rms_norm', 'esimd_rms_nrom']",
        ),
        (POLICY, "[operators.topk_v2]", "[operators.topk_v3]", "not in both: ['topk_v2', 'topk_v3']"),
    ],
)
def test_a_disagreement_is_an_error(registration, tree, file, old, new, message):
    text = (tree / file).read_text()
    assert old in text
    (tree / file).write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=re.escape(message)):
        registration["text"](tree)


def test_what_is_the_same_is_not_written_again(registration, tree):
    registration["write"](tree)
    path = tree / registration["WRITTEN"]
    before = path.stat().st_mtime_ns
    assert '"esimd_rms_norm(Tensor input, Tensor(a!) output, Tensor weight, float eps) -> ()"' in path.read_text()
    registration["write"](tree)
    assert path.stat().st_mtime_ns == before
    (tree / POLICY).write_text((tree / POLICY).read_text().replace('writes = ["output"]', "inplace = []"))
    registration["write"](tree)
    assert "Tensor output, Tensor weight, float eps) -> ()" in path.read_text()
