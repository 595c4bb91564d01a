"""Intel's own Python, where LLM_SCALER names a checkout: its wrappers and the server's fakes, patched and run on torch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from schema_patch.commands import main
from schema_patch.schemas import table
from schema_patch.source import tree

CHECKOUT = os.environ.get("LLM_SCALER")
VLLM = Path(CHECKOUT or "") / "vllm"

pytestmark = pytest.mark.skipif(not CHECKOUT, reason="set LLM_SCALER to a checkout of intel/llm-scaler")

# Defines the operators from the schemas given, with kernels that do nothing, and says what each wrapper returns and
# each fake makes of its operator.
PROGRAM = """
import importlib.util, inspect, json, sys, torch
from torch._subclasses import FakeTensorMode

schemas, wrappers, fakes = json.load(sys.stdin)
keep = []
for text in schemas:
    space, _, name = text.partition("(")[0].partition("::")
    library = torch.library.Library(space, "FRAGMENT")
    library.define(text.partition("::")[2])
    library.impl(name, lambda *a, **k: None, "CPU")
    keep.append(library)

def load(path):
    spec = importlib.util.spec_from_file_location("loaded", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

def sample(kind):
    return {int: 1, float: 1.0, bool: False}[kind] if kind in (int, float, bool) else torch.zeros(2)

names = {text.partition("(")[0] for text in schemas}
module, told = load(wrappers), {}
for name, function in inspect.getmembers(module, inspect.isfunction):
    if any(name == full.partition("::")[2] for full in names):
        given = {p.name: sample(p.annotation) for p in inspect.signature(function).parameters.values()}
        result = function(**given)
        told[name] = [key for key, value in given.items() if value is result]

sys.modules["vllm"] = type(sys)("vllm")
sys.modules["vllm.logger"] = logger = type(sys)("vllm.logger")
logger.init_logger = lambda name: type("Log", (), {"debug": lambda *a: None, "info_once": lambda *a: None})()
register, traced = torch.library.register_fake, []
torch.library.register_fake = lambda name, function: traced.append((name, function)) if name in names else None
load(fakes).register_esimd_fakes()
torch.library.register_fake = register
values = {"Tensor": lambda: torch.empty(2), "int": lambda: 1, "float": lambda: 1.0, "bool": lambda: False}
for full, fake in traced:
    register(full, fake)
    space, _, name = full.partition("::")
    op = getattr(getattr(torch.ops, space), name).default
    with FakeTensorMode():
        kinds = [str(a.type).removeprefix("Optional[").removesuffix("]") for a in op._schema.arguments]
        assert op(*(values[kind]() for kind in kinds)) is None, name
print(json.dumps([told, [full for full, _ in traced]]))
"""


def fakes_of_the_server() -> str:
    """vllm/model_executor/layers/esimd_fake_ops.py, out of the patch that makes it."""
    patch = (VLLM / "patches" / "vllm_for_multi_arc.patch").read_text()
    part = patch.partition("+++ b/vllm/model_executor/layers/esimd_fake_ops.py\n")[2].partition("\ndiff --git")[0]
    return "".join(line[1:] for line in part.splitlines(keepends=True)[1:])


def test_wrappers_return_their_buffers_and_fakes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "ops"
    shutil.copytree(VLLM / "custom-esimd-kernels-vllm", root)
    wrappers = root / "python" / "custom_esimd_kernels_vllm" / "ops.py"
    fakes = root / "esimd_fake_ops.py"
    fakes.write_text(fakes_of_the_server())
    before = {path: path.read_bytes() for path in (wrappers, fakes)}
    assert main.main(["apply", "--returns", "void", str(root)]) == 0
    assert "53 places in Python changed" in capsys.readouterr().err
    assert main.main(["check", "--strict", str(root)]) == 0
    patched = {path: path.read_bytes() for path in before}
    assert main.main(["apply", "--returns", "void", str(root)]) == 0
    assert {path: path.read_bytes() for path in before} == patched

    known = table.load()
    units, _ = tree.read([str(root)], known)
    operators = [o for unit in units for o in unit.operators if o.effect]
    schemas = [f"{o.key[0]}::{o.schema.text.strip()}" for o in operators]
    given = json.dumps([schemas, str(wrappers), str(fakes)])
    done = subprocess.run([sys.executable, "-c", PROGRAM], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told, traced = json.loads(done.stdout)
    entries = {name: entry for name, entry in known.entries.items() if entry.returns not in ("nothing", "fresh")}
    wrapped = {name: [entry.returns] for name, entry in entries.items() if name in told}
    assert len(wrapped) == 39
    assert {name: told[name] for name in wrapped} == wrapped
    assert len(traced) == 18

    assert main.main(["revert", str(root)]) == 0
    assert {path: path.read_bytes() for path in before} == before
