"""The patient registers every operator of the kit with the published schema: the same arguments, no word of writes."""

import ast
from pathlib import Path

import pytest

from esimd_ops import samples
from schema_patch import cpp, table

PATIENT = Path(__file__).resolve().parents[2] / "examples/as_shipped"


@pytest.fixture(scope="module")
def schemas():
    texts = {}
    for path in sorted((PATIENT / "csrc").glob("*.cc")):
        for registration in cpp.read(path.read_bytes(), str(path)).registrations:
            text = registration.schema.text
            texts[text.split("(")[0]] = text
    return texts


def test_every_operator_is_there(schemas):
    assert set(schemas) == set(samples.SIZES)


@pytest.mark.parametrize("operator", samples.SIZES)
def test_the_schema_is_the_true_one_without_its_marks(ops, schemas, operator):
    true = getattr(ops, operator).default._schema
    arguments = ", ".join(
        f"{'Tensor' if argument.alias_info else argument.type} {argument.name}" for argument in true.arguments
    )
    returns = table.load().entries[operator].returns
    assert schemas[operator] == f"{operator}({arguments}) -> {'()' if returns == 'nothing' else 'Tensor'}"


def test_its_python_knows_what_each_operator_hands_back():
    tree = ast.parse((PATIENT / "python/custom_esimd_kernels_vllm/fakes.py").read_text())
    returned = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "RETURNED"
    )
    entries = table.load().entries
    assert returned == {
        name: None if entries[name].returns == "nothing" else entries[name].returns for name in samples.SIZES
    }


def test_its_declarations_are_those_of_the_extension():
    def functions(path):
        body = path.read_text().split("namespace esimd_ops {")[1]
        lines = (line for line in body.splitlines() if not line.startswith("//"))
        return [" ".join(declaration.split()) for declaration in "\n".join(lines).split(";")[:-1]]

    assert functions(PATIENT / "csrc/kernel_ops.h") == functions(PATIENT.parents[1] / "csrc/ops.h")
