"""What every command says of itself: whole summaries, two examples that its own parser takes, at any width."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator

import click
import pytest

from esimd_ops.commands import main as ops
from esimd_soak.commands import main as soak
from schema_patch.commands import main as patch

PROGRAMS = {
    "schema-patch": (patch.schema_patch, patch.main),
    "verify-schemas": (patch.verify_schemas, patch.main_verify),
    "python -m esimd_ops": (ops.esimd_ops, ops.main),
    "esimd-soak": (soak.esimd_soak, soak.main),
}
Help = Callable[..., str]


def commands() -> Iterator[tuple[str, click.Command, list[str]]]:
    """Every command: its program, itself, and the words between."""
    for program, (command, _) in PROGRAMS.items():
        yield program, command, []
        for name, sub in command.commands.items() if isinstance(command, click.Group) else ():
            yield program, sub, [name]


EVERY = [pytest.param(*found, id=" ".join([found[0], *found[2]])) for found in commands()]


@pytest.fixture
def help_of(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Help:
    def shown(program: str, words: list[str], columns: int = 80) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        assert PROGRAMS[program][1]([*words, "--help"]) == 0
        return capsys.readouterr().out

    return shown


@pytest.mark.parametrize(("program", "command", "words"), EVERY)
def test_help_ends_with_two_examples_that_the_command_takes(
    program: str, command: click.Command, words: list[str], help_of: Help
) -> None:
    examples = [line.strip() for line in help_of(program, words).partition("\n  Examples:\n")[2].splitlines()]
    assert len(set(examples)) == len(examples) == 2
    for example in examples:
        given = shlex.split(re.sub(r"^PYTHONPATH=\S+ ", "", example))
        start = [*program.split(), *words]
        assert given[: len(start)] == start
        rest = given[len(start) :]
        taking = command
        if isinstance(command, click.Group):
            taking, rest = command.commands[rest[0]], rest[1:]
        found = taking.make_parser(click.Context(taking)).parse_args(rest)[0]  # refuses an option that it has not
        assert {parameter.name for parameter in taking.params if parameter.required} <= set(found)


@pytest.mark.parametrize(("program", "command", "words"), EVERY)
@pytest.mark.parametrize("columns", [40, 80])
def test_help_is_no_wider_than_the_terminal_and_cuts_no_summary(
    program: str, command: click.Command, words: list[str], columns: int, help_of: Help
) -> None:
    body = help_of(program, words, columns).partition("\n  Examples:\n")[0]
    prose, _, options = body.partition("\nOptions:\n")
    summaries = options.partition("\nCommands:\n")[2]
    assert bool(summaries) == isinstance(command, click.Group)
    assert "..." not in summaries
    assert [line for line in (prose + options).splitlines() if len(line) > columns] == []


@pytest.mark.parametrize(
    ("program", "begun", "found"),
    [("schema-patch", "ch", "check"), ("verify-schemas", "--req", "--require"), ("esimd-soak", "sc", "score")],
)
def test_completion_is_there(
    program: str, begun: str, found: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    variable = f"_{program}_COMPLETE".replace("-", "_").upper()
    monkeypatch.setenv("COMP_WORDS", f"{program} {begun}")
    monkeypatch.setenv("COMP_CWORD", "1")
    for asked, words in (
        ("bash_complete", f"plain,{found}\n"),
        ("bash_source", f"complete -o nosort -F {variable.lower()[:-9]}_completion {program}"),
    ):
        monkeypatch.setenv(variable, asked)
        with pytest.raises(SystemExit) as ended:
            PROGRAMS[program][1]([])
        told = capsys.readouterr()
        assert (ended.value.code, told.err) == (0, "")
        assert words in told.out
