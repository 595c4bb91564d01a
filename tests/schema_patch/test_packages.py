"""Which files of a directory, a wheel or a path are libraries, and whose."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import nobody
import pytest
from elf_files import VOID, WRONG, build

from schema_patch.commands import main
from schema_patch.installed import packages
from schema_patch.model import ToolError


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return build(tmp_path_factory.mktemp("library"), [VOID]).read_bytes()


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def names(found: packages.Contents, root: Path) -> list[str]:
    return [os.path.relpath(library.path, root) for library in found.libraries if not library.hidden]


def wheel(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_libraries_are_found_by_name_and_content(tmp_path: Path, library: bytes) -> None:
    for name in ("a/_C.cpython-311-x86_64-linux-gnu.so", "a/libx.so.8", "a/b/libx.so.1.2.3", "z.so", "old.so.bak"):
        put(tmp_path / name, library)
    for name in ("program", "core.obj", "x.so.debug"):
        put(tmp_path / name, library)
    put(tmp_path / "notes.so.txt", b"text")
    put(tmp_path / "script.so", b"INPUT ( libm.so.6 )")
    (tmp_path / "folder.so").mkdir()
    os.mkfifo(tmp_path / "pipe.so")
    found = packages.find(str(tmp_path))
    assert names(found, tmp_path) == [
        "a/_C.cpython-311-x86_64-linux-gnu.so", "a/b/libx.so.1.2.3", "a/libx.so.8", "old.so.bak", "z.so",
    ]  # fmt: skip
    assert [(os.path.basename(path), why) for path, why in found.skipped] == [
        ("script.so", "a text file (a linker script?)")
    ]
    assert found.errors == []
    assert not any(library.named for library in found.libraries)


@pytest.mark.parametrize("data", [b"", b"\x7f", b"\x7fEL", b"\x7eELF\x02\x01\x01" + bytes(57), b"\x00" * 100])
def test_a_library_that_lost_its_head_is_an_error_and_the_rest_is_found(
    tmp_path: Path, library: bytes, data: bytes
) -> None:
    put(tmp_path / "bad.so", data)
    put(tmp_path / "good.so", library)
    found = packages.find(str(tmp_path))
    assert names(found, tmp_path) == ["good.so"]
    assert [error.where and error.where.path for error in found.errors] == [str(tmp_path / "bad.so")]


def test_links_are_followed_once(tmp_path: Path, library: bytes) -> None:
    put(tmp_path / "z.so.8", library)
    (tmp_path / "a.so").symlink_to("z.so.8")
    (tmp_path / "again").symlink_to(tmp_path)
    put(tmp_path.parent / f"{tmp_path.name}-outside" / "data", library)
    (tmp_path / "m.so").symlink_to(f"../{tmp_path.name}-outside/data")
    (tmp_path / "dangling.so").symlink_to("nowhere")
    found = packages.find(str(tmp_path))
    assert names(found, tmp_path) == ["m.so", "z.so.8"]
    assert [error.message for error in found.errors] == ["cannot be read: No such file or directory"]


def test_a_record_says_who_owns_a_library(tmp_path: Path, library: bytes) -> None:
    site = tmp_path / "lib" / "site-packages"
    for name in ("pkg/_C.so", "other.so"):
        put(site / name, library)
    put(tmp_path / "lib" / "liby.so", library)
    put(site / "My.Pkg_x-1.2+xpu.dist-info" / "RECORD", b'pkg/_C.so,sha256=x,1\n"../liby.so",,\npkg/__init__.py,,\n')
    owners = {os.path.basename(lib.path): lib.owner for lib in packages.find(str(tmp_path)).libraries}
    owner = packages.Owner("my-pkg-x", "1.2+xpu")
    assert owners == {"_C.so": owner, "liby.so": owner, "other.so": None}
    assert str(owner) == "my-pkg-x 1.2+xpu"


def test_a_wheel_is_read_member_by_member(tmp_path: Path, library: bytes) -> None:
    members = {
        "pkg/_C.so": library,
        "pkg/x.py": b"",
        "pkg-1.0.dist-info/RECORD": b"",
        "pkg.libs/liby-1234.so.2": library,
    }
    path = wheel(tmp_path / "dist" / "pkg-1.0-py3-none-any.whl", members)
    found = packages.find(str(path))
    assert names(found, path) == ["pkg.libs/liby-1234.so.2", "pkg/_C.so"]
    for one in found.libraries:
        assert (one.owner, one.named) == (packages.Owner("pkg", "1.0"), True)
        with packages.local(one) as file:
            assert Path(file).read_bytes() == library
        assert not os.path.exists(file)
    assert names(packages.find(str(tmp_path)), path) == names(found, path)


@pytest.mark.parametrize("keep", [0.3, 0.99])
def test_a_cut_wheel_is_an_error(tmp_path: Path, library: bytes, keep: float) -> None:
    path = wheel(tmp_path / "p.whl", {"pkg/_C.so": library})
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(ToolError, match="expected a wheel, found a broken archive"):
        packages.find(str(path))


def test_a_damaged_member_is_an_error(tmp_path: Path, library: bytes) -> None:
    path = wheel(tmp_path / "p.whl", {"pkg/_C.so": library})
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)
    (one,) = packages.find(str(path)).libraries
    with pytest.raises(ToolError, match="cannot be taken out of its wheel"), packages.local(one):
        pass


def test_an_empty_directory_holds_nothing(tmp_path: Path) -> None:
    assert packages.find(str(tmp_path)) == packages.Contents()


def test_what_is_none_of_the_three_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "x.py", b"print()")
    os.mkfifo(tmp_path / "pipe")
    for name, says in (("x.py", "begins with b'prin'"), ("pipe", "not a regular file"), ("none", "No such file")):
        with pytest.raises(ToolError, match=says):
            packages.find(str(tmp_path / name))


def test_an_unreadable_folder_is_an_error_and_the_rest_is_found(tmp_path: Path, library: bytes) -> None:
    put(tmp_path / "good.so", library)
    closed = put(tmp_path / "closed" / "x.so", library).parent
    closed.chmod(0)
    report = (
        f"found = packages.find({str(tmp_path)!r}); print(*(x.path for x in found.libraries), *found.errors, sep='\\n')"
    )
    done = nobody.run("from schema_patch.installed import packages", report, closed)
    closed.chmod(0o700)
    assert done.returncode == 0, done.stderr
    good, *errors = done.stdout.splitlines()
    assert good == str(tmp_path / "good.so")
    assert len(errors) == 1
    assert f"{closed}" in errors[0]
    assert "Permission denied" in errors[0]


def test_where_python_looks_is_where_this_looks(tmp_path: Path, library: bytes) -> None:
    site, source = tmp_path / "site-packages", tmp_path / "src"
    put(source / "linked" / "_C.so", library)
    put(source / "on_path" / "pkg" / "_C.so", library)
    put(source / "editable" / "_C.so", library)
    put(source / "old" / "_C.so", library)
    site.mkdir()
    (site / "linked").symlink_to("../src/linked")
    (site / "mine.pth").write_text(f"# a comment\n{source / 'on_path'}\nimport os; os.environ\n")
    (site / "__editable__.e.pth").write_text("import __editable___e_finder; __editable___e_finder.install()")
    (site / "__editable___e_finder.py").write_text(f"MAPPING: dict[str, str] = {{'e': {str(source / 'editable')!r}}}")
    (site / "old.egg-link").write_text(f"{source / 'old'}\n.")
    wheel(site / "z-1.0-py3.11-linux-x86_64.egg", {"z/_C.so": library})
    found = packages.find(str(site))
    assert {os.path.relpath(one.path, tmp_path) for one in found.libraries} == {
        "site-packages/linked/_C.so", "src/on_path/pkg/_C.so", "src/editable/_C.so", "src/old/_C.so",
        "site-packages/z-1.0-py3.11-linux-x86_64.egg/z/_C.so",
    }  # fmt: skip
    assert (found.unfollowed, found.errors) == ([], [])
    (site / "odd.pth").write_text("import sys; sys.path.insert(0, compute())")
    assert [os.path.basename(path) for path, _ in packages.find(str(site)).unfollowed] == ["odd.pth"]


def test_nothing_is_unpacked_without_a_limit(tmp_path: Path, library: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "LARGEST_TEXT", 1000)
    monkeypatch.setattr(packages, "LARGEST", len(library) - 1)
    path = wheel(tmp_path / "p.whl", {"p/_C.so": library, "p/x.py": b"#" * 1001})
    found = packages.find(str(path))
    with pytest.raises(ToolError, match="of at most"), packages.local(found.libraries[0]):
        pass
    with pytest.raises(ToolError, match="too large"):
        found.scripts[f"{path}/p/x.py"]()
    with pytest.raises(ToolError, match="too large"):
        packages.find(str(wheel(tmp_path / "q.whl", {"q-1.dist-info/RECORD": b"x" * 1001})))


def told(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main.main_verify([*map(str, words), "--require", "esimd_gemv_int4"]) == 1
    return " ".join(capsys.readouterr().out.split())


def test_of_two_copies_the_worst_counts_and_the_one_that_python_loads_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = build(tmp_path / "old" / "pkg", [WRONG], name="_C.so")
    fresh = build(tmp_path / "new" / "pkg", [VOID], name="_C.so")
    old, new = tmp_path / "old", tmp_path / "new"
    assert "required to be right, is wrong" in told(capsys, old, new)
    assert f"Python would load {stale}" in told(capsys, old, new)
    assert f"Python would load {fresh}" in told(capsys, new, old)  # in the order of sys.path, as they are given
    (new / "more.pth").write_text(f"{old}\n")
    assert f"Python would load {fresh}" in told(capsys, new)
    tagged = stale.rename(stale.with_name("_C.cpython-311-x86_64-linux-gnu.so"))
    both = tagged.rename(fresh.with_name(tagged.name))
    (new / "more.pth").unlink()
    assert f"Python would load {both}" in told(capsys, new)  # the tagged name is tried first
    other = both.rename(both.with_name("_D.so"))
    assert "which of them is loaded first, what is imported decides" in told(capsys, new)
    assert other.exists()
