"""What `--help` shows beside a command's own words: whole summaries, and examples at its end."""

from __future__ import annotations

import shutil

import click

SETTINGS = {"help_option_names": ["-h", "--help"]}


class Group(click.Group):
    """A group whose list of commands wraps each summary: click's own cuts it."""

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
