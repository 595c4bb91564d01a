"""Options that several commands have."""

from __future__ import annotations

import click

SAMPLES = click.option(
    "--samples",
    default="",
    metavar="FILE",
    help="Operators of your own: a Python file with SAMPLES, module:function, or a folder of `observe --save`.",
)
LIBRARIES = click.option(
    "--library",
    "libraries",
    multiple=True,
    metavar="PATH",
    help="What registers the operators: a shared library, a Python file or a module (repeat; loaded in this order).",
)
STRICT = click.option("--strict", is_flag=True, help="Warnings count as findings.")
