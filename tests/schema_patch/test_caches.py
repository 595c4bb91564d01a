"""Caches on disk: which they are, what they name, how old, and that nothing else is ever deleted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from elf_files import build

from schema_patch.commands import main
from schema_patch.installed import caches
from schema_patch.model import ToolError

ROOT = Path(__file__).parents[2]
GRAPH = b"\x80\x04buf0 = torch.ops.custom_esimd_kernels_vllm.esimd_rms_norm.default(arg0)\x00custom_esimd_kernels_vllm::esimd_gemv_int4"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every kind of cache in its usual place."""
    for name in ("TORCHINDUCTOR_CACHE_DIR", "VLLM_CACHE_ROOT", "TRITON_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    for path, data in {
        "inductor/fxgraph/ab/key/entry": GRAPH,
        "inductor/aotautograd/key/entry": b"nothing",
        ".cache/vllm/torch_compile_cache/0123456789/rank_0_0/backbone/computation_graph.py": b"torch.ops.esimd_topk_v2.topk_v2(x)",
        ".triton/cache/KEY/kernel.json": b"{}",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    return tmp_path


def test_the_usual_places(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["caches"]) == 0
    out = capsys.readouterr().out
    assert f"Inductor: {home}/inductor: 2 files" in out
    assert "2 known operators" in out
    assert "    custom_esimd_kernels_vllm::esimd_gemv_int4\n    custom_esimd_kernels_vllm::esimd_rms_norm\n" in out
    assert "    esimd_topk_v2::topk_v2\n" in out
    assert f"Triton: {home}/.triton/cache: 1 files" in out
    assert (home / "inductor/fxgraph/ab/key/entry").exists()


def test_purge_deletes_what_was_listed_and_nothing_else(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outside = home / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (home / "inductor" / "link").symlink_to(outside)
    assert main.main(["caches", str(home / "inductor"), "--purge"]) == 0
    assert list((home / "inductor").iterdir()) == []
    assert (outside / "precious").exists()
    assert (home / ".triton/cache/KEY/kernel.json").exists()
    assert "purged" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["home", "file", "missing"])
def test_what_is_no_cache_is_refused(what: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "file").write_text("x")
    path = {"home": home / ".cache", "file": home / "file", "missing": home / "gone"}[what]
    assert main.main(["caches", str(path), "--purge"]) == 2
    assert "error" in capsys.readouterr().err
    assert (home / "file").exists()
    assert (home / "inductor/fxgraph/ab/key/entry").exists()


def test_a_cache_that_is_none_any_more_is_not_purged(home: Path) -> None:
    cache = caches.read("Inductor", home / "inductor", {"x"})
    for name in ("fxgraph", "aotautograd"):
        (home / "inductor" / name).rename(home / "inductor" / f"my-{name}")
    with pytest.raises(ToolError, match="no longer looks like a cache"):
        caches.purge(cache)
    assert (home / "inductor/my-fxgraph/ab/key/entry").exists()


def test_older_than_the_binary(home: Path) -> None:
    cache = caches.read("Inductor", home / "inductor", {"custom_esimd_kernels_vllm"})
    now = cache.newest
    binaries = {"a.so": {"esimd_rms_norm"}, "b.so": {"other"}, "c.so": {"esimd_gemv_int4", "esimd_rms_norm"}}
    (first, second) = caches.judge([cache], binaries, {"a.so": now + 10, "b.so": now + 10, "c.so": now + 10})
    assert first.code == second.code == "SP301"
    assert "older than a.so and names custom_esimd_kernels_vllm::esimd_rms_norm" in first.message
    assert caches.judge([cache], binaries, dict.fromkeys(binaries, now - 10)) == []
    os.utime(home / "inductor/aotautograd/key/entry", (now - 100, now - 100))  # one old file is enough
    assert caches.judge(
        [caches.read("Inductor", home / "inductor", {"custom_esimd_kernels_vllm"})],
        binaries,
        {**dict.fromkeys(binaries, now - 10)},
    )


def test_verify_schemas_warns_of_a_stale_cache(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Planted: a graph from before the library. Not one from after it, nor of another library, nor without a cache."""
    text = "esimd_rms_norm(Tensor input, Tensor(a!) output, Tensor weight, float eps) -> ()"
    library = build(home / "site", [text])
    words = [str(home / "site"), "--format", "json"]

    def stale() -> list[tuple[str, str]]:
        assert main.main_verify(words) == 0
        found = json.loads(capsys.readouterr().out)["findings"]
        assert {f["severity"] for f in found} <= {"warning"}
        return [(f["code"], f["path"]) for f in found]

    now = library.stat().st_mtime
    graph = home / "inductor/fxgraph/ab/key/entry"
    for file in home.joinpath("inductor").rglob("*"):
        os.utime(file, (now + 10, now + 10))
    assert stale() == []
    os.utime(graph, (now - 10, now - 10))
    assert stale() == [("SP301", str(home / "inductor"))]
    assert main.main_verify([*words, "--strict"]) == 1
    capsys.readouterr()
    graph.write_bytes(b"torch.ops.custom_esimd_kernels_vllm.esimd_gemv_int4.default")
    os.utime(graph, (now - 10, now - 10))
    assert stale() == []
    graph.write_bytes(GRAPH)
    os.utime(graph, (now - 10, now - 10))
    for cache in caches.find((), {"x"}, os.environ):
        caches.purge(cache)
    assert stale() == []


def test_splitting_ops(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["splitting-ops", "--keep", "vllm::unified_attention"]) == 0
    said = capsys.readouterr()
    names = json.loads(said.out)["splitting_ops"]
    assert names[0] == "vllm::unified_attention"
    assert len(names) == 48
    assert "custom_esimd_kernels_vllm::esimd_gemv_int4" in names
    assert "esimd_topk_v2::topk_v2" in names
    assert said.err == ""
    assert main.main(["splitting-ops", "--namespace", "esimd_topk_v2"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == {"splitting_ops": ["esimd_topk_v2::topk_v2"]}
    assert "this replaces vLLM's own list" in said.err


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another")
def test_a_number_that_no_user_has_is_named_as_torch_names_it() -> None:
    """As in a container that is run with --user."""
    program = (
        "import os\nfrom schema_patch.installed import caches\nos.setuid(54321)\n"
        "print(*dict(caches.places({})).values())\n"
    )
    plain = {
        name: value
        for name, value in os.environ.items()
        if name not in ("HOME", "USER", "LOGNAME", "USERNAME", "LNAME")
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=plain, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "torchinductor_uid_54321 " in done.stdout
