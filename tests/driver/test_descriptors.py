"""The tables that a library registers, field by field like those of a published wheel that icpx 2025.3 has linked."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest
import zstandard

from schema_patch.build.driver import objects

from .descriptors import DeviceImage, Library

sys.path.insert(0, str(Path(__file__).parents[1] / "real"))
import wheels

PUBLISHED = "vllm-xpu-kernels==0.1.3.1"  # of icpx 2025.3: needs libsycl.so.8
LIBRARY = "vllm_xpu_kernels/_C.abi3.so"
# What only some libraries use: how their kernels are written decides.
BY_KERNEL = {"SYCL/kernel param opt", "SYCL/implicit local arg"}


def shape(image: DeviceImage) -> set[tuple[object, ...]]:
    """All of an image's row but what is of its kernels: which sets there are, and how each property is stored."""
    rows: set[tuple[object, ...]] = {
        ("version", image.version), ("kind", image.kind), ("options", image.options),
        ("section", image.section), ("sets", tuple(n for n, _ in image.properties if n != "SYCL/implicit local arg")),
    }  # fmt: skip
    for name, values in image.properties:
        for key, kind, value in values:
            stored = "integer" if isinstance(value, int) else "bytes"
            rows.add((name, "a kernel" if name in BY_KERNEL else key, kind, stored))
            if name == "SYCL/kernel param opt":
                assert isinstance(value, bytes)
                rows.add((name, "bytes for the bits of", len(value) - 8 == max(1, -(-value[0] // 8))))
    return rows


@pytest.fixture(scope="module")
def ours(kernels: Path) -> Library:
    return Library(kernels / "kernels")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Library:
    folder = tmp_path_factory.mktemp("published")
    with zipfile.ZipFile(wheels.fetch(PUBLISHED)) as archive:
        return Library(Path(archive.extract(LIBRARY, folder)))


@pytest.mark.real
@pytest.mark.parametrize("target", ["spir64_gen", "spir64"])
def test_each_row_is_like_a_published_one(ours: Library, theirs: Library, target: str) -> None:
    published = [shape(image) for image in theirs.images() if image.target == target]
    made = [shape(image) for image in ours.images() if image.target == target]
    assert made
    known = set().union(*published) if published else _without_native(theirs)
    for rows in made:
        assert rows <= known, rows - known
    # The same sets in the same order, aspects and the size of sub-groups among them.
    everything = set().union(*made)
    assert ("SYCL/device requirements", "aspects", 2, "bytes") in everything
    assert ("SYCL/device requirements", "reqd_sub_group_size", 1, "integer") in everything
    assert ("SYCL/misc properties", "optLevel", 1, "integer") in everything


def _without_native(theirs: Library) -> set[tuple[object, ...]]:
    """What a library without images of SPIR-V says of its native ones, said of SPIR-V."""
    options = ("-ftarget-register-alloc-mode=pvc:-ze-intel-enable-auto-large-GRF-mode", "")
    rows = set().union(*(shape(image) for image in theirs.images()))
    return {*rows, ("options", options), ("section", "__CLANG_OFFLOAD_BUNDLE__sycl-spir64")}


@pytest.mark.real
def test_the_linkers_tables_are_like_published_ones(ours: Library, theirs: Library) -> None:
    for library in (ours, theirs):
        images = library.images()
        assert sorted(library.listed()) == sorted(image.data for image in images)
        names = {f"sycl-{image.target}-unknown-unknown.{entry}" for image in images for entry in image.entries}
        assert names <= {name.decode() for name in library.symbols}
        order = [image.target for image in images]
        assert order == sorted(order, key=lambda target: target == "spir64")


def test_an_image_is_what_was_compiled(ours: Library, kernels: Path) -> None:
    """Compressed in the library; unpacked, the front end's bytes. Each kernel once for each target."""
    (payload,) = objects.payloads(str(kernels / "kernels.o"))
    modules = {image.spirv for image in payload.images}
    images = ours.images()
    for image in images:
        data = zstandard.ZstdDecompressor().decompressobj().decompress(image.data) if image.format == 4 else image.data
        assert data in modules if image.target == "spir64" else data.startswith(b"\x7fELF")
        assert (image.format == 4) == (image.data[:4] == b"\x28\xb5\x2f\xfd")
    for target in ("spir64", "spir64_gen"):
        names = [entry for image in images if image.target == target for entry in image.entries]
        assert sorted(names) == sorted(kernel.name for kernel in payload.kernels)
