"""What is told of kernels that have one known thing each: compiled as a user would, at a card's compiler."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from esimd_ops.races import cards
from schema_patch.build.kernels import assembly, demangle, examine, judge
from schema_patch.build.kernels.images import FoundImage
from schema_patch.build.kernels.model import Document, ExaminedKernel
from schema_patch.elf.zebin import MachineCode
from schema_patch.model import Report, ToolError
from schema_patch.schemas import cards as policy

HERE = Path(__file__).parent
SPLIT = "-fsycl-device-code-split="


def look(name: str, split: str, targets: tuple[str, ...] = ("bmg-g21",), only: str = "") -> Document:
    return examine.run(HERE / name, examine.devices(targets), [SPLIT + split], 2, lambda _: None, only)


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "esimd_ops", "kernels", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)


def line_of(file: str, mark: str) -> int:
    return next(i for i, line in enumerate((HERE / file).read_text().splitlines(), 1) if mark in line)


@pytest.fixture(scope="module")
def planted() -> dict[str, ExaminedKernel]:
    return {kernel.title: kernel for kernel in look("planted.cpp", "per_kernel").kernels}


@pytest.fixture(scope="module")
def alone() -> Document:
    return look("alone.cpp", "per_kernel", ("bmg",))


def test_each_kernel_has_what_was_planted_and_no_other(planted: dict[str, ExaminedKernel]) -> None:
    assert set(planted) == {"Spills", "Divides", "DividesOnce", "Multiplies", "Plain", "Shares"}
    assert {name for name, kernel in planted.items() if kernel.spill_size} == {"Spills"}
    assert planted["Spills"].spill_size >= 96 * 256 - 128 * 64  # what is alive, less the registers
    assert {name for name, kernel in planted.items() if kernel.instructions.get("dpas")} == {"Multiplies"}
    divides = {name: [(d.count, d.in_loop) for d in kernel.divisions or ()] for name, kernel in planted.items()}
    assert {name: found for name, found in divides.items() if found} == {
        "Divides": [(1, True)],
        "DividesOnce": [(1, False)],  # that by 8 is a shift
    }
    assert planted["Divides"].instructions["int64"] > 10 > planted["Plain"].instructions["int64"]
    assert planted["Multiplies"].simd_size == 1
    assert planted["Plain"].simd_size >= 16
    assert planted["Shares"].group_items == 32
    assert planted["Plain"].group_items is None
    assert any(a.local for a in planted["Shares"].accesses)
    assert not any(a.local for a in planted["Plain"].accesses)


def test_findings_stand_at_their_lines(planted: dict[str, ExaminedKernel]) -> None:
    report = judge.report(Document(1, "", tuple(planted.values())), None)
    told = [(finding.code, finding.location.path, finding.location.line) for finding in report.findings]
    assert told == [
        ("KR101", "planted.cpp", line_of("planted.cpp", "parallel_for<Spills>")),
        ("KR102", "planted.cpp", line_of("planted.cpp", "// 64-bit division")),
    ]
    assert report.exit_code == 0
    assert dataclasses.replace(report, strict=True).exit_code == 1


def test_machine_code_that_is_there_twice_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examine, "_within", lambda image: None)
    code = MachineCode("20.1.0", "", ("_ZTS1A", "_ZTS1B"), (), False)
    twins = [FoundImage("lib.so", b"", (code,)) for _ in range(2)]
    tasks = list(examine._tasks(iter(twins), ("20.1",), ""))
    assert [(task.ip, task.only) for task in tasks] == [("20.1", {"_ZTS1A", "_ZTS1B"})]


def test_kernels_that_share_an_image_are_told_apart() -> None:
    kernels = {kernel.title: kernel for kernel in look("planted.cpp", "off", only="Divides").kernels}
    assert set(kernels) == {"Divides", "DividesOnce"}
    assert [d.in_loop for d in kernels["DividesOnce"].divisions or ()] == [False]
    assert kernels["DividesOnce"].line == f"planted.cpp:{line_of('planted.cpp', 'parallel_for<DividesOnce>')}"


def test_local_memory_and_narrow_loads(alone: Document) -> None:
    report = judge.report(alone, None)
    found = {(finding.code, finding.message.partition(" on ")[2][:7]): finding for finding in report.findings}
    assert set(found) == {(code, target) for code in ("KR103", "KR104") for target in ("bmg-g21", "bmg-g31")}
    assert found["KR103", "bmg-g21"].location.line == line_of("alone.cpp", "// narrow")
    large = {kernel.target: kernel for kernel in alone.kernels if kernel.slm_size}
    assert large["bmg-g21"].slm_size == 96 * 1024
    assert large["bmg-g21"].barrier_count == 1
    for target, ip in (("bmg-g21", "20.1"), ("bmg-g31", "20.2")):
        held = large[target].resident
        assert held.keys() == {card.names[0] for card in policy.running(ip)}
        for name, one in held.items():
            cores = policy.find(name).cores
            assert (one.groups, one.threads, one.exact) == (cores, 64 * cores, False)


def worse(then: Document, **changes: object) -> Report:
    now = msgspec.structs.replace(then, kernels=tuple(msgspec.structs.replace(k, **changes) for k in then.kernels))
    return judge.report(now, then)


def test_what_became_worse_is_a_finding_and_what_became_better_none(alone: Document) -> None:
    assert not [f for f in judge.report(alone, alone).findings if f.code == "KR201"]
    for changes, words in (
        ({"spill_size": 64}, "spills a thread: 0, now 64"),
        ({"slm_size": 1 << 20}, "local memory a group"),
        ({"private_size": 128}, "private memory"),
    ):
        report = worse(alone, **changes)
        assert report.exit_code == 1
        assert report.findings[0].code == "KR201"
        assert words in report.findings[0].message
    better = msgspec.structs.replace(
        alone, kernels=tuple(msgspec.structs.replace(k, slm_size=0) for k in alone.kernels)
    )
    assert judge.report(better, alone).exit_code == 0
    none = msgspec.structs.replace(alone, kernels=alone.kernels[:0])
    assert judge.report(alone, none).exit_code == 2  # nothing was compared


def test_the_report_is_what_races_reads_and_what_against_reads(tmp_path: Path) -> None:
    source, words = HERE / "alone.cpp", ("--target", "bmg-g21")
    done = run(source, *words, "--format", "json", "--", f"{SPLIT}per_kernel")
    assert done.returncode == 0, done.stderr
    (tmp_path / "kernels.json").write_text(done.stdout)
    known = cards.read(str(tmp_path / "kernels.json"))
    name = next(name for name in known if "Large" in name)
    assert cards.resident(policy.find("b580"), cards.Launched(name, 999, 1, 0), known[name]) == 20
    worse = done.stdout.replace('"spill_size": 0', '"spill_size": -1')
    (tmp_path / "less.json").write_text(worse)
    for file, code in (("kernels.json", 0), ("less.json", 1), ("none.json", 2)):
        again = run(source, *words, "--against", tmp_path / file, "--", f"{SPLIT}per_kernel")
        assert again.returncode == code, again.stderr
        assert ("KR201" in again.stdout) == (code == 1)
        assert not [line for line in again.stdout.splitlines() if len(line) > 80 and ": KR" not in line]


def test_a_page_that_loads_nothing_and_escapes_names() -> None:
    done = run(HERE / "alone.cpp", "--target", "bmg-g21", "--format", "html", "--", f"{SPLIT}per_kernel")
    assert done.returncode == 0
    assert "<code>Large_longer" in done.stdout
    assert "src=" not in done.stdout
    assert "KR104" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("planted.cpp", "--target", "rtx"), "expected the name of a device"),
        (("absent.so", "--target", "bmg"), "absent.so"),
        (("test_kernels.py", "--target", "bmg"), "expected a directory, a wheel or an ELF library"),
        (("planted.cpp", "--target", "bmg-g21", "--only", "Nothing"), "whose name has 'Nothing' in it"),
        (("planted.cpp", "--target", "bmg-g21", "--", "-Dplant=1"), "planted.cpp:15"),
    ],
)
def test_what_cannot_be_looked_at_is_said(words: tuple[str, ...], said: str) -> None:
    done = run(HERE / words[0], *words[1:])
    assert done.returncode == 2
    assert said in done.stderr
    assert not done.stdout


def test_a_module_that_is_cut_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cut.spv").write_bytes(b"\x03\x02\x23\x07" + bytes(9))
    with pytest.raises(ToolError):
        examine.run(tmp_path / "cut.spv", ("20.1",), (), 1, lambda _: None)


def test_loops_are_found_by_their_jumps() -> None:
    text = """L0:
        mov (16|M0) r1.0<1>:f r2.0<1;1,0>:f {Compacted}
