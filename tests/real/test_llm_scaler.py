"""Intel's own source, where LLM_SCALER names a checkout of it: patched, compiled with stubs, loaded, read back from torch."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch.utils import cpp_extension

from schema_patch.commands import main
from schema_patch.cpp import registrations
from schema_patch.schemas import grammar, table

CHECKOUT = os.environ.get("LLM_SCALER")
TREE = Path(CHECKOUT or "") / "vllm" / "custom-esimd-kernels-vllm"
KNOWN = table.load()

pytestmark = pytest.mark.skipif(not CHECKOUT, reason="set LLM_SCALER to a checkout of intel/llm-scaler")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    assert TREE.is_dir(), f"LLM_SCALER: expected {TREE}"
    shutil.copytree(TREE, tmp_path / "ops")
    return tmp_path / "ops"


def lines(root: Path) -> dict[str, list[bytes]]:
    return {str(p.relative_to(root)): p.read_bytes().splitlines(keepends=True) for p in root.rglob("*") if p.is_file()}


def test_all_37_are_patched_and_nothing_else(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["check", str(tree)]) == 1
    assert "37 wrong" in capsys.readouterr().out
    before = lines(tree)
    assert main.main(["apply", str(tree)]) == 0
    said = capsys.readouterr()
    assert "37 operators changed" in said.err
    (tree / ".schema-patch.journal.json").unlink()
    after = lines(tree)
    assert set(after) == set(before)

    inserted: Counter[bytes] = Counter()
    for name, old in before.items():
        old_bytes, new_bytes = b"".join(old), b"".join(after[name])
        if old_bytes == new_bytes:
            continue
        assert re.search(r"torch_extension\w*\.cc$", name), name
        assert len(old) == len(after[name])
        for a, b in zip(old, after[name], strict=True):
            for tag, i, j, k, end in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
                assert tag in ("equal", "insert"), (name, a, b)
                if tag == "insert":
                    assert i == j
                    inserted[b[k:end]] += 1
        assert re.sub(rb"\([a-e]!\)", b"", new_bytes) == re.sub(rb"\([a-e]!\)", b"", old_bytes)
    # One annotation an argument written, and one a return that hands an argument back.
    unannotated = [
        e
        for n, e in KNOWN.entries.items()
        if e.published or n in ("esimd_moe_topk", "esimd_norm_gemv_norm_fp16", "topk_v2")
    ]
    assert len(unannotated) == 37
    expected = sum(len(e.writes) + len(e.inplace) + (e.returns != "nothing") for e in unannotated)
    assert sum(inserted.values()) == expected


@pytest.mark.timeout(600)
@pytest.mark.parametrize("returns", ["alias", "void"])
def test_the_registration_files_compile_and_load(tree: Path, returns: str) -> None:
    assert main.main(["apply", "--returns", returns, str(tree)]) == 0
    header = (tree / "include" / "kernel_ops.h").read_text()
    prototypes = re.findall(r"^(at::Tensor|void) (\w+)\(([^;]*)\);", header, re.MULTILINE)
    stubs = [f'{kind} {name}({args}) {{ TORCH_CHECK(false, "a stub"); }}' for kind, name, args in prototypes]
    stubs.append(
        "at::Tensor esimd_moe_topk_v2(at::Tensor, at::Tensor, at::Tensor, int64_t, int64_t, int64_t) { TORCH_CHECK(false); }"
    )
    files = sorted(
        p for p in (tree / "csrc" / "xpu").glob("torch_extension*.cc") if "q4_0" not in p.name
    )  # that one needs SYCL
    assert len(files) == 5
    unity = tree / "unity.cpp"
    unity.write_text("\n".join([*(f'#include "{file}"' for file in files), *stubs]))
    library, torch_lib = tree / "ops.so", Path(torch.__file__).parent / "lib"
    python = subprocess.run(
        [f"{sys.base_prefix}/bin/python3-config", "--includes"], capture_output=True, text=True, check=True
    ).stdout.split()
    subprocess.run(
        ["g++", "-std=c++20", "-O0", "-g0", "-fPIC", "-shared", unity, "-o", library, f"-I{tree / 'include'}", *python,
         *(f"-isystem{d}" for d in cpp_extension.include_paths()), f"-L{torch_lib}", f"-Wl,-rpath,{torch_lib}", "-ltorch",
         "-ltorch_cpu", "-lc10"],
        check=True,
    )  # fmt: skip
    program = (
        "import sys, torch; torch.ops.load_library(sys.argv[1])\n"
        "for s in torch._C._jit_get_all_schemas():\n"
        "    if 'esimd' in s.name: print(s.name, [a.name for a in s.arguments if a.alias_info and a.alias_info.is_write], len(s.returns), sep='|')"
    )
    done = subprocess.run([sys.executable, "-c", program, library], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {row.split("|")[0].split("::")[1]: row.split("|")[1:] for row in done.stdout.splitlines()}
    assert set(found) == set(KNOWN.entries) - {"q4_0_quantize"}
    for name, (writes, count) in found.items():
        entry = KNOWN.entries[name]
        written = [a for a in entry.arguments if a in {*entry.writes, *entry.inplace}]
        assert writes == str(written)
        assert int(count) == (returns == "alias" and entry.returns != "nothing")


def test_the_sglang_copy_too(tmp_path: Path) -> None:
    shutil.copytree(Path(CHECKOUT or "") / "sglang" / "custom-esimd-kernels", tmp_path / "ops")
    main.main(["apply", str(tmp_path / "ops")])
    patched = "".join(p.read_text() for p in (tmp_path / "ops").rglob("torch_extension*.cc"))
    texts = re.findall(r"m\.def\(((?:\s*\"[^\"]*\")+)", patched)
    schemas = [grammar.parse("".join(re.findall(r'"([^"]*)"', text))) for text in texts]
    known = [s for s in schemas if KNOWN.effect(s)]
    assert len(known) == 29  # the rest has GGUF formats that the table does not know
    assert all(s.writes == KNOWN.effect(s).writes for s in known)  # type: ignore[union-attr]


def test_the_other_operators_are_as_the_second_table_has_them() -> None:
    others = {name: entry for name, entry in table.everything().entries.items() if name not in KNOWN.entries}
    found = {}
    for path in sorted((TREE / "csrc").rglob("*.sycl")):
        for registration in registrations.read(path.read_bytes(), str(path)).registrations:
            parsed = grammar.parse(registration.schema.text)
            found[parsed.op] = (registration.namespace, tuple(arg.name for arg in parsed.args), parsed.writes)
    assert found == {name: (entry.namespaces[0], entry.arguments, entry.writes) for name, entry in others.items()}
