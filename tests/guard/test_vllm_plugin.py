"""The plugin without vLLM: what it does to a stand-in for vLLM's environment registry. `vllm_plugin_real.py` has the real one."""

from __future__ import annotations

import importlib.metadata
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType

import pytest
import torch

from esimd_ops import environment, guard, samples, vllm_plugin
from esimd_ops.guard import GuardError, cache_key
from esimd_ops.table import OPS
from esimd_ops.trials.subject import OfTable
from schema_patch.schemas import table as tables

NAMESPACE = "custom_esimd_kernels_sglang"  # of the table, and no other test has operators in it
FACTOR = cache_key.VLLM_FACTOR


@pytest.fixture
def envs(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    package, module = ModuleType("vllm"), ModuleType("vllm.envs")
    package.envs = module
    table = tables.everything()
    only = replace(table, namespaces=(NAMESPACE,), entries={k: e for k, e in table.entries.items() if not e.namespaces})
    monkeypatch.setattr(
        tables, "everything", lambda: only
    )  # other tests load the kit's own operators into this process
    monkeypatch.setitem(sys.modules, "vllm", package)
    monkeypatch.setitem(sys.modules, "vllm.envs", module)
    yield module
    guard.disable()


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    """Destroyed by name: from one that is only forgotten, torch keeps operators that are no more."""
    library = torch.library.Library(NAMESPACE, "FRAGMENT")
    yield library
    guard.disable()
    library._destroy()


@pytest.fixture
def load(library: torch.library.Library) -> Callable[[str], None]:
    """Registers an operator of the table as a shared library does: Python binds nothing. Each name can be used once."""

    def define(name: str) -> None:
        library.define(f"{name}(Tensor hidden_states, Tensor residual, Tensor weight, float eps) -> Tensor")
        assert name not in vars(getattr(torch.ops, NAMESPACE))

    return define


def test_installed_is_enough() -> None:
    (found,) = (e for e in importlib.metadata.entry_points(group="vllm.general_plugins") if e.name == "schema_kit")
    assert found.load() is vllm_plugin.register


def test_the_key_is_of_the_moment_it_is_asked_for(
    envs: ModuleType, load: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    """vLLM asks before it traces the model, so an operator that nobody has bound must be in it already."""
    envs.compile_factors = lambda: {"VLLM_OTHER": 1}
    with caplog.at_level(logging.INFO, "vllm.schema_kit"):
        vllm_plugin.register()
        vllm_plugin.register()  # vLLM says that a plugin may be loaded several times
        assert envs.compile_factors() == {"VLLM_OTHER": 1}
        assert caplog.messages == []
        load("esimd_fused_add_rms_norm")
        factors = envs.compile_factors()
        assert factors == {"VLLM_OTHER": 1, FACTOR: guard.digest()}
        assert envs.compile_factors() == factors
        assert torch.compiler.config.cache_key_tag == f"schema-kit-{factors[FACTOR]}"
    assert caplog.messages == [f"schema-kit: {NAMESPACE}: 1 operator guarded under torch.compile"]
    guard.disable()
    assert envs.compile_factors() == {"VLLM_OTHER": 1}
    assert torch.compiler.config.cache_key_tag == ""


def test_an_older_vllm_hashes_by_itself(envs: ModuleType, load: Callable[[str], None]) -> None:
    envs.compute_hash = lambda: "abc"
    vllm_plugin.register()
    assert envs.compute_hash() == "abc"
    load("esimd_fused_add_rms_norm_batched")
    assert envs.compute_hash() == f"abc-{guard.digest()}"


def test_a_guard_from_before_vllm(
    envs: ModuleType, load: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's own call, then the import of vLLM, then its plugins."""
    envs.compile_factors = dict
    monkeypatch.delitem(sys.modules, "vllm.envs")
    load("esimd_fused_scaled_add_rms_norm")
    guard.enable(NAMESPACE, writes={"esimd_fused_scaled_add_rms_norm": ["hidden_states", "residual"]})
    assert envs.compile_factors() == {}
    monkeypatch.setitem(sys.modules, "vllm.envs", envs)
    vllm_plugin.register()
    assert envs.compile_factors() == {FACTOR: guard.digest()}


def test_a_vllm_that_asks_otherwise(envs: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    """Said aloud, and the server starts: it may not use the operators."""
    with pytest.raises(GuardError, match=r"neither compile_factors nor compute_hash.*VLLM_DISABLE_COMPILE_CACHE=1"):
        guard.enable()
    vllm_plugin.register()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "schema-kit: vllm.envs has neither" in caplog.text


def test_a_table_that_cannot_be_read_is_the_end(
    envs: ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    envs.compile_factors = dict
    monkeypatch.setenv(environment.TABLE, "gone.toml")
    with pytest.raises(SystemExit, match="2"):
        vllm_plugin.register()
    (told,) = caplog.messages
    assert told.startswith("schema-kit: gone.toml: SCHEMA_KIT_TABLE names an operator table that cannot be read")


def test_the_environment_has_racing_operators_replaced(
    envs: ModuleType, library: torch.library.Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the library is there, as in a worker; eager and compiled calls are answered by this kit's operator."""
    envs.compile_factors = dict
    monkeypatch.setenv(environment.REPLACE, "races")
    vllm_plugin.register()
    name = "esimd_resadd_norm_gemv_fp8_pert"
    arguments = ", ".join(f"{'float' if arg == 'eps' else 'Tensor'} {arg}" for arg in OPS[name].arguments)
    library.define(f"{name}({arguments}) -> Tensor")
    library.impl(name, lambda *_: pytest.fail("the original was called"), "CPU")
    call = getattr(torch.ops, NAMESPACE).esimd_resadd_norm_gemv_fp8_pert
    torch._dynamo.reset()
    for way in (call, torch.compile(lambda *given: call(*given), backend="aot_eager", fullgraph=True)):
        given = samples.make(name).arguments
        truth = OfTable(OPS[name]).truth(samples.make(name).arguments)
        with torch.no_grad():
            way(*given.values())
        assert max(truth.shares(given).values()) == 0
    assert [(told.op, told.calls) for told in guard.status().replaced] == [(f"{NAMESPACE}::{name}", 2)]


def test_what_cannot_be_replaced_is_said_and_the_guard_is_on(
    envs: ModuleType,
    library: torch.library.Library,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    envs.compile_factors = dict
    monkeypatch.setenv(environment.REPLACE, "race")
    library.define("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor")
    vllm_plugin.register()
    assert "'race': expected 'races', or an operator of" in caplog.text
    assert guard.digest()


def test_the_digest_is_of_what_was_done() -> None:
    assert cache_key.digest(["b", "a"]) == cache_key.digest(["a", "b"])
    assert cache_key.digest(["a"]) != cache_key.digest(["b"])
    assert guard.digest() is None
