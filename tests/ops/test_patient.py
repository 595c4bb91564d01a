"""The patient registers every operator of the kit with the published schema: the same arguments, and its marks."""

import ast
from pathlib import Path

import pytest

from esimd_ops import registry
from esimd_ops.table import OPS
from schema_patch.cpp import registrations
from schema_patch.schemas import grammar

PATIENT = Path(__file__).resolve().parents[2] / "examples/as_shipped"


@pytest.fixture(scope="module")
def schemas():
    texts = {}
    for path in sorted((PATIENT / "csrc").glob("*.cc")):
        for registration in registrations.read(path.read_bytes(), str(path)).registrations:
            text = registration.schema.text
            texts[text.split("(")[0]] = text
    return texts


def test_every_operator_is_there(schemas):
    assert set(schemas) == set(OPS)


# Published with their marks; all others without any.
ANNOTATED = {
    "esimd_norm_gemv_fp8_blockscale",
    "esimd_qkv_split_norm_rope",
    "esimd_qkv_split_norm_rope_v",
    "esimd_gemv_fp8_blockscale_fused2",
    "esimd_gemv_fp8_blockscale_fp16_fused2",
    "esimd_gdn_conv_fused",
    "esimd_gdn_conv_fused_seq",
    "esimd_gdn_conv_fused_seq_spec",
    "esimd_moe_gemm_fp8_blockscale",
    "q4_0_quantize",
}


def test_the_schema_is_the_true_one_but_for_its_marks(ops, schemas, operator):
    true, found = registry.schemas("esimd_ops")[operator], grammar.parse(schemas[operator])
    assert [(arg.name, arg.type.base, arg.default) for arg in found.args] == [
        (arg.name, arg.type.base, arg.default) for arg in true.args
    ]
    assert found.writes == (OPS[operator].writes if operator in ANNOTATED else ())
    assert len(found.returns) == (1 if OPS[operator].returned else 0)


def test_its_python_knows_what_each_operator_hands_back():
    tree = ast.parse((PATIENT / "python/custom_esimd_kernels_vllm/ops.py").read_text())
    handed_back = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and node.target.id == "HANDED_BACK"
    )
    assert handed_back == {name: OPS[name].returned for name in OPS}


def test_its_declarations_are_those_of_the_extension():
    def functions(path):
        body = path.read_text().split("namespace esimd_ops {")[1]
        lines = (line for line in body.splitlines() if not line.startswith("//"))
        return [" ".join(declaration.split()) for declaration in "\n".join(lines).split(";")[:-1]]

    assert functions(PATIENT / "csrc/kernel_ops.h") == functions(PATIENT.parents[1] / "csrc/ops.h")
