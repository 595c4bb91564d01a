"""Kernels with drawn parameters, as text, each with what numpy makes of the same input: an independent reference.

A kernel reads `in`, 64 floats or as many words, and writes up to 64 floats or words to `out`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]


@dataclass(frozen=True)
class Case:
    """A kernel's name and body, and its result by numpy: from 64 words to as many as it writes."""

    name: str
    body: str
    expected: Callable[[Words], Words]


def _floats(words: Words) -> NDArray[np.float32]:
    return words.view(np.float32)


def _words(values: NDArray[np.generic]) -> Words:
    return np.ascontiguousarray(values).view(np.uint32)


def _selection(draw: random.Random, length: int) -> tuple[int, int, int]:
    """Size, stride and offset that fit."""
    size = draw.choice([2, 3, 4, 7, 8])
    stride = draw.randint(1, (length - 1) // (size - 1))
    return size, stride, draw.randint(0, length - 1 - (size - 1) * stride)


LOAD = "simd<float, 64> v = block_load<float, 64>(in);\n"
STORE = "block_store<float, 64>(out, v);\n"


def _progression(draw: random.Random, n: int) -> Case:
    """Lane after lane the step is added, and rounded to the element's type."""
    kind, dtype = draw.choice([("float", np.float32), ("fp16", np.float16)])
    body = f"simd<{kind}, 32> v({kind}{{in[{n % 8}]}}, {kind}{{in[{8 + n % 8}]}});\nblock_store<float, 32>(out, convert<float>(v));\n"

    def expected(words: Words) -> Words:
        first, step = _floats(words)[n % 8].astype(dtype), _floats(words)[8 + n % 8].astype(dtype)
        lanes = [first]
        for _ in range(31):
            lanes.append((lanes[-1] + step).astype(dtype))
        return _words(np.array(lanes).astype(np.float32))

    return Case(f"progression_{n}", body, expected)


def _bits(draw: random.Random, n: int) -> Case:
    function, signed = draw.choice(["fbh", "fbl", "cbit"]), draw.random() < 0.5
    kind = "int" if signed else "uint32_t"
    body = (
        f"simd<{kind}, 64> v = block_load<{kind}, 64>(reinterpret_cast<const {kind}*>(in));\n"
        f"block_store<uint32_t, 64>(reinterpret_cast<uint32_t*>(out), simd<uint32_t, 64>({function}(v)));\n"
    )

    def one(word: int) -> int:
        text = f"{word:032b}"
        if function == "cbit":
            return text.count("1")
        if function == "fbl":
            return text[::-1].find("1") & 0xFFFFFFFF
        return text.find("0" if signed and text[0] == "1" else "1") & 0xFFFFFFFF

    return Case(f"bits_{n}", body, lambda words: np.array([one(int(w)) for w in words], np.uint32))


def _mask(draw: random.Random, n: int) -> Case:
    """A mask written through views of it, then used to merge."""
    size, stride, offset = _selection(draw, 64)
    inner = draw.randint(1, size - 1)
    lane, bit = draw.randint(0, 63), draw.randint(0, 1)
    body = (
        f"{LOAD}simd_mask<64> m(0);\nm.template select<{size}, {stride}>({offset}) = 1;\n"
        f"m.template select<{size}, {stride}>({offset}).template select<1, 1>({inner}) = 0;\nm[{lane}] = {bit};\n"
        f"auto view = m.template select<8, 8>({n % 8});\nview |= view;\nsimd<float, 64> w = v;\nw.merge(v * 2.0f, m);\nv = w;\n{STORE}"
    )

    def expected(words: Words) -> Words:
        mask = np.zeros(64, bool)
        places = offset + stride * np.arange(size)
        mask[places] = True
        mask[places[inner]] = False
        mask[lane] = bool(bit)
        v = _floats(words)
        return _words(np.where(mask, v * np.float32(2), v))

    return Case(f"mask_{n}", body, expected)


def _square(draw: random.Random, n: int) -> Case:
    """Views in two dimensions: rows, columns and selections, written and read in place."""
    height, width = draw.choice([(8, 8), (4, 16), (16, 4), (2, 32)])
    row, column = draw.randrange(height), draw.randrange(width)
    sy, sx = draw.randint(1, height), draw.randint(1, width)
    ty = draw.randint(1, (height - 1) // (sy - 1)) if sy > 1 else 1
    tx = draw.randint(1, (width - 1) // (sx - 1)) if sx > 1 else 1
    oy, ox = draw.randint(0, height - 1 - (sy - 1) * ty), draw.randint(0, width - 1 - (sx - 1) * tx)
    body = (
        f"{LOAD}auto m = v.template bit_cast_view<float, {height}, {width}>();\nm.row({row}) *= 3.0f;\n"
        f"m.column({column}) += 1.0f;\nm.template select<{sy}, {ty}, {sx}, {tx}>({oy}, {ox}) = -m.template "
        f"select<{sy}, {ty}, {sx}, {tx}>({oy}, {ox});\nm.row({row})[{column}] = 7.0f;\n{STORE}"
    )

    def expected(words: Words) -> Words:
        m = _floats(words).copy().reshape(height, width)
        m[row] *= np.float32(3)
        m[:, column] += np.float32(1)
        m[oy : oy + (sy - 1) * ty + 1 : ty, ox : ox + (sx - 1) * tx + 1 : tx] *= np.float32(-1)
        m[row, column] = 7
        return _words(m.ravel())

    return Case(f"square_{n}", body, expected)


def _view(draw: random.Random, n: int) -> Case:
    """Selections of selections of variables are places; of a temporary, copies; one element is taken for all lanes."""
    size, stride, offset = _selection(draw, 64)
    lane = draw.randrange(64)
    body = (
        f"{LOAD}auto copy = (v + 1.0f).template select<{size}, {stride}>({offset});\n"
        f"v.template select<{size}, {stride}>({offset}) = copy * v.template select<1, 1>({lane});\n"
        f"v.template select<32, 2>(1).template select<8, 3>({n % 8})++;\nv.template select<32, 1>(0) = v.template select<32, 1>(16);\n{STORE}"
    )

    def expected(words: Words) -> Words:
        v = _floats(words).copy()
        places = offset + stride * np.arange(size)
        v[places] = (v[places] + np.float32(1)) * v[lane]
        v[1 + 2 * (n % 8 + 3 * np.arange(8))] += np.float32(1)
        v[:32] = v[16:48].copy()
        return _words(v)

    return Case(f"view_{n}", body, expected)


def _replicated(draw: random.Random, n: int) -> Case:
    times, width = draw.choice([(4, 8), (8, 4), (2, 16), (16, 2)])
    between, step = draw.randint(0, 3), draw.randint(0, 2)
    offset = draw.randint(0, 63 - (times - 1) * between - (width - 1) * step)
    indices = [draw.randrange(64) for _ in range(8)]
    body = (
        f"{LOAD}simd<float, 32> w = v.template replicate_vs_w_hs<{times}, {between}, {width}, {step}>({offset});\n"
        f"simd<uint16_t, 8> at({{{', '.join(map(str, indices))}}});\nsimd<float, 8> few = v.iselect(at);\n"
        "block_store<float, 32>(out, w);\nblock_store<float, 8>(out + 32, few);\n"
    )

    def expected(words: Words) -> Words:
        v = _floats(words)
        blocks = offset + between * np.arange(times)[:, None] + step * np.arange(width)
        return _words(np.concatenate([v[blocks.ravel()], v[indices]]))

    return Case(f"replicated_{n}", body, expected)


def _lanes(draw: random.Random, n: int) -> Case:
    """LSC: narrow elements in wide lanes, several elements of a lane, lanes that are off."""
    size, dtype = draw.choice([("u8u32", np.uint8), ("u16u32", np.uint16), ("u32", np.uint32)])
    each = 1 if size != "u32" else draw.choice([1, 2, 4])
    width, base, bits = np.dtype(dtype).itemsize, 4 * draw.randint(0, 4), draw.getrandbits(8)
    body = (
        "auto* p = reinterpret_cast<const uint32_t*>(in);\nauto* q = reinterpret_cast<uint32_t*>(out);\n"
        f"simd<uint32_t, 8> at({base}u, {width * each}u);\nsimd_mask<8> on = unpack_mask<8>({bits});\n"
        f"auto w = xesimd::lsc_gather<uint32_t, {each}, xesimd::lsc_data_size::{size}>(p, at, on, simd<uint32_t, {8 * each}>(9u));\n"
        f"block_store<uint32_t, {8 * each}>(q, w);\n"
        f"block_store<uint32_t, 16>(q + 32, simd<uint32_t, 16>(0u));\n"
        f"xesimd::lsc_scatter<uint32_t, 1, xesimd::lsc_data_size::{size}>(q + 32, simd<uint32_t, 8>(0u, {width}u), simd<uint32_t, 8>(w.template select<8, 1>(0)), on);\n"
    )

    def expected(words: Words) -> Words:
        memory = words.view(dtype)
        first = base // width
        lanes = np.full((each, 8), 9, np.uint32)
        for i in range(8):
            if bits >> i & 1:
                lanes[:, i] = memory[first + i * each : first + (i + 1) * each]
        made = np.zeros(64, np.uint32)
        made[: 8 * each] = lanes.ravel()
        narrow = made[32:].view(dtype)
        for i in range(8):
            if bits >> i & 1:
                narrow[i] = lanes[0, i].astype(dtype)
        return made[:48]

    return Case(f"lanes_{n}", body, expected)


FAMILIES = (_progression, _bits, _mask, _square, _view, _replicated, _lanes)


def cases(each: int = 6, seed: int = 20261130) -> Iterator[Case]:
    """`each` of every family, the same for the same seed."""
    draw = random.Random(seed)
    for family in FAMILIES:
        for n in range(each):
            yield family(draw, n)


def source() -> str:
    """All cases as one source for the test tree."""
    parts = ['#include "pieces.h"\n']
    parts += [f"KERNEL({case.name}) {{\n{case.body}}}\n" for case in cases()]
    found = "".join(f"  FOUND({case.name}, 1, 1)\n" for case in cases())
    head = "bool run_value(sycl::queue& queue, const char* name, const float* in, float* out)"
    return "\n".join([*parts, f"{head} {{\n{found}  return false;\n}}\n"])