L8:
        send.ugm (1|M0) r3 r4 null:0 0x0 0x0 {$1} // wr:1+0, rd:4; load.ugm.d32x64t.a64
        send.ugm (16|M0) r6 r4 null:0 0x0 0x0 {$2} // wr:2+0, rd:1; load.ugm.d8u32.a64
        send.ugm (1|M0) r7 r4 null:0 0x0 0x0 {$3} // wr:1+0, rd:31; load_block2d.ugm.d16.a64
L56:
        add (1|M0) r5.0<1>:q r5.0<0;1,0>:q 1:w
(W)     jmpi L56
(W&f0.0) jmpi L8
"""
    listing = assembly.read(text, lambda at: f"a.cpp:{at}")
    assert [(loop.start, loop.line, loop.size) for loop in listing.loops] == [("L56", "a.cpp:56", 2)]
    assert [(a.form, a.size, a.block) for a in listing.accesses] == [
        ("load.d32x64t", 256, True),
        ("load.d8u32", 16, False),  # a byte for each of 16 lanes, in a register of 64
        ("load_block2d.d16", 2048, True),  # five bits do not hold 32
    ]


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_ZTS23GEMM_fp8_pert_ws_kernelILi128ELi16EE", "GEMM_fp8_pert_ws_kernel<128, 16>"),
        ("_Z17__sycl_kernel_gdnIfEvPT_", "gdn<float>"),
        ("__sycl_kernel_plain", "plain"),
        ("_ZTSZ5plantRN4sycl3_V15queueEE1K", "K"),
        ("_ZTSZ5plantRN4sycl3_V15queueEEUlvE_", "plant(sycl::queue&)::{lambda()#1}"),
    ],
)
def test_names_as_their_source_writes_them(mangled: str, name: str) -> None:
    assert demangle.title(mangled) == name
