"""The kit's own kernels as `make bmg` has compiled them: fit for the card, and what docs/kernels.md says of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from schema_patch.build.kernels import examine, judge
from schema_patch.build.kernels.model import Document, ExaminedKernel

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"\| `(?P<name>[^`]+)` \| \d+ \| (?P<instructions>[\d,]+) / [\d,]+ \| [^|]+ \| (?P<groups>[\d,]+) \|")


@pytest.fixture(scope="module")
def document() -> Document:
    (wheel,) = (ROOT / "build/bmg").glob("*.whl")
    return examine.run(wheel, ("20.1",), (), 2, lambda _: None)


@pytest.fixture(scope="module")
def kernels(document: Document) -> dict[str, ExaminedKernel]:
    """By the names that csrc gives them."""
    names = (re.sub(r"esimd_ops::(xmx::)?", "", kernel.title).replace("> >", ">>") for kernel in document.kernels)
    return dict(zip(names, document.kernels, strict=True))


def test_every_kernel_is_there(kernels: dict[str, ExaminedKernel]) -> None:
    listed = re.findall(
        r'^AHEAD_OF_TIME\("\w+/(.*?)"', "".join(p.read_text() for p in (ROOT / "csrc").glob("*/*.sycl")), re.MULTILINE
    )
    assert len(kernels) == len(listed)


def test_none_spills_divides_in_a_loop_or_has_a_core_for_itself(document: Document) -> None:
    report = judge.report(document, None)
    assert {finding.code for finding in report.findings} <= {"KR103"}, [f.message for f in report.findings]
    assert not report.errors
    assert [k.title for k in document.kernels if k.spill_size or k.private_size or k.slm_size > 64 << 10] == []


def test_products_on_matrix_engines_use_them_and_all_load_whole_blocks(kernels: dict[str, ExaminedKernel]) -> None:
    products = {name: kernel for name, kernel in kernels.items() if "_xmx" in name or "_wide" in name}
    assert len(products) == 31
    for name, kernel in products.items():
        assert kernel.simd_size == 1
        assert "_wide" in name or kernel.instructions["dpas"] >= 8 * (4 if name.endswith("4>") else 1)
        loop = max(kernel.loops, key=lambda loop: loop.bytes_loaded)
        narrow = [a.form for a in loop.accesses if a.load and a.size < 512 and "2d" not in a.form]
        assert len(narrow) <= 1, narrow  # scales
    report = judge.report(Document(1, "", tuple(products.values())), None)
    assert report.findings == ()


def test_the_table_says_what_was_compiled(kernels: dict[str, ExaminedKernel]) -> None:
    rows = list(ROW.finditer((ROOT / "docs/kernels.md").read_text()))
    assert len(rows) >= 20
    for row in rows:
        kernel = kernels[row["name"]]
        loop = max(kernel.loops, key=lambda loop: (loop.bytes_loaded, loop.size))
        # The compiler schedules a few instructions otherwise where it also writes line tables.
        assert loop.size == pytest.approx(_number(row["instructions"]), rel=0.05), row["name"]
        assert kernel.resident["b580"].groups == _number(row["groups"]), row["name"]


def _number(text: str) -> int:
    return int(text.replace(",", ""))
