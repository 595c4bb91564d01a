"""The same question to torch: loaded in a child process, which may do what it likes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "schema_patch"))
from elf_files import SPACE, VOID, WRONG, build

from schema_patch.elf import reader
from schema_patch.elf.reader import ElfFacts
from schema_patch.verify import load

pytest.importorskip("torch")


def asked(facts: ElfFacts, patience: float = 120) -> load.Loaded:
    (loaded,) = load.ask([facts], patience=patience)
    return loaded


def torch_library(folder: Path, texts: list[str], more: str = "") -> Path:
    from torch.utils import cpp_extension

    link = [*(f"-L{path}" for path in cpp_extension.library_paths()), "-ltorch_cpu", "-lc10"]
    return build(folder, texts, more=more, flags=("-Wl,--no-as-needed", *link))


def test_what_torch_registers_is_what_was_read(tmp_path: Path) -> None:
    path = torch_library(tmp_path, [VOID, "other(Tensor x, float eps=1e-05) -> Tensor"])
    facts = reader.read(path)
    loaded = asked(facts)
    assert (loaded.facts, loaded.findings, loaded.errors) == (facts, [], [])
    spaceless = tuple(replace(found, namespace="") for found in facts.schemas)
    assert asked(replace(facts, schemas=spaceless)).findings == []  # where the namespace is not known


@pytest.mark.parametrize("space", ["", "a::"])
@pytest.mark.parametrize("others", [1, 2])
def test_a_text_that_was_read_stands_for_one_that_is_registered(space: str, others: int, tmp_path: Path) -> None:
    """Of one name in several namespaces each is judged, also where it is not known which of them was read."""
    facts = reader.read(build(tmp_path, [VOID]))
    facts = replace(facts, schemas=tuple(replace(found, namespace="") for found in facts.schemas))
    registered = [f"a::{VOID}", *(f"{'bc'[n]}::{WRONG}" for n in range(others))]
    loaded = load._compared(facts, registered, [f"{space}{VOID}"])
    assert [found.text for found in loaded.facts.schemas] == [VOID, *registered[1:]]
    assert len(loaded.findings) == others


def test_a_difference_is_told(tmp_path: Path) -> None:
    path = torch_library(tmp_path, [WRONG])
    real = reader.read(path)
    claimed = reader.read(build(tmp_path / "other", [VOID, "gone(Tensor x) -> Tensor"]))
    loaded = asked(replace(claimed, path=str(path)))
    assert [(f.code, f.op) for f in loaded.findings] == [("SP215", "esimd_gemv_int4"), ("SP215", "gone")]
    assert WRONG in loaded.findings[0].message
    less = asked(replace(real, schemas=()))  # registers nothing: is not loaded
    assert less.facts.schemas == ()
    partly = asked(replace(real, schemas=(), named=claimed.named, unread=(reader.Unread("f"),)))
    assert ([s.schema.op for s in partly.facts.schemas], partly.facts.unread) == (["esimd_gemv_int4"], ())


LATE = """
#include <stdlib.h>
__attribute__((constructor)) static void ends(void) { %s; }
"""


ENDS = {"abort()": "signal 6", "_Exit(0)": "exit code 0", "exit(3)": "exit code 3", "for (;;) ": "did not come back"}


def test_the_child_may_do_what_it_likes(tmp_path: Path) -> None:
    paths = [torch_library(tmp_path / str(n), [VOID], more=LATE % does) for n, does in enumerate(ENDS)]
    told = list(load.ask([reader.read(path) for path in paths], patience=10))
    for says, loaded in zip(ENDS.values(), told, strict=True):
        assert says in loaded.errors[0].message
        assert loaded.facts.schemas


def test_the_interpreter_is_that_of_the_environment(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python3.11"
    python.write_text("#!/bin/sh\necho no torch here >&2\nexit 1\n")
    python.chmod(0o755)
    path = torch_library(site / "p", [VOID])
    assert load.interpreter(str(path)) == str(python)
    assert load.interpreter("/tmp/x.so") == sys.executable
    assert "no torch here" in asked(reader.read(path)).errors[0].message


def test_the_command_asks_too(tmp_path: Path) -> None:
    path = torch_library(tmp_path, [VOID])
    code = "import sys; from schema_patch.commands.main import main_verify; sys.exit(main_verify(sys.argv[1:]))"
    command = [sys.executable, "-c", code, str(path), "--load", "--require", f"{SPACE}::esimd_gemv_int4"]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    command[3] = path.name  # not looked for where the loader looks for names
    assert subprocess.run(command, check=False, capture_output=True, cwd=path.parent).returncode == 0
