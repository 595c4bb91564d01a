"""RECORD of an installed distribution: it follows the library, by whatever names and links, or the library stays."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest
import sites

from schema_patch.commands import main


def stated(site: Path) -> list[str]:
    """What RECORD states of the library, in each row that names it."""
    rows = csv.reader((site / f"{sites.INFO}/RECORD").read_bytes().decode().splitlines(keepends=True))
    return [row[1] for row in rows if len(row) > 1 and ".so" in row[0]]


@pytest.mark.parametrize("named", ["", "custom", "custom/_C.so"])
@pytest.mark.parametrize("kind", ["a link out of the tree", "a link within it", "a file that is a link"])
def test_the_record_of_what_is_a_link_follows(kind: str, named: str, site: Path, tmp_path: Path) -> None:
    package, store = site / "custom", tmp_path / "store" if kind == "a link out of the tree" else site / "_store"
    store.mkdir()
    if kind == "a file that is a link":
        (package / "_C.so").rename(store / "abc.so")
        (package / "_C.so").symlink_to(store / "abc.so")
    else:
        package.rename(store / "custom")
        package.symlink_to(store / "custom")
    path, before = str(site / named), (package / "_C.so").read_bytes()
    if (kind, named) in (("a link out of the tree", ""), ("a file that is a link", "custom")):
        assert main.main(["apply", path]) == 2  # a tool that is given a tree does not write outside it
        assert (package / "_C.so").read_bytes() == before
        return
    assert main.main(["apply", path]) == 0
    new = (package / "_C.so").read_bytes()
    assert new != before
    assert stated(site) == [sites.hashed(new)]
    assert main.main_verify(["--format", "json", "--strict", str(site)]) == 1  # the guard is needed, and nothing else
    assert main.main(["revert", path]) == 0
    assert (package / "_C.so").read_bytes() == before
    assert stated(site) == [sites.hashed(before)]


def test_forms_of_record(site: Path) -> None:
    file, record = site / "custom/_C.so", site / f"{sites.INFO}/RECORD"
    odd = site / 'custom/a "b",\nc.so'
    shutil.copy(file, odd)
    text, old = record.read_text().replace("\n", "\r\n"), sites.hashed(file.read_bytes())
    quoted_name = 'custom/a ""b"",\nc.so'
    text = f'"{quoted_name}",{old},1\r\n./custom//_C.so,"{old}",\r\n{file},{old},7\r\n{text}custom/gone.so,{old},\r\n'
    record.write_bytes(text.encode())
    assert main.main(["apply", str(site)]) == 0
    assert odd.read_bytes() == file.read_bytes()
    new = sites.hashed(file.read_bytes())
    assert stated(site) == [*[new] * 4, old]  # what is not there is left
    assert main.main(["revert", str(site)]) == 0
    assert record.read_bytes() == text.encode()


def test_a_record_that_could_not_follow_leaves_the_library(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = site / f"{sites.INFO}/RECORD"
    text = record.read_text()
    before = sites.content(site)
    record.write_text(text.replace("sha256=", "sha512="))
    assert main.main(["apply", str(site)]) == 2
    assert f"expected its SHA-256 in {record}, found sha512: left as it is" in capsys.readouterr().err
    record.write_text(text)
    (record.parent / "RECORD.jws").write_text("{}")
    assert main.main(["apply", str(site)]) == 2
    assert "the list of its distribution is signed" in capsys.readouterr().err
    (record.parent / "RECORD.jws").unlink()
    assert sites.content(site) == before
    record.unlink()
    record.mkdir()
    assert main.main(["apply", str(site)]) == 2
    assert f"{record}: error: expected the list of an installed distribution's files" in capsys.readouterr().err
