"""What a host build calls its libraries and the files that load them, where names are taken."""

from __future__ import annotations

import subprocess
from pathlib import Path

from esimd_ops.host import libraries
from esimd_ops.host.sources import HostSource


def source(name: str, *spaces: str, modules: tuple[str, ...] = ()) -> HostSource:
    path = Path("/tree", name)
    return HostSource(path, name, path.stem, spaces, spaces, modules, False, False)


def test_each_library_has_a_name_of_its_own() -> None:
    paths = ("a/x/k.sycl", "b/x/k.sycl", "a_x/k.sycl", "a_x_k.sycl", "a_x_k.cpp", "b_x_k.cpp")
    given = [[source(name, f"space{number}")] for number, name in enumerate(paths)]
    named = libraries.names(given)
    assert list(named.values()) == given
    assert list(named)[:3] == ["k.so", "b_x_k.so", "a_x_k.so"]


def test_no_file_takes_the_place_of_a_module_that_python_needs(tmp_path: Path) -> None:
    given = {"a.so": [source("a.sycl", "json")], "b.so": [source("b.sycl", "mine", modules=("torch",))]}
    spaces, modules, notes = libraries.write_loaders(tmp_path, given)
    assert (spaces, modules) == (("mine",), ())
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]
    assert [note.split(":")[0] for note in notes] == ["json", "torch"]
    assert "libraries/a.so" in notes[0]


def test_two_modules_of_one_name_are_told(tmp_path: Path) -> None:
    given = {f"{name}.so": [source(f"{name}.cpp", modules=("_C",))] for name in "ab"}
    spaces, modules, (note,) = libraries.write_loaders(tmp_path, given)
    assert (spaces, modules) == ((), ("_C",))
    assert note == "_C: a module of libraries/a.so, libraries/b.so: its file loads the first"
    assert "a.so" in (tmp_path / "_C.py").read_text()


def test_what_an_earlier_build_has_left_is_gone(tmp_path: Path) -> None:
    libraries.write_loaders(tmp_path, {"a.so": [source("a.sycl", "gone")]})
    (tmp_path / "users.py").write_text("# of the user\n")
    libraries.write_loaders(tmp_path, {"a.so": [source("a.sycl", "here")]})
    assert sorted(path.name for path in tmp_path.glob("*.py")) == ["here.py", "users.py"]


def test_an_exception_of_a_library_that_is_loaded_is_told_in_its_words(tmp_path: Path) -> None:
    text = '#include <stdexcept>\nstruct A { A() { throw std::runtime_error("only one may"); } };\nstatic A a;\n'
    (tmp_path / "a.cpp").write_text(text)
    subprocess.run(["g++", "-shared", "-fPIC", "a.cpp", "-o", "a.so"], cwd=tmp_path, check=True)
    refused = libraries.what_does_not_load({tmp_path / "a.so": [source("a.cpp", "a")]})
    assert refused == {tmp_path / "a.so": "the process that loaded it ended with -6: only one may"}


def test_loaders_of_an_earlier_build_go_and_no_file_of_a_person(tmp_path: Path) -> None:
    given = {"a.so": [source("a.sycl", "before", modules=("module",))]}
    libraries.write_loaders(tmp_path, given)
    (tmp_path / "mine.py").write_text('"""Loads the weights."""\n')
    libraries.write_loaders(tmp_path, {"a.so": [source("a.sycl", "now")]})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.py", "now.py"]
