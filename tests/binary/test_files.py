"""Installed files on disk: what is replaced, what is kept, what a killed run leaves, wheels."""

from __future__ import annotations

import csv
import errno
import json
import os
import random
import shutil
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import pytest
import sites
import stable
from stable import SCHEMAS, quoted

from schema_patch.binary import plan, proof, wheel
from schema_patch.commands import main
from schema_patch.elf import placed
from schema_patch.model import ToolError
from schema_patch.schemas import table
from schema_patch.schemas.selection import ALL
from schema_patch.text import edits, files, journal


def test_a_site_packages_folder_there_and_back(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, file = sites.content(site), site / "custom/_C.so"
    file.chmod(0o750)
    assert main.main(["apply", str(site)]) == 0
    told = capsys.readouterr()
    assert "3 operators changed" in told.err
    assert "3 operators: 1 right, 2 right, but not compilable without the guard" in told.out.replace(
        "4 operators", "3 operators"
    ).replace(", 1 unknown", "")
    assert sites.written(file) == {"output", "h1", "out"}
    status = file.stat()
    assert (status.st_mode & 0o777, status.st_mtime) == (0o750, sites.OLD)
    record = next(csv.reader((site / f"{sites.INFO}/RECORD").read_text().splitlines()))
    assert record == ["custom/_C.so", sites.hashed(file.read_bytes()), str(status.st_size)]
    assert main.main_verify([str(site), "--require", "esimd_gemv_fp16,esimd_rms_norm"]) == 0
    assert main.main(["revert", str(site)]) == 0
    assert sites.content(site) == before
    assert file.stat().st_mtime == sites.OLD


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file to somebody else")
def test_a_file_stays_whose_it_was(site: Path) -> None:
    file, record = site / "custom/_C.so", site / f"{sites.INFO}/RECORD"
    os.chown(file, 12345, 23456)
    os.chown(record, 34567, 45678)
    file.chmod(0o4751)  # set-user-ID is lost with a change of owner, unless set again
    record.chmod(0o640)
    os.utime(file, ns=(sites.OLD * 10**9 + 7, sites.OLD * 10**9 + 123))
    os.setxattr(file, "user.note", b"kept")
    for command in ("apply", "revert"):
        before = file.read_bytes(), record.read_bytes()
        assert main.main([command, str(site)]) == 0
        assert before[0] != file.read_bytes()
        assert before[1] != record.read_bytes()
        found, listed = file.stat(), record.stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (12345, 23456, 0o4751)
        assert (found.st_mtime_ns, found.st_size) == (sites.OLD * 10**9 + 123, len(before[0]))
        assert os.getxattr(file, "user.note") == b"kept"
        assert (listed.st_uid, listed.st_gid, listed.st_mode & 0o7777) == (34567, 45678, 0o640)


def test_ops_diff_json_and_a_package_folder(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sites.content(site)
    assert main.main(["apply", "--diff", str(site / "custom")]) == 0
    told = capsys.readouterr().out
    assert f"-{SCHEMAS['fp16']}\n+esimd_gemv_fp16(Tensor input, Tensor weight, Tensor! output)->Tensor!\n" in told
    assert sites.content(site) == before
    code = main.main(["apply", "--ops", "esimd_gemv_fp16", "--format", "json", str(site / "custom")])
    report = json.loads(capsys.readouterr().out)
    assert code == 0
    assert [row["op"] for row in report["checked"]] == ["esimd_gemv_fp16"]
    assert sites.written(site / "custom/_C.so") == {"output"}
    assert main.main(["strip", str(site / "custom/_C.so")]) == 0
    assert sites.written(site / "custom/_C.so") == set()
    assert main.main(["revert", str(site / "custom")]) == 0
    assert sites.content(site) == before


def test_nothing_else_differs(site: Path, library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["apply", str(site / "custom/_C.so")]) == 0
    capsys.readouterr()
    words = [str(site / "custom/_C.so"), "--against", str(library), "--expect", "schemas", "--expect", "operators"]
    assert main.main_verify(words) == 0
    assert "esimd_gemv_fp16" in capsys.readouterr().out


def test_links(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, twin, cache = site / "custom/_C.so", site / "custom/_D.so", tmp_path / "cache.so"
    os.link(file, twin)
    os.link(file, cache)
    (site / "custom/link.so").symlink_to("_C.so")
    before = file.read_bytes()
    assert main.main(["apply", str(site)]) == 0
    assert f"{file}: other names of this file, elsewhere, keep the old bytes: 1" in capsys.readouterr().err
    assert file.samefile(twin)
    assert sites.written(file)
    assert cache.read_bytes() == before
    assert (site / "custom/link.so").is_symlink()
    assert main.main(["revert", str(site)]) == 0
    assert file.samefile(twin)
    assert file.read_bytes() == before


def test_a_link_out_of_the_tree_is_not_followed_to_be_written(
    site: Path, library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = library.read_bytes()
    (site / "custom/_C.so").unlink()
    (site / "custom/_C.so").symlink_to(library)
    assert main.main(["apply", str(site)]) == 2
    assert "the symbolic link leads out of the tree" in capsys.readouterr().err
    assert library.read_bytes() == before


def test_what_cannot_be_had_is_said(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["apply", "--returns", "void", str(site)]) == 2
    assert "rebuild from source" in capsys.readouterr().err
    assert main.main(["apply", "--infer", str(site)]) == 2
    assert "--infer reads sources" in capsys.readouterr().err


def test_torch_loads_the_new_file_before_it_takes_its_place(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["apply", "--load", str(site / "custom")]) == 0
    before = sites.content(site)
    broken = stable.build(
        tmp_path / "broken.so",
        stable.source(quoted("fp16"), 'extern "C" void nobody_has_this(); SHOWN void f() { nobody_has_this(); }'),
    )
    was = broken.read_bytes()
    capsys.readouterr()
    assert main.main(["apply", "--load", str(broken)]) == 2
    assert "nobody_has_this" in capsys.readouterr().err
    assert broken.read_bytes() == was
    assert (site / "custom/_C.so").read_bytes() == before["custom/_C.so"]


def planned(library: Path) -> tuple[files.SourceFile, plan.LibraryPlan]:
    file = files.load(str(library))
    return file, plan.library(file, *placed.read(str(library)), table.load(), ALL, plan.annotated)


def test_a_flipped_bit_is_noticed(library: Path, tmp_path: Path) -> None:
    file, made = planned(library)
    prove = partial(proof.prove, file=file, edits=made.edits, expected=made.expected, loads=False)
    good = edits.apply(file.data, made.edits)
    copy = tmp_path / "copy.so"
    copy.write_bytes(good)
    prove(str(copy))
    chance = random.Random(1)
    for at in [chance.randrange(len(good)) for _ in range(40)]:
        copy.write_bytes(good[:at] + bytes([good[at] ^ 1 << chance.randrange(8)]) + good[at + 1 :])
        with pytest.raises(ToolError, match="expected the bytes that were planned"):
            prove(str(copy))
    # and what was planned itself, where a bit of it turned: the readers tell
    turned = [*made.edits]
    turned[0] = type(turned[0])(turned[0].span, bytes([turned[0].new[0] ^ 1]) + turned[0].new[1:])
    copy.write_bytes(edits.apply(file.data, turned))
    with pytest.raises(ToolError, match="would not register what was meant"):
        proof.prove(str(copy), file, turned, made.expected, loads=False)


def test_a_file_that_changes_meanwhile_is_not_written(library: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.so"
    copy.write_bytes(library.read_bytes())
    file, made = planned(copy)
    changed = bytes([*file.data[:-1], file.data[-1] ^ 4])
    copy.write_bytes(changed)
    with pytest.raises(ToolError, match="the file changed while it was being patched"):
        files.Replacing().replace(file, edits.apply(file.data, made.edits))
    assert copy.read_bytes() == changed


def test_a_killed_run_leaves_the_old_file_or_the_new(site: Path) -> None:
    file, record = site / "custom/_C.so", site / f"{sites.INFO}/RECORD"
    before = sites.content(site)
    assert main.main(["apply", str(site)]) == 0
    after = sites.content(site)
    assert main.main(["revert", str(site)]) == 0
    # Stops at each step that touches the disk, and dies there: no timing is needed to meet them all.
    script = (
        "import os, signal, sys\n"
        "left = int(sys.argv[1])\n"
        "def dying(real):\n"
        "    def call(*a, **k):\n"
        "        global left\n"
        "        left -= 1\n"
        "        if left < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return real(*a, **k)\n"
        "    return call\n"
        "for name in ('fsync', 'replace', 'chmod', 'utime'): setattr(os, name, dying(getattr(os, name)))\n"
        "from schema_patch.commands import main\n"
        "sys.exit(main.main(['apply', sys.argv[2]]))"
    )
    seen = set()
    for step in range(20):
        done = subprocess.run(
            [sys.executable, "-c", script, str(step), str(site)],
            capture_output=True,
            check=False,
            cwd=Path(__file__).parents[2],
        )
        now = sites.content(site)
        assert now["custom/_C.so"] in (before["custom/_C.so"], after["custom/_C.so"])
        seen.add(
            (
                now["custom/_C.so"] == after["custom/_C.so"],
                record.read_bytes() == after[f"{sites.INFO}/RECORD"],
            )
        )
        assert main.main_verify(["--format", "json", str(site)]) in (0, 1)
        if step % 2:  # the next run ends what this one began
            assert main.main(["apply", str(site)]) == 0
            now = sites.content(site)
            assert {name: now[name] for name in before} == {name: after[name] for name in before}
        if (site / journal.NAME).exists():
            assert main.main(["revert", str(site)]) == 0
        assert sites.content(site) == before
        if done.returncode == 0:
            break
    assert done.returncode == 0
    assert not [*site.rglob("*.tmp")]
    assert seen == {(False, False), (True, False), (True, True)}
    assert file.stat().st_mtime == sites.OLD


@pytest.mark.parametrize("step", range(4))
def test_a_full_disk_is_told_as_it_is(
    step: int, site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = os.fsync
    before, left = sites.content(site), iter([*[real] * step, *[full] * 3])
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: next(left, real)(handle))
        code = main.main(["apply", str(site)])
    told = capsys.readouterr()
    assert code == (2 if step < 3 else 0)  # the journal, the library, RECORD
    assert ("No space left on device" in told.err) == (code == 2)
    done = bool(sites.written(site / "custom/_C.so"))
    assert done == (step > 1)
    assert ("3 operators changed" in told.err, "no operators changed" in told.err) == (done, not done)
    assert ("3 wrong" in told.out, "2 right, but not compilable" in told.out) == (not done, done)
    assert main.main(["apply", str(site)]) == 0  # with room again, what is left is done
    assert main.main_verify(["--format", "json", str(site)]) == 0
    assert "SP213" not in capsys.readouterr().out
    assert main.main(["revert", str(site)]) == 0
    assert sites.content(site) == before


def full(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("place", [".", "custom", "custom/_C.so", sites.INFO, f"{sites.INFO}/RECORD"])
def test_what_may_not_be_written_is_left_as_it_is(place: str, site: Path) -> None:
    before, target = sites.content(site), site / place
    target.chmod(target.stat().st_mode & ~0o222)
    powerless = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"] if os.geteuid() == 0 else []
    words = [*powerless, sys.executable, "-m", "schema_patch", "apply", str(site)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    target.chmod(target.stat().st_mode | 0o200)
    assert done.returncode == 2
    assert "no operators changed" in done.stderr
    assert "4 operators: 3 wrong, 1 unknown; 1 could not be read or done" in done.stdout
    assert sites.content(site) == before


def test_a_library_that_was_replaced_since(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, journal_ = site / "custom/_C.so", site / journal.NAME
    assert main.main(["apply", str(site)]) == 0
    stable.build(tmp_path / "new.so", stable.source(quoted("fp16"))).rename(file)
    new = file.read_bytes()
    assert main.main(["revert", str(site)]) == 2
    assert f"where the file was replaced, as by an upgrade, delete {journal_}" in capsys.readouterr().err
    assert file.read_bytes() == new
    file.unlink()
    assert main.main(["revert", str(site)]) == 2
    assert f"gone since it was patched: put it back, or delete {journal_}" in capsys.readouterr().err


def test_a_running_process_keeps_what_it_mapped(site: Path) -> None:
    code = "import ctypes, sys, torch; ctypes.CDLL(sys.argv[1]); print('up', flush=True); input(); print(open('/proc/self/maps').read())"
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(site / "custom/_C.so")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout
    assert child.stdout.readline() == "up\n"
    assert main.main(["apply", str(site)]) == 0
    told = child.communicate("\n")[0]
    assert child.returncode == 0
    assert f"{site}/custom/_C.so (deleted)" in told


def test_a_wheel_of_its_own_version(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / f"{sites.NAME}-1.0-py3-none-linux_x86_64.whl"
    (site / f"{sites.INFO}/WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-linux_x86_64\n")
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(site.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(site))
    before = made.read_bytes()
    assert main.main(["apply", str(made)]) == 2
    assert "say --wheel-out DIR" in capsys.readouterr().err
    assert main.main(["apply", "--diff", str(made)]) == 0
    assert main.main(["apply", "--wheel-out", str(tmp_path / "out"), str(made)]) == 0
    assert made.read_bytes() == before
    (new,) = (tmp_path / "out").iterdir()
    assert new.name == f"{sites.NAME}-1.0+schemas-py3-none-linux_x86_64.whl"
    with zipfile.ZipFile(new) as archive:
        info = f"{sites.NAME}-1.0+schemas.dist-info"
        assert b"Version: 1.0+schemas\n" in archive.read(f"{info}/METADATA")
        for name, stated, size in csv.reader(archive.read(f"{info}/RECORD").decode().splitlines()):
            assert not stated or (sites.hashed(archive.read(name)), len(archive.read(name))) == (stated, int(size))
        assert archive.testzip() is None
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        tmp_path / "target",
        new,
    ]
    subprocess.run(command, check=True)
    assert sites.written(tmp_path / "target/custom/_C.so") == {"output", "h1", "out"}
    assert main.main_verify([str(new), "--require", "esimd_gemv_fp16"]) == 0
    kept = new.read_bytes()
    assert main.main(["strip", "--wheel-out", str(new.parent), str(new)]) == 2  # its name would be the same
    assert "say another folder" in capsys.readouterr().err
    assert new.read_bytes() == kept
    misnamed = made.rename(tmp_path / "custom.whl")  # as one who downloads may call it
    assert main.main(["apply", "--wheel-out", str(tmp_path), str(misnamed)]) == 2
    assert "expected a wheel called NAME-VERSION" in capsys.readouterr().err
    assert misnamed.read_bytes() == before


@pytest.mark.parametrize(
    "headers",
    [b"Name: a\nVersion: 1.0\n", b"name: a\r\nversion: 1.0\r\n", b"Summary: of Version: 3\nVersion: 1.0\nName: a\n"],
)
def test_the_version_among_the_headers_alone_changes(headers: bytes) -> None:
    text = headers + b"\nVersion: 7 is out\n"
    assert wheel.VERSION.sub(rb"\1new", text) == text.replace(b"1.0", b"new")
    assert wheel.VERSION.search(b"Name: a\n\nVersion: 7\n") is None
    assert wheel.VERSION.search(b"Name: a\r\n\r\nVersion: 7\r\n") is None


def test_no_name_of_a_library_hides_it(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library = site / "custom/_C.so"
    for name in ("a\nb.so", "a b.so", "a.so\n", "-a.so.1"):
        shutil.copy(library, site / "custom" / name)
    assert main.main(["apply", str(library)]) == 0
    assert main.main_verify([str(site)]) == 1
    assert capsys.readouterr().out.count("error: SP101 esimd_gemv_fp16") == 4


@pytest.mark.parametrize(
    ("version", "label"), [("1.0", "1.0+schemas"), ("0.1+xpu.3", "0.1+xpu.3.schemas"), ("1+schemas", "1+schemas")]
)
def test_local_versions(version: str, label: str) -> None:
    assert wheel.labelled(version) == label
