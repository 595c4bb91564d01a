"""What is missing is said once, before a process is started for each operator; what is there is loaded once."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from esimd_ops.commands import main
from esimd_ops.trials import child, libraries
from schema_patch.commands.ending import COULD_NOT_RUN

COMMANDS = [["probe"], ["check", "--namespace", "nowhere"], ["races", "--namespace", "nowhere"]]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("missing", ["torch", "package"])
def test_what_is_missing_is_said_once_and_nothing_is_started(
    words: list[str], missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else there(name))
    monkeypatch.delattr(child, "_Child")
    assert main.main(words) == COULD_NOT_RUN
    (line,) = capsys.readouterr().err.splitlines()
    assert ("pip install 'torch" if missing == "torch" else "with --library") in line


def test_a_file_of_python_is_loaded_once_though_samples_import_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, log = tmp_path / "kit_tried_once.py", tmp_path / "log"
    source.write_text(f"with open({str(log)!r}, 'a') as log:\n    log.write('loaded ')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    libraries.load("kit_tried_once", (str(source),))
    importlib.import_module("kit_tried_once")
    del sys.modules["kit_tried_once"]
    assert log.read_text() == "loaded "


def test_a_file_of_python_takes_no_other_modules_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "path").mkdir()
    (tmp_path / "path/kit_tried_name.py").write_text("whose = 'another'")
    (tmp_path / "kit_tried_name.py").write_text("whose = 'the library'")
    monkeypatch.syspath_prepend(str(tmp_path / "path"))
    library = str(tmp_path / "kit_tried_name.py")
    libraries.load("kit_tried_name", (library,))
    assert importlib.import_module("kit_tried_name").whose == "another"
    del sys.modules["kit_tried_name"]
