"""What an environment must agree on, and the order of the work: from files to the report."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest
from elf_files import OTHER, VOID, build

from schema_patch.elf.reader import ElfFacts, FoundSchema
from schema_patch.installed.packages import Placed
from schema_patch.model import Finding, Severity
from schema_patch.schemas.grammar import parse
from schema_patch.verify import environment, survey


def library(
    path: str, *texts: str, needed: tuple[str, ...] = (), space: str = "", owner: str = "", soname: str = ""
) -> Placed:
    found = tuple(FoundSchema(text, parse(text), space) for text in texts)
    return Placed(ElfFacts(path, "x86-64", 1, needed, "", False, found, soname), owner)


def check(
    *libraries: Placed,
    names: frozenset[str] = frozenset(),
    scripts: dict[str, bytes] | None = None,
    complete: bool = False,
) -> list[Finding]:
    loaders = {path: (lambda data=data: data) for path, data in (scripts or {}).items()}
    return list(environment.check(libraries, names, loaders, installed=True, complete=complete))


EIGHT, NINE = ("libsycl.so.8",), ("libsycl.so.9",)


def test_two_runtimes_are_told_with_who_needs_them() -> None:
    torch, kernels = library("t.so", needed=EIGHT, owner="torch 2.11"), library("k.so", needed=NINE, owner="kernels 1")
    both = frozenset({"libsycl.so.8", "libsycl.so.9"})
    (finding,) = check(torch, library("u.so", needed=EIGHT, owner="torch 2.11"), kernels, names=both)
    assert (finding.code, finding.severity, finding.location.path) == ("SP206", Severity.ERROR, "k.so")
    assert "libsycl.so.8 (needed by torch 2.11) beside libsycl.so.9 (needed by kernels 1)" in finding.message
    assert check(torch, torch, names=both) == []


def test_the_runtime_itself_is_no_second_one() -> None:
    loader = library("libsycl.so.9", needed=("libsycl.so.9",), soname="libsycl.so.9")
    assert check(library("a.so", needed=EIGHT), loader, names=frozenset({"libsycl.so.8", "libsycl.so.9"})) == []


@pytest.mark.parametrize(("complete", "severity"), [(True, Severity.ERROR), (False, Severity.WARNING)])
def test_a_missing_runtime(complete: bool, severity: Severity) -> None:
    (finding,) = check(
        library("k.so", needed=NINE, owner="kernels 1"), names=frozenset({"libsycl.so.8"}), complete=complete
    )
    assert (finding.code, finding.severity) == ("SP207", severity)
    assert "expected libsycl.so.9" in finding.message
    assert "found libsycl.so.8" in finding.message
    assert ("unless the system has one" in finding.message) == (not complete)


def test_an_operator_defined_twice() -> None:
    libraries = [library("new.so", VOID, OTHER, space="s"), library("old.so", VOID, OTHER, space="s")]
    (finding,) = check(*libraries)
    assert (finding.code, finding.severity, finding.location.path) == ("SP208", Severity.WARNING, "old.so")
    assert "s::esimd_gemv_int4 and 1 more defined here and in new.so" in finding.message
    assert check(libraries[0], library("old.so", VOID, space="t")) == []
    assert check(library("a.so", VOID), library("b.so", VOID)) == []  # whose namespaces cannot be told


def test_wrappers_name_what_the_binaries_lack() -> None:
    script = b"import torch\n\ndef f(x):\n    torch.ops.s.rms_norm(x)\n    return torch.ops.s.gone(x) + torch.ops.other.op(x)\n"
    (finding,) = check(
        library("p/_C.so", OTHER, space="s", owner="p 1"), scripts={"p/ops.py": script, "q/x.py": script}
    )
    assert (finding.code, finding.severity, finding.op, str(finding.location)) == (
        "SP209",
        Severity.WARNING,
        "gone",
        "p/ops.py:5:12",
    )
    for defined in (
        b'@torch.library.custom_op("s::gone")',
        b'lib.define("gone(Tensor x) -> Tensor")',
        b"op_name='gone'",
    ):
        assert check(library("p/_C.so", OTHER, space="s"), scripts={"p/ops.py": script + defined}) == []


def test_an_installed_environment(tmp_path: Path) -> None:
    """Two runtimes and the missing one are told, and an operator of the table in torch's own package too."""
    build(tmp_path / "torch" / "lib", [VOID], name="libtorch_xpu.so", needed=("libsycl.so.8",))
    (tmp_path / "torch" / "lib" / "stubs" / "libsycl.so.8").rename(tmp_path / "libsycl.so.8")
    path = build(tmp_path / "mine", [VOID], needed=("libsycl.so.9",))
    (tmp_path / "mine" / "stubs" / "libsycl.so.9").unlink()
    digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).decode().rstrip("=")
    for name, row in (("torch-2.11.0", "torch/lib/libtorch_xpu.so,,"), ("mine-1.0", f"mine/libx.so,sha256={digest},1")):
        record = tmp_path / f"{name}.dist-info" / "RECORD"
        record.parent.mkdir()
        record.write_text(row + "\n")
    report = survey.survey([str(tmp_path)])
    assert [f.code for f in report.findings] == ["SP201", "SP206", "SP207", "SP208"]
    assert "torch 2.11.0" in report.findings[1].message
    assert "mine 1.0" in report.findings[1].message
    owners = {row["owner"] for row in report.facts["libraries"]}  # type: ignore[attr-defined]
    assert owners == {"torch 2.11.0", "mine 1.0"}, "what registers operators of the table is judged, whoever ships it"

    changed = bytearray(path.read_bytes())
    changed[-1] ^= 1
    path.write_bytes(changed)
    assert [f.code for f in survey.survey([str(tmp_path)]).findings] == ["SP201", "SP213", "SP206", "SP207", "SP208"]

    # the same where the package is a link, into the tree or out of it
    store = tmp_path / "a"  # which is walked first
    path.parent.rename(store)
    path.parent.symlink_to(store)
    report = survey.survey([str(tmp_path)])
    assert "SP213" in {f.code for f in report.findings}
    assert "mine 1.0" in {row["owner"] for row in report.facts["libraries"]}  # type: ignore[attr-defined]


def test_a_list_of_files_that_is_not_what_was_signed(tmp_path: Path) -> None:
    path = build(tmp_path / "mine", [VOID])
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "RECORD").write_text(f"mine/{path.name},,\n")

    def jws(hashed: str) -> str:
        return json.dumps({"recipients": [], "payload": base64.urlsafe_b64encode(hashed.encode()).decode().rstrip("=")})

    digest = base64.urlsafe_b64encode(hashlib.sha256((info / "RECORD").read_bytes()).digest()).decode().rstrip("=")
    for text, wrong in (
        (jws(json.dumps({"hash": f"sha256={digest}"})), False),
        (jws(json.dumps({"hash": f"sha256={digest[::-1]}"})), True),
        (jws("no JSON"), True),
        ("[]", True),
        ("", True),
    ):
        (info / "RECORD.jws").write_text(text)
        assert ("SP213" in {f.code for f in survey.survey([str(tmp_path)]).findings}) == wrong
