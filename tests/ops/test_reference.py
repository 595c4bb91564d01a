"""The references against formulas written another way: loops over elements in fp64, and number formats bit by bit."""

import math

import pytest
import torch

from esimd_ops import reference, samples
from esimd_ops.reference import Decoder, fp8
from esimd_ops.samples import build
from esimd_ops.table import OPS


def decoded(code, e5m2):
    """One fp8 code by the definition of its format; NaN and infinity as the formats have them."""
    mantissa_bits, bias = (2, 15) if e5m2 else (3, 7)
    sign = -1.0 if code & 0x80 else 1.0
    exponent, mantissa = (code & 0x7F) >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
    if e5m2 and exponent == 31:
        return sign * math.inf if mantissa == 0 else math.nan
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


@pytest.mark.parametrize("decoder", Decoder)
@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.uint8])
def test_every_fp8_code(decoder, dtype):
    e5m2 = dtype is torch.float8_e5m2 or decoder is Decoder.RAW
    bits = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    for code, value in enumerate(fp8(bits.view(dtype), decoder, torch.float64).tolist()):
        expected = decoded(code, e5m2)  # an E4M3 code of all ones is 480 by its definition
        subnormal = (code & 0x7F) >> (2 if e5m2 else 3) == 0
        if subnormal and (decoder is Decoder.FLUSH or (decoder is Decoder.EXACT and e5m2)):
            expected = 0.0 * expected
        assert value == expected or (math.isnan(value) and math.isnan(expected)), code


def test_int4_takes_the_low_nibble_first_in_bytes_and_words():
    packed = torch.arange(128, dtype=torch.uint8).reshape(2, 64)
    scale = torch.tensor([[0.5], [-2.0]]).half()
    weight = reference.int4_weight(packed, scale, torch.float32)
    for row, column, factor in ((0, 1, 0.5), (0, 17, 0.5), (1, 63, -2.0)):
        byte = int(packed[row, column])
        assert weight[row, 2 * column] == ((byte & 15) - 8) * factor
        assert weight[row, 2 * column + 1] == ((byte >> 4) - 8) * factor
    assert torch.equal(reference.int4_weight(packed.view(torch.int32), scale, torch.float32), weight)


def test_quantise_then_decode_is_near():
    arguments = samples.make("q4_0_quantize", (16, 1024)).arguments
    expected = reference.of("q4_0_quantize")(**arguments)
    decoded = reference.int4_weight(expected["out_qweight"], expected["out_scale"], torch.float32)
    step = expected["out_scale"].float().abs().repeat_interleave(128, -1)
    assert ((decoded - arguments["input"].float()).abs() <= step + 1e-3).all()
    # 15 is as far as a nibble goes: the largest element of the other sign may lose half a step more.


def test_quantise_a_block_of_zeros_and_a_tie():
    arguments = samples.make("q4_0_quantize", (3, 256, "zeros")).arguments
    expected = OPS["q4_0_quantize"].reference(**arguments)
    assert expected["out_scale"][0, 0] == 0
    assert torch.signbit(expected["out_scale"][0, 0])
    assert (expected["out_qweight"][0, :16] == int.from_bytes(b"\x88" * 4, "big") - 2**32).all()
    assert expected["out_scale"][-1, -1] == -9 / 8  # the tie is positive


def test_top_k_of_equal_logits_is_in_order():
    arguments = samples.make("esimd_moe_topk", (5, "ties")).arguments
    expected = reference.of("esimd_moe_topk")(**arguments)
    assert expected["top_indices"][0].tolist() == list(range(8))
    assert (expected["top_values"][0] == 0.125).all()
    logits = arguments["router_logits"]
    for row, indices in enumerate(expected["top_indices"].tolist()):
        order = sorted(range(128), key=lambda i, row=row: (-logits[row, i].item(), i))
        assert indices == order[:8]


def heads(flat, count):
    return [flat[i * 128 : (i + 1) * 128] for i in range(count)]


