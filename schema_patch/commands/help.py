"""What `--help` shows beside a command's own words: whole summaries, and examples at its end."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

import click

SETTINGS = {"help_option_names": ["-h", "--help"]}
NARROW = 60  # columns


class Formatter(click.HelpFormatter):
    """On a narrow screen a word's meaning stands below it, not beside it."""

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        if self.width >= NARROW:
            super().write_dl([*rows], col_max, col_spacing)
            return
        for word, meaning in rows:
            self.write_text(word)
            with self.indentation():
                self.write_text(meaning)


class Context(click.Context):
    formatter_class = Formatter


class Command(click.Command):
    """A command whose help is as wide as the screen."""

    context_class = Context


class Group(click.Group):
    """A group whose list of commands wraps each summary: click's own cuts it."""

    context_class = Context
    command_class = Command

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, command.get_short_help_str(limit=1000)) for name, command in sorted(self.commands.items())]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def examples(*lines: str) -> str:
    """The end of a command's help; lines as a person types them."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def width() -> int:
    """As wide as the terminal, up to 80 columns; click's narrowest is 50."""
    return min(80, shutil.get_terminal_size().columns) - 1
