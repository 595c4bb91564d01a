"""Sizes with which served models call the operators that update what other work-groups read: the shapes named "models".

From the models' configurations: key and value heads of the gated delta net (each 128 wide), hidden size, experts.
Tensor parallelism divides the heads and the rows of a dense product; a router is whole on every card.
"""

from dataclasses import dataclass

from .build import Sizes

BATCHES = (1, 2, 3, 4, 6, 8, 16, 32, 48)
PARALLEL = (1, 2, 4)
DRAFTS = (1, 2, 4)  # sequences that speculate at once


@dataclass(frozen=True)
class Model:
    """What of a model's configuration the operators' sizes follow from. `dense`: rows of gate and up together."""

    name: str
    hidden: int
    key_heads: int
    value_heads: int
    experts: int = 0
    dense: int = 0
    interleaved: bool = False  # rows of qkvz hold a group for each key head


MODELS = (
    Model("Qwen3-Next-80B-A3B", 2048, 16, 32, experts=512, interleaved=True),
    Model("Qwen3.6-35B-A3B", 2048, 16, 32, experts=256),
    Model("Qwen3.6-27B", 5120, 16, 48, dense=34816),
)


def _delta(*, interleaved: bool) -> tuple[Sizes, ...]:
    heads = [
        (model.key_heads // tp, model.value_heads // tp)
        for model in MODELS
        for tp in PARALLEL
        if model.interleaved == interleaved
    ]
    return tuple((batch, *pair) for pair in dict.fromkeys(heads) for batch in BATCHES)


def _speculative() -> tuple[Sizes, ...]:
    """The published kernel takes the heads of two cards alone; three draft tokens beside the one that is sure."""
    heads = [(m.key_heads // 2, m.value_heads // 2) for m in MODELS if not m.interleaved]
    return tuple((batch, 4, *pair) for pair in heads for batch in DRAFTS)


def _routers() -> tuple[Sizes, ...]:
    return tuple((model.experts, model.hidden) for model in MODELS if model.experts)


def _dense() -> tuple[Sizes, ...]:
    """Gate and up of a dense layer over 4 cards."""
    return tuple((model.dense // 4, model.hidden) for model in MODELS if model.dense)


SIZES: dict[str, tuple[Sizes, ...]] = {
    "esimd_gdn_conv_fused": _delta(interleaved=True),
    "esimd_gdn_conv_fused_seq": _delta(interleaved=False),
    "esimd_gdn_conv_fused_seq_spec": _speculative(),
    "esimd_resadd_norm_gemv_fp8_pert": (*_routers(), *_dense()),
    "esimd_resadd_norm_gemv_int4_pert": (*_routers(), *_dense()),
    "esimd_scaled_resadd_norm_gemv_fp8_pert": _routers(),
}
