"""Bytes, against plain loops over them: what changed, whose it is, what overlaps."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from esimd_ops.observe import memory
from esimd_ops.observe.before import Before
from esimd_ops.observe.handed import Results
from esimd_ops.observe.record import OperatorSeen, Where

SIZE = 48


@st.composite
def views(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Sizes, strides and offset of a view into SIZE bytes."""
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=2)))
    strides = tuple(draw(st.integers(0, 5)) for _ in sizes)
    reach = sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
    return sizes, strides, draw(st.integers(0, SIZE - 1 - reach))


def elements(view: Tensor) -> set[int]:
    return set(torch.arange(SIZE).as_strided(view.shape, view.stride(), view.storage_offset()).flatten().tolist())


@settings(max_examples=200, deadline=None)
@given(
    parts=st.lists(st.tuples(views(), st.booleans()), min_size=1, max_size=4), flips=st.sets(st.integers(0, SIZE - 1))
)
def test_changed_bytes_belong_to_declared_arguments_then_to_the_only_other_one(
    parts: list[tuple[tuple[tuple[int, ...], tuple[int, ...], int], bool]], flips: set[int]
) -> None:
    base = torch.zeros(SIZE, dtype=torch.uint8)
    tensors = {f"a{n}": base.as_strided(*view) for n, (view, _) in enumerate(parts)}
    declared = frozenset(f"a{n}" for n, (_, declared) in enumerate(parts) if declared)
    before, seen = Before(tensors, Results(), 0, declared), OperatorSeen("")
    if flips:
        memory_of(base)[torch.tensor(sorted(flips))] ^= 255
    before.compare(seen, Where("here:1", "", 1))

    own = {name: elements(view) for name, view in tensors.items()}
    covered = set().union(*(own[name] for name in declared))
    rest = flips - covered
    expected = {name: len(flips & own[name]) for name in declared}
    owners = {byte: [name for name in own if name not in declared and byte in own[name]] for byte in rest}
    for name in own.keys() - declared:
        expected[name] = sum(names == [name] for names in owners.values())
    assert {name: times.bytes for name, times in seen.writes.items()} == {n: c for n, c in expected.items() if c}
    assert bool(seen.either) == any(len(names) > 1 for names in owners.values())
    assert sum(times.bytes for times in seen.outside.values()) == sum(not names for names in owners.values())


def memory_of(tensor: Tensor) -> Tensor:
    """The same bytes, of which torch does not count the writes."""
    return torch.frombuffer((__import__("ctypes").c_char * SIZE).from_address(tensor.data_ptr()), dtype=torch.uint8)


@settings(max_examples=200, deadline=None)
@given(one=views(), other=views())
def test_two_views_overlap_where_a_byte_belongs_to_both(
    one: tuple[tuple[int, ...], tuple[int, ...], int], other: tuple[tuple[int, ...], tuple[int, ...], int]
) -> None:
    base = torch.zeros(SIZE, dtype=torch.uint8)
    a, b = base.as_strided(*one), base.as_strided(*other)
    assert memory.overlap(a, b) == bool(elements(a) & elements(b))


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_checksums_tell_any_change_of_a_block_and_no_other(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 3 * memory.BLOCK))
    words = torch.randint(0, 256, (size,), dtype=torch.uint8)
    first = memory.checksums(words)
    assert torch.equal(first, memory.checksums(words.clone()))
    changed = words.clone()
    for place in data.draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=4)):
        changed[place] ^= data.draw(st.integers(1, 255))
    expected = [
        not torch.equal(a, b) for a, b in zip(words.split(memory.BLOCK), changed.split(memory.BLOCK), strict=True)
    ]
    assert (memory.checksums(changed) != first).tolist() == expected


@pytest.mark.parametrize("change", ["swap", "negate", "rotate"])
def test_checksums_tell_what_a_sum_does_not(change: str) -> None:
    words = torch.arange(1.0, 1 + memory.BLOCK // 8, dtype=torch.float64)
    other = words.clone()
    if change == "negate":
        other[:2] *= -1
    else:
        other[:2] = words[:2].flip(0) if change == "swap" else words[1:3]
    as_bytes = (each.view(torch.uint8) for each in (words, other))
    first, second = map(memory.checksums, as_bytes)
    assert not torch.equal(first, second)


def test_a_large_storage_is_known_to_a_block_and_only_there() -> None:
    whole = torch.zeros(memory.EXACT + 5 * memory.BLOCK, dtype=torch.uint8)
    left, right = whole[: memory.BLOCK], whole[3 * memory.BLOCK :]
    before, seen = Before({"left": left, "right": right}, Results(), 0, frozenset()), OperatorSeen("")
    right[7] = 1
    before.compare(seen, Where("here:1", "", 1))
    assert seen.writes.keys() == {"right"}
    assert seen.writes["right"].bytes == memory.BLOCK


def test_memory_that_is_freed_and_taken_again_is_no_earlier_result() -> None:
    results, places = Results(), set()
    for turn in range(200):
        tensor = torch.full((64,), float(turn))
        assert results.earlier(tensor, results.now()) is None
        results.add("op", ((), turn), Where("here:1", "", turn), tensor, 0)
        places.add(tensor.data_ptr())
    assert len(places) < 200  # the allocator did give memory again


def test_a_result_that_lives_is_known_by_any_view_of_its_memory() -> None:
    results = Results()
    tensor = torch.zeros(64)
    results.add("op", ((), 1), Where("here:1", "", 1), tensor, 0)
    view = tensor[10:20]
    del tensor
    found = results.earlier(view, results.now())
    assert found is not None
    assert found.op == "op"


def test_an_argument_that_grows_is_written_whatever_lies_where_it_was() -> None:
    out, view = torch.zeros(4), torch.zeros(4)
    other = view[1:]
    before, seen = (
        Before({"out": out, "view": view, "other": other}, Results(), 0, frozenset({"out"})),
        OperatorSeen(""),
    )
    out.resize_(1000)
    view.untyped_storage().resize_(8000)
    before.compare(seen, Where("here:1", "", 1))
    assert seen.writes.keys() == {"out", "view", "other"}