def gdn_loop(a, row, history, state, *, interleaved):
    """One token by scalar loops in Python's own doubles: output, new state, new history."""
    H, HV, g = a["H"], a["HV"], a["HV"] // a["H"]
    qkvz, ba = a["qkvz"][row].tolist(), a["ba"][row].tolist()
    if interleaved:
        q, k, v, z, b, al = [], [], [], [], [], []
        width = (2 + 2 * g) * 128
        for group in range(H):
            part = qkvz[group * width : (group + 1) * width]
            q, k = q + part[:128], k + part[128:256]
            v, z = v + part[256 : 256 + g * 128], z + part[256 + g * 128 :]
            b, al = b + ba[group * 2 * g : group * 2 * g + g], al + ba[group * 2 * g + g : (group + 1) * 2 * g]
        x = q + k + v
    else:
        dim = (2 * H + HV) * 128
        x, z, b, al = qkvz[:dim], qkvz[dim:], ba[:HV], ba[HV:]
    weight, bias = a["conv_weight"].tolist(), a["conv_bias"].tolist()
    window = [*history.tolist(), x]
    y = []
    for channel in range(len(x)):
        total = bias[channel] + sum(window[t][channel] * weight[channel][t] for t in range(4))
        y.append(total / (1 + math.exp(-total)))
    qs, ks, vs = heads(y[: H * 128], H), heads(y[H * 128 : 2 * H * 128], H), heads(y[2 * H * 128 :], HV)
    out, states = [], []
    for hv in range(HV):
        q, k, v = qs[hv // g], ks[hv // g], vs[hv]
        q = [e / math.sqrt(sum(e * e for e in q) + 1e-6) * a["scale"] for e in q]
        k = [e / math.sqrt(sum(e * e for e in k) + 1e-6) for e in k]
        dt = al[hv] + a["dt_bias"][hv].item()
        decay = math.exp(-math.exp(a["A_log"][hv].item()) * (dt if dt > 20 else math.log1p(math.exp(dt))))
        beta = 1 / (1 + math.exp(-b[hv]))
        S = [[decay * s for s in line] for line in state[hv].tolist()]
        for i in range(128):
            d = (v[i] - sum(s * e for s, e in zip(S[i], k, strict=True))) * beta
            S[i] = [s + d * e for s, e in zip(S[i], k, strict=True)]
        out.append([sum(s * e for s, e in zip(line, q, strict=True)) for line in S])
        states.append(S)
    return torch.tensor(out), torch.tensor(states), torch.tensor(window[1:])


@pytest.mark.parametrize("operator", ["esimd_gdn_conv_fused", "esimd_gdn_conv_fused_seq"])
def test_gdn_against_a_loop(operator):
    a = samples.make(operator, (2, 2, 4)).arguments
    expected = OPS[operator].reference(**a, compute=torch.float64)
    for row in range(2):
        conv, ssm = a["conv_state_indices"][row], a["ssm_state_indices"][row]
        interleaved = operator == "esimd_gdn_conv_fused"
        out, state, history = gdn_loop(a, row, a["conv_state"][conv], a["ssm_state"][ssm], interleaved=interleaved)
        torch.testing.assert_close(expected["output"][row].double(), out.double(), rtol=1e-3, atol=1e-7)
        torch.testing.assert_close(expected["ssm_state"][ssm].double(), state.double(), rtol=1e-3, atol=1e-7)
        assert torch.equal(expected["conv_state"][conv], history.half())


def test_speculative_gdn_is_the_single_token_one_token_after_token():
    """Where every token is saved, P tokens are P calls, each from the slot of the one before."""
    a = samples.make("esimd_gdn_conv_fused_seq_spec", (2, 3, 8, 16)).arguments
    expected = reference.of("esimd_gdn_conv_fused_seq_spec")(**a)
    shared = ("conv_weight", "conv_bias", "A_log", "dt_bias", "H", "HV", "K", "V", "scale")
    conv, ssm = a["conv_state"].clone(), a["ssm_state"].clone()
    for s in range(2):
        slots = a["spec_state_indices"][s]
        before = slots[max(int(a["num_accepted_tokens"][s]) - 1, 0)]
        history, state = a["conv_state"][before], a["ssm_state"][before]
        for t in range(3):
            row = int(a["token_indx"][3 * s + t])
            one = reference.of("esimd_gdn_conv_fused_seq")(
                **{name: a[name] for name in shared},
                qkvz=a["qkvz"][row : row + 1],
                ba=a["ba"][row : row + 1],
                conv_state=history[None],
                ssm_state=state[None],
                conv_state_indices=torch.zeros(1, dtype=torch.int32),
                ssm_state_indices=torch.zeros(1, dtype=torch.int32),
                output=a["output"][:1],
                z_out=a["z_out"][:1],
                N=1,
            )
            history, state = one["conv_state"][0], one["ssm_state"][0]
            conv[slots[t]], ssm[slots[t]] = history, state
            # A call of its own rounds the state that it hands on.
            torch.testing.assert_close(expected["output"][row], one["output"][0], rtol=4e-3, atol=1e-5)
    assert torch.equal(expected["conv_state"], conv)
    torch.testing.assert_close(expected["ssm_state"], ssm, rtol=4e-3, atol=1e-4)
    unnamed = [row for row in range(len(a["output"])) if row not in a["token_indx"].tolist()]
    assert expected["output"][unnamed].isnan().all()


def test_speculative_gdn_keeps_the_state_unrounded_and_the_null_block_alone():
    a = samples.make("esimd_gdn_conv_fused_seq_spec", (2, 3, 8, 16, "null-block")).arguments
    expected = reference.of("esimd_gdn_conv_fused_seq_spec")(**a, compute=torch.float64)
    assert torch.equal(expected["ssm_state"][0], a["ssm_state"][0])
    assert torch.equal(expected["conv_state"][0], a["conv_state"][0])
    a["spec_state_indices"][:, :-1] = a["spec_state_indices"][
        :, :1
    ]  # saved or not: the last token's output is the same
    again = reference.of("esimd_gdn_conv_fused_seq_spec")(
        **{**a, "num_accepted_tokens": torch.ones(2, dtype=torch.int32)}
    )
    a["spec_state_indices"][:, 1:] = 0
    unsaved = reference.of("esimd_gdn_conv_fused_seq_spec")(
        **{**a, "num_accepted_tokens": torch.ones(2, dtype=torch.int32)}
    )
    assert torch.equal(again["output"].nan_to_num(), unsaved["output"].nan_to_num())


def test_rope_of_one_lane():
    a = samples.make("esimd_qkv_split_norm_rope", (3, 4, 2, 1, 64)).arguments
    expected = reference.of("esimd_qkv_split_norm_rope")(**a, compute=torch.float64)
    token, head, lane = 1, 2, 5
    x = a["qkv_state"][token, 2 * head * 256 : (2 * head + 1) * 256].double()
    y = x * (a["norm_wq"].double() + 1) / torch.sqrt((x * x).mean() + 1e-6)
    cos, sin = (a["cos_sin_cache"][a["positions"][token], lane + offset].double() for offset in (0, 32))
    got = expected["q_out"][token, head * 256 :].double()
    assert math.isclose(got[lane], y[lane] * cos - y[lane + 32] * sin, rel_tol=1e-3)
    assert math.isclose(got[lane + 32], y[lane + 32] * cos + y[lane] * sin, rel_tol=1e-3)
    assert math.isclose(got[200], y[200], rel_tol=1e-3)
    gate = a["qkv_state"][token, (2 * head + 1) * 256 + lane].double()
    assert math.isclose(expected["gate_out"][token, head * 256 + lane], torch.sigmoid(gate), rel_tol=1e-3)
    assert torch.equal(expected["v_out"][token], a["qkv_state"][token, -512:])


def test_scatter_then_gather_is_a_weighted_copy():
    a = samples.make("esimd_moe_scatter_fused", (70, 4, 64, 384)).arguments
    sent = reference.of("esimd_moe_scatter_fused")(**a)
    starts, experts = sent["expert_start"].tolist(), a["top_indices"].flatten().tolist()
    for slot, row in enumerate(sent["topk_ids"].tolist()):
        assert starts[experts[slot]] <= row < starts[experts[slot] + 1]
        assert torch.equal(sent["scattered_hidden"][row], a["hidden_states"][slot // 4])
    assert sent["max_tokens_out"].item() == max(experts.count(e) for e in range(64))
    back = reference.of("esimd_moe_gather")(
        moe_output=sent["scattered_hidden"],
        topk_ids=sent["topk_ids"].reshape(70, 4),
        scattered_weights=sent["scattered_weights"],
        final_hidden=build.poison(70, 384),
        K=384,
        topk=4,
        T=70,
    )["final_hidden"]
    expected = a["hidden_states"].float() * a["top_values"].float().sum(1, keepdim=True)
    torch.testing.assert_close(back.float(), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("operator", ["esimd_moe_gemm_fp8", "esimd_moe_gemm_fp8_pert", "esimd_moe_gemm_fp8_blockscale"])
def test_grouped_products_by_rows(operator):
    sizes = next(sizes for sizes in samples.SIZES[operator][1] if "uncovered" in sizes)
    a = samples.make(operator, sizes).arguments
    expected = OPS[operator].reference(**a, compute=torch.float64)["output"]
    starts, blockscale = a["expert_idx"].tolist(), "weight_scale" in a
    for row in range(len(expected)):
        owner = [e for e in range(a["num_experts"]) if starts[e] <= row < starts[e + 1]]
        if not owner:
            assert expected[row].isnan().all()
            continue
        weight = fp8(a["weight"][owner[0]], Decoder.EXACT if blockscale else Decoder.RAW, torch.float64)
        for n in (0, a["N"] - 1):
            if blockscale:
                scale = a["weight_scale"][owner[0], n // 128].double().repeat_interleave(128)
            else:
                scale = a["scale"][owner[0]].double().reshape(-1)[n if a["scale"].dim() == 2 else 0]
            dot = (a["input"][row].double() * weight[n] * scale).sum()
            assert math.isclose(expected[row, n], dot, rel_tol=1e-3, abs_tol=1e-4)


@pytest.mark.parametrize("operator", sorted(OPS))
def test_arguments_are_only_read(operator):
    arguments = samples.make(operator).arguments
    before = {name: value.clone() for name, value in arguments.items() if isinstance(value, torch.Tensor)}
    expected = OPS[operator].reference(**arguments)
    assert set(expected) == set(OPS[operator].writes)
    for name, value in before.items():
        assert torch.equal(value.view(torch.uint8), arguments[name].view(torch.uint8)), name
    for name, value in expected.items():
        assert (value.shape, value.dtype) == (arguments[name].shape, arguments[name].dtype), name


@pytest.mark.parametrize("operator", sorted(OPS))
def test_samples_are_the_same_every_time(operator):
    one, other = samples.make(operator).arguments, samples.make(operator).arguments
    for name, value in one.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value.view(torch.uint8), other[name].view(torch.uint8)), name
