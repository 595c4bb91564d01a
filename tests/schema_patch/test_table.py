"""The operator table and its strictness."""

import pytest

from schema_patch.model import ToolError, buffers_kept
from schema_patch.schemas import grammar, table

KNOWN = table.load()


def test_forty_seven_operators_thirty_four_published() -> None:
    assert len(KNOWN.entries) == 47
    published = {name for name, entry in KNOWN.entries.items() if entry.published}
    assert len(published) == 34
    # The ten that their authors annotated, and the three that the published list forgot.
    annotated = {name for name in KNOWN.entries if "blockscale" in name or "gdn" in name or "qkv" in name} | {
        "q4_0_quantize"
    }
    annotated -= {"esimd_gemm_fp8_blockscale"}
    assert set(KNOWN.entries) - published - annotated == {"esimd_moe_topk", "esimd_norm_gemv_norm_fp16", "topk_v2"}


@pytest.mark.parametrize(
    ("name", "writes"),
    [
        ("esimd_resadd_norm_gemv2_fp8_pert", ("o0", "o1")),
        ("esimd_resadd_norm_gemv_fp8_pert", ("residual", "output", "normed_out")),
        ("esimd_fused_add_rms_norm", ("hidden_states", "residual")),
        ("esimd_norm_add_norm", ("h1", "out")),
        ("esimd_norm_gemv_norm_fp16", ("router_logits", "moe_input")),
        (
            "esimd_moe_scatter_fused",
            ("scattered_hidden", "scattered_weights", "topk_ids", "expert_start", "max_tokens_out"),
        ),
        ("esimd_gdn_conv_fused_seq", ("conv_state", "ssm_state", "output", "z_out")),
    ],
)
def test_what_names_do_not_tell(name: str, writes: tuple[str, ...]) -> None:
    text = f"{name}({', '.join('Tensor ' + a for a in KNOWN.entries[name].arguments)}) -> ()"
    effect = KNOWN.effect(grammar.parse(text))
    assert effect
    assert effect.writes == writes


def test_the_rest_of_the_library_is_known_to_the_guard_and_not_patched() -> None:
    more = {name: entry for name, entry in table.everything().entries.items() if name not in KNOWN.entries}
    assert len(more) == 46
    assert {space for entry in more.values() for space in entry.namespaces} == {
        "moe_ops", "moe_int4_ops", "moe_int4_prefill_ops", "eagle_ops"}  # fmt: skip
    kept = [entry.returns for entry in more.values() if buffers_kept(entry.returns)]
    assert sorted(kept) == ["private buffer"] * 3 + ["private buffer of 4"] * 8


def test_namespaces() -> None:
    topk = grammar.parse(
        "topk_v2(Tensor router_logits, Tensor top_values, Tensor top_indices, int T, int num_experts, int topk) -> Tensor"
    )
    assert KNOWN.effect(topk, "esimd_topk_v2")
    assert KNOWN.effect(topk)
    assert not KNOWN.effect(topk, "custom_esimd_kernels_vllm")
    onyx = "esimd_qkv_split_norm_rope_onyx"
    assert KNOWN.knows(onyx)
    assert not KNOWN.effect(grammar.parse(f"{onyx}(Tensor x) -> ()"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("write = ['o']", "unknown field `write`"),
        ("writes = ['p']", "'p' is none of its arguments x, o"),
        ("writes = 'o'", "writes"),
    ],
)
def test_a_misspelt_policy_is_refused(line: str, message: str) -> None:
    text = f"namespaces = ['n']\n[operators.op]\narguments = ['x', 'o']\nreturns = 'o'\n{line}\n"
    with pytest.raises(ToolError, match=r"policy\.toml") as caught:
        table.read(text.encode(), "policy.toml")
    assert message in str(caught.value)
    with pytest.raises(ToolError, match="none of its arguments"):
        table.read(text.replace(line, "").replace("returns = 'o'", "returns = 'out'").encode(), "policy.toml")
