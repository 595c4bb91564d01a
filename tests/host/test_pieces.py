"""Each piece of the stand-in headers against its documented meaning, computed by torch."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
import torch

Run = Callable[..., torch.Tensor]
COUNT = torch.arange(1024.0)


def test_operations_compute_in_the_documented_types(run: Run) -> None:
    values = torch.tensor([1.5, 300.25, -2.0, 1000.5, 7.0, 2049.0, -40.0, 12000.0])
    half, short = values.half(), values.trunc()
    got = run("promotions", values, 32).view(4, 8)
    assert torch.equal(got[0], (half + half).float())
    assert torch.equal(got[1], short + short)  # 24000 fits no int16
    assert torch.equal(got[2], half.float() * 2.5)
    assert torch.equal(got[3], (short.half() * 0.5).float())


def test_selections_are_seen_in_place(run: Run) -> None:
    expected = COUNT[:32].clone()
    expected[1:16:2] = expected[:8] * 2
    expected[16:20] += expected[20:24]
    expected[[2, 10]] = -1.0
    expected[31] = expected[0] + 100
    assert torch.equal(run("selects", COUNT, 32), expected)


def test_blocks_are_replicated(run: Run) -> None:
    got = run("replicates", COUNT, 56)
    assert got[:16].tolist() == [2, 3, 4, 5] * 4
    assert got[16:28].tolist() == [1, 2, 3, 4, 3, 4, 5, 6, 5, 6, 7, 8]
    assert got[28:40].tolist() == [0, 2, 4, 6, 8, 10, 5, 7, 9, 11, 13, 15]
    assert got[40:48].tolist() == [0, 1, 2, 3] * 2
    assert got[48:].tolist() == [2.0] * 8


def test_the_bytes_of_words_are_little_endian(run: Run) -> None:
    words = torch.tensor([0, 1, 255, 256, 65536, 70000, 2**20, 2**23], dtype=torch.int32)
    got = run("bit_casts", words.float(), 40)
    assert got[:32].tolist() == list(words.numpy().tobytes())
    assert torch.equal(got[32:], (words + 2**24).float())


def test_conversions_truncate_and_round_to_even(run: Run) -> None:
    values = torch.tensor(
        [
            0.5,
            -1.7,
            3.99,
            100.0,
            -100.4,
            2049.0,
            2051.0,
            1e-8,
            127.0,
            -128.0,
            1 + 2**-8,
            1 + 3 * 2**-8,
            0,
            7,
            65504.0,
            33.3,
        ]
    )
    got = run("converts", values, 64).view(4, 16)
    assert torch.equal(got[0], values.trunc())
    assert torch.equal(got[1], values.half().float())
    assert torch.equal(got[2], values.bfloat16().float())
    small = values.abs() < 129
    assert torch.equal(got[3][small], values.trunc()[small])


def test_masks_choose_lanes(run: Run) -> None:
    v = COUNT[:16]
    large, odd = v > 8, v % 2 == 1
    got = run("masks", COUNT, 64).view(4, 16)
    assert torch.equal(got[0], torch.where(large & odd, -1.0, v))
    assert torch.equal(got[1], torch.where(large | odd, v, 0.0))
    assert got[2, :6].tolist() == [0xFE00, 0x01FF, 1, 0, 1, 9]
    assert torch.equal(got[3], torch.where(v % 5 == 0, 9.0, 2.0))  # 0x8421: lanes 0, 5, 10, 15


def test_reductions(run: Run) -> None:
    v = (COUNT[:16] - 5) * 1.5
    got = run("reductions", v, 8)
    assert got[:6].tolist() == [v.sum(), v[1:5].prod(), v.max(), v.min(), v.trunc().sum(), v.sum()]


def test_mathematics_is_that_of_libm(run: Run) -> None:
    v = torch.linspace(0.25, 8, 16)
    got = run("mathematics", v, 224).view(14, 16)
    expected = [
        v.exp(), v.log(), v.sqrt(), v.rsqrt(), 1 / v, v.clamp(min=2), v.clamp(max=2), (v - 4).abs(), v.sin(), v.cos(),
        v.exp2(), v.log2(), (v * 1.5).floor(), (v * 0.5).round(),
    ]  # fmt: skip
    torch.testing.assert_close(got, torch.stack(expected), rtol=1e-6, atol=1e-6)


def test_blocks_at_byte_offsets(run: Run) -> None:
    assert torch.equal(run("blocks", COUNT, 64), COUNT[:64])


def test_gathers_and_scatters_by_lane(run: Run) -> None:
    v, even = COUNT[:16], COUNT[:16] % 2 == 0
    got = run("gathers", COUNT, 48).view(3, 16)
    assert torch.equal(got[0], v)
    assert torch.equal(got[1], torch.where(even, v.flip(0), -1.0))
    assert torch.equal(got[2], torch.where(even.flip(0), 5.0, 0.0))


def test_atomics_of_five_groups(run: Run) -> None:
    got = run("atomics", COUNT, 40)
    assert torch.equal(got[:8], COUNT[:8] * 5)
    words = got[8:].view(torch.int32).view(4, 8)
    assert [row.unique().tolist() for row in words] == [[5], [15], [4], [7]]


def test_lsc_messages_keep_lanes_apart(run: Run) -> None:
    got = run("lsc", COUNT, 80)
    assert torch.equal(got[:16], COUNT[:16])
    assert torch.equal(got[16:48], torch.cat([COUNT[0:32:2], COUNT[1:32:2]]))
    assert torch.equal(got[48:], COUNT[:32] + 100)


def test_blocks_of_surfaces(run: Run) -> None:
    surface = COUNT[:256].view(16, 16)
    seen = torch.zeros(32, 32)  # what is outside reads as zero
    seen[:12, :16] = surface[:12]
    got = run("lsc_2d", COUNT, 512)
    assert torch.equal(got[:64], torch.cat([seen[2:6, :8].flatten(), seen[2:6, 8:16].flatten()]))
    assert torch.equal(got[64:128], torch.cat([seen[10:14, 8:16].flatten(), seen[10:14, 16:24].flatten()]))
    assert torch.equal(got[128:160], seen[1:5, 4:12].T.flatten())
    stored = torch.zeros(16, 16)
    stored[10:12, 8:16] = surface[:2, :8]  # rows 12 and 13 are outside
    assert torch.equal(got[256:].view(16, 16), stored)


def test_transformed_blocks_have_rows_side_by_side(run: Run) -> None:
    halves = torch.arange(512).half()
    data = torch.cat([halves.view(torch.float32), torch.zeros(256)])
    got = run("lsc_2d_transformed", data, 256)
    pairs = halves.view(16, 32)[4:12, :16].float()
    assert torch.equal(got[:128], pairs.view(4, 2, 16).transpose(1, 2).flatten())
    fours = halves.view(torch.uint8).view(16, 64)[:8, 16:32].float()
    assert torch.equal(got[128:], fours.view(2, 4, 16).transpose(1, 2).flatten())


def tiles(dtype: torch.dtype, K: int, low: int, high: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(K)
    c = torch.randint(-50, 50, (8, 16)).float()
    return c, torch.randint(low, high, (8, K)).to(dtype), torch.randint(low, high, (K, 16)).to(dtype)


def vnni(b: torch.Tensor, rows: int) -> torch.Tensor:
    """[K, 16] with `rows` consecutive rows of a column side by side."""
    return b.reshape(-1, rows, 16).transpose(1, 2).contiguous()


def packed(values: torch.Tensor, bits: int) -> bytes:
    """Integers of fewer than 8 bits, the first in the lowest bits."""
    flat = (values.flatten().long() & (2**bits - 1)).view(-1, 8 // bits)
    return bytes((flat << torch.arange(0, 8, bits)).sum(1).tolist())


def operand(c: torch.Tensor, a: bytes, b: bytes) -> torch.Tensor:
    data = c.numpy().tobytes() + a.ljust(1024, b"\0") + b.ljust(2048, b"\0")
    return (
        torch.tensor(struct.unpack(f"{len(data) // 4}I", data), dtype=torch.int64).to(torch.int32).view(torch.float32)
    )


def raw(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.contiguous().view(-1).view(torch.uint8).tolist())


@pytest.mark.parametrize(
    ("name", "dtype", "K", "low", "high"),
    [
        ("dpas_fp16", torch.float16, 16, -8, 9),
        ("dpas_fp16_half_sum", torch.float16, 16, -4, 5),
        ("dpas_bf16", torch.bfloat16, 16, -8, 9),
        ("dpas_s8", torch.int8, 32, -128, 128),
        ("dpas_u8", torch.uint8, 32, 0, 256),
        ("dpas_tf32", torch.float32, 8, -8, 9),
    ],
)
def test_dpas_multiplies_matrices(run: Run, name: str, dtype: torch.dtype, K: int, low: int, high: int) -> None:
    c, a, b = tiles(dtype, K, low, high)
    rows = 4 // a.element_size()
    got = run(name, operand(c, raw(a), raw(vnni(b, rows))), 128)
    assert torch.equal(got.view(8, 16), c + a.float() @ b.float())


def test_dpas_of_four_bits(run: Run) -> None:
    c, a, b = tiles(torch.int8, 64, -8, 8)
    got = run("dpas_s4", operand(c, packed(a, 4), packed(vnni(b, 8), 4)), 128)
    assert torch.equal(got.view(8, 16), c + a.float() @ b.float())


def test_dpas_of_four_bits_and_eight(run: Run) -> None:
    c, a, _ = tiles(torch.int8, 32, -128, 128)
    _, _, b = tiles(torch.uint8, 32, 0, 16)
    got = run("dpas_u4_s8", operand(c, raw(a), packed(vnni(b, 4), 4)), 128)
    assert torch.equal(got.view(8, 16), c + a.float() @ b.float())


def test_dpas_without_c(run: Run) -> None:
    c, a, b = tiles(torch.float16, 16, -8, 9)
    got = run("dpas_no_c", operand(c, raw(a), raw(vnni(b, 2))), 64)
    assert torch.equal(got.view(4, 16), a[:4].float() @ b.float())


@pytest.mark.parametrize("schedule", ["descending,lockstep", "ascending,serial", "random,shuffled,preempt=0.5,seed=3"])
def test_barriers_hold_under_every_schedule(run: Run, schedule: str) -> None:
    assert torch.equal(run("slm_reversal", COUNT, 256, schedule), COUNT[:256].view(16, 16).flip(0).flatten())
    assert run("slm_atomics", COUNT, 16, schedule).tolist() == [28.0] * 16
    assert torch.equal(run("named_barriers", COUNT, 64, schedule), COUNT[:64])


def test_lanes_of_shared_memory(run: Run) -> None:
    got = run("slm_lanes", COUNT, 32)
    assert torch.equal(got[:16], COUNT[:16].flip(0))
    assert got[16:].tolist() == [7.0] * 16


@pytest.mark.parametrize("schedule", ["descending,lockstep", "random,shuffled,preempt=0.5,seed=3"])
def test_plain_sycl_kernels(run: Run, schedule: str) -> None:
    v = COUNT[:32]
    got = run("simt", COUNT, 161, schedule)
    assert torch.equal(got[:32], v.flip(0))
    assert got[32:64].tolist() == [float(v.sum())] * 32
    assert got[64:96].tolist() == [15.0] * 16 + [31.0] * 16  # sub-groups of 16
    assert torch.equal(got[96:128], v.view(16, 2).flip(1).flatten())
    assert got[128:160].tolist() == [3.0] * 16 + [19.0] * 16
    assert got[160] == v.sum()


@pytest.mark.parametrize("schedule", ["ascending,lockstep", "shuffled,descending,seed=5"])
def test_plain_sycl_by_name_and_by_address(run: Run, schedule: str) -> None:
    given = torch.arange(1.0, 33.0)
    output = run("named", given, 160, schedule)
    before = torch.cat([torch.tensor([5.0]), 5 + given[:15].cumsum(0)])
    assert torch.equal(output[:32], torch.cat([before, given[16:20].cumprod(0), 2 + given[20:].cumsum(0)]))
    halves = given.reshape(2, 16)
    assert torch.equal(output[32:64].reshape(2, 16)[:, 2:], halves[:, :14])  # the first two have none before them
    assert torch.equal(output[64:96], torch.tensor([521.0, 621.0]).repeat_interleave(16))
    assert torch.equal(output[96:128], given * torch.tensor([1.0, -1.0]).repeat(16) + 1)
    fours = torch.stack([given[0::4], given[1::4], torch.ones(8), torch.full((8,), 2.0)], dim=1)
    assert torch.equal(output[128:160], fours.reshape(-1))
