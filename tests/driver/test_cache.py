"""Unchanged device code is not compiled again, wherever its tree lies; changed code is."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from schema_patch.build.driver import cache, frontend, places, runtime

SOURCE = """\
#include "number.h"
template <typename Name, typename Kernel> __attribute__((sycl_kernel)) void launch(const Kernel& kernel) { kernel(); }
void run() { launch<class Numbered>([] { (void)kNumber; }); }
"""


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of what is compiled; the front end's own folder is the one that there is."""
    front_end = cache.folder() / "frontend"
    frontend.toolchain(runtime.find())
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/frontend").symlink_to(front_end)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))


def tree(folder: Path, number: int) -> Path:
    (folder / "include").mkdir(parents=True)
    (folder / "include/number.h").write_text(f"constexpr int kNumber = {number};\n")
    (folder / "kernel.sycl").write_text(SOURCE)
    return folder


def compiled(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> frontend.Device:
    monkeypatch.chdir(folder)
    asked = ["-std=c++17", f"-I{folder}/include", *words]
    return frontend.compile_device(f"{folder}/kernel.sycl", asked, runtime.find())


def test_one_tree_in_two_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for name, number in (("one", 1), ("two", 1), ("three", 2)):
        folder = tree(tmp_path / name, number)
        found.append(compiled(folder, monkeypatch, f"-ffile-prefix-map={folder}=."))
    assert [device.cached for device in found] == [False, True, False]
    assert found[0].images == found[1].images
    assert all(os.path.exists(path) for path in found[1].dependencies)
    assert str((tmp_path / "two/include/number.h").resolve()) in found[1].dependencies


def test_headers_of_another_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an environment has installed may lie anywhere, if a map hides it; what it says counts."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/kernel.sycl").write_text(SOURCE)
    found = []
    for name, number in (("one", 1), ("two", 1), ("three", 2)):
        prefix = tree(tmp_path / name, number)
        maps = (f"-ffile-prefix-map={prefix}=python", f"-ffile-prefix-map={tmp_path}/tree=.")
        found.append(compiled(tmp_path / "tree", monkeypatch, f"-I{prefix}/include", *maps))
    assert [device.cached for device in found] == [False, True, False]
    assert str((tmp_path / "two/include/number.h").resolve()) in found[1].dependencies


def test_one_front_end_in_two_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another environment with the same release is another folder, and the same front end."""
    here = runtime.find()
    (tmp_path / "lib").symlink_to(here.library)
    other = dataclasses.replace(here, library=str(tmp_path / "lib"))
    first = frontend.toolchain(here)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "own"))
    second = frontend.toolchain(other)
    assert first.name != second.name
    assert (first / frontend.IDENTITY).read_text() == (second / frontend.IDENTITY).read_text()


def test_without_a_prefix_map_the_place_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled may then name the folder."""
    found = [compiled(tree(tmp_path / name, 1), monkeypatch) for name in ("one", "two")]
    assert [device.cached for device in found] == [False, False]
    assert compiled(tmp_path / "two", monkeypatch).cached
    assert not compiled(tmp_path / "two", monkeypatch, "-DMORE").cached


def test_a_link_to_a_folder_is_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert places.portable([f"-I{tmp_path}/link", "-O2", "-DA=/b"]) == [f"-I{tmp_path.resolve()}/real", "-O2", "-DA=/b"]


def test_a_damaged_entry_is_no_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tree(tmp_path / "one", 1)
    first = compiled(folder, monkeypatch)
    for path in (tmp_path / "cache/device").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:20])
    again = compiled(folder, monkeypatch)
    assert not again.cached
    assert again.images == first.images
