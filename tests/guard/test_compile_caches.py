"""A graph compiled before the fix must not come back after it, nor one compiled with the guard without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from schema_patch.commands import main
from schema_patch.installed import caches

PROGRAM = """
import sys, warnings
warnings.filterwarnings("ignore")
import torch
schema = {"shipped": "op(Tensor x, Tensor output) -> ()", "fixed": "op(Tensor x, Tensor(a!) output) -> ()"}[sys.argv[1]]
lib = torch.library.Library("stale", "FRAGMENT")
lib.define(schema)
lib.impl("op", lambda x, output: (output.copy_(x * 2), None)[1], "CPU")
torch.library.register_fake("stale::op", lambda x, output: None, lib=lib)
if sys.argv[2] == "guard":
    from esimd_ops import guard
    torch.compiler.config.cache_key_tag = "mine"
    guard.enable("stale", writes={"op": ["output"]})
    assert torch.compiler.config.cache_key_tag.startswith("mine+")
def program(x, nothing, one):  # products alone, for which Inductor has no C++ to compile
    output = x @ nothing
    torch.ops.stale.op(x, output)
    return output @ one
compiled, others = torch.compile(program, fullgraph=True), (torch.zeros(8, 8), torch.eye(8))
print(sum(not torch.equal(compiled(x, *others), program(x, *others)) for x in (torch.randn(8, 8) for _ in range(20))))
"""


def wrong_of_20(cache: Path, schema: str, guard: str = "") -> int:
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    environment.pop("TORCHINDUCTOR_FORCE_DISABLE_CACHES", None)
    environment.pop("CI", None)
    argv = [sys.executable, "-c", PROGRAM, schema, guard]
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.splitlines()[-1])


@pytest.mark.long
def test_two_processes_and_one_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = tmp_path / "inductor"
    assert wrong_of_20(cache, "shipped") == 20
    # The poisoning itself: right schemas, and a graph from before. A torch that passes here needs no digest.
    assert wrong_of_20(cache, "fixed") == 20

    found = caches.read("Inductor", cache, {"stale"})
    assert caches.kind_of(cache) == "Inductor"
    assert found.files > 0
    assert main.main(["caches", str(cache), "--namespace", "stale"]) == 0
    said = capsys.readouterr()
    assert f"Inductor: {cache}" in said.out
    assert "nothing deleted" in said.err

    # The guard does not meet that graph, and leaves none for a process without it.
    assert wrong_of_20(cache, "shipped", "guard") == 0
    assert wrong_of_20(cache, "shipped") == 20

    assert main.main(["caches", str(cache), "--purge"]) == 0
    assert f"purged {cache}" in capsys.readouterr().out
    assert list(cache.iterdir()) == []
    assert wrong_of_20(cache, "fixed") == 0
    assert caches.read("Inductor", cache, {"stale"}).operators == ("stale::op",)
    assert caches.read("Inductor", cache, {"other"}).operators == ()
