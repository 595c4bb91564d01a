"""Runs commands in this process, writes plans, and reads what a run wrote; for the tests of this folder."""

import json
from pathlib import Path

import pytest

from esimd_soak.commands import main
from esimd_soak.store import folder as store
from esimd_soak.store.records import Event, Generation


class Soak:
    """Runs a command in this process; `code`, `out` and `err` are of the last one."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.code, self.out, self.err = 0, "", ""

    def __call__(self, *words: object) -> int:
        self.code = main.main([str(word) for word in words])
        self.out, self.err = self._capsys.readouterr()
        return self.code


def plan(tmp_path: Path, *servers: dict[str, object], **keys: object) -> Path:
    def value(x: object) -> str:
        return (
            "{" + ", ".join(f"{k} = {value(v)}" for k, v in x.items()) + "}" if isinstance(x, dict) else json.dumps(x)
        )

    patient = {"client": {"late_ms": 60000, "lag_ms": 60000}}  # a busy machine is no defect
    lines = [f"{key} = {value(x)}" for key, x in (patient | keys).items()]
    for server in servers:
        lines += ["[[server]]", *(f"{key} = {value(x)}" for key, x in server.items())]
    path = tmp_path / "plan.toml"
    path.write_text("\n".join(lines))
    return path


def generations(folder: Path) -> list[Generation]:
    return list(store.read(folder, "generations", Generation))


def events(folder: Path, kind: str) -> list[Event]:
    return [event for event in store.read(folder, "events", Event) if event.kind == kind]
