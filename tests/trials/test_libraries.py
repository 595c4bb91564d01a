"""What is missing is said once, before a process is started for each operator."""

from __future__ import annotations

import importlib.util

import pytest

from esimd_ops.commands import main
from esimd_ops.trials import child
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
