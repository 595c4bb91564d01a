"""`--version`: the kit's version, and what its native extension was built with, which decides what it runs beside."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import click

import schema_patch

RECORD = Path(schema_patch.__file__).with_name("built.json")  # setup.py leaves it beside the package


def _told(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(f"{context.info_name}, version {schema_patch.__version__}")
        click.echo(f"Python {platform.python_version()}; {built_with(RECORD)}")
        context.exit()


def built_with(record: Path) -> str:
    """In words what a build record says; the extension is missing where there is none."""
    if not record.exists():
        return "pure Python: built without the native extension"
    built = json.loads(record.read_text("utf-8"))
    return f"native extension in mode {built['mode']}, built with {', '.join(built['with'])}"


VERSION = click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_told, help="Show the version and the build."
)
