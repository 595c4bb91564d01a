"""How a program ends: the one place that turns what went wrong into an exit code and a line.

0 clean, 1 findings, 2 could not run: a bad call, a file that cannot be read, a package that is missing, ctrl-C, and
output that cannot be written, since a report that nobody got is no success. A reader that has gone, as `head` has,
ends it with a line and the code of that signal. Anything else is a bug and a traceback.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from schema_patch.model import ToolError

from .console import show_errors
from .help import width

COULD_NOT_RUN = 2
NO_READER = 128 + 13  # SIGPIPE, as a shell tells it
OURS = ("schema_patch", "esimd_ops")
BESIDE = ("torch", "numpy")  # what a pure build does not bring, and some commands need


def run(command: click.Command, argv: Sequence[str] | None, name: str) -> int:
    """Run a command line to its end; the exit code."""
    try:
        if sys.stdout is None:
            raise ToolError("cannot write the output: standard output is closed")
        if isinstance(sys.stdout, io.TextIOWrapper):  # a name may hold what its encoding has not, as stderr expects
            sys.stdout.reconfigure(errors="backslashreplace")
        code = _invoke(command, list(sys.argv[1:] if argv is None else argv), name)
        sys.stdout.flush()  # what is lost at the interpreter's end is lost in silence
        return code
    except (click.Abort, KeyboardInterrupt):
        return _failed(ToolError("interrupted"))
    except ToolError as error:
        return _failed(error)
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        return COULD_NOT_RUN
    except ModuleNotFoundError as error:
        if not error.name or error.name.startswith(OURS):
            raise
        package = error.name.partition(".")[0]
        return _failed(ToolError(f"this needs the package {package}, which is missing: {_advice(package)}"))
    except BrokenPipeError:
        _let_go(sys.stdout)
        _failed(ToolError("the reader of standard output has gone"))
        return NO_READER
    except OSError as error:
        return _lost(error)


def _advice(package: str) -> str:
    """What brings it: a command only for what the kit is known to need, since anybody may have registered a name."""
    import importlib.metadata

    with suppress(importlib.metadata.PackageNotFoundError):
        for requirement in importlib.metadata.requires("schema-kit") or ():
            name = re.split(r"[^\w.-]", requirement)[0]
            if name.replace("-", "_") == package:
                return f"{sys.executable} -m pip install '{requirement.partition(';')[0].strip()}'"
    if package in BESIDE:
        return f"{sys.executable} -m pip install '{package}'"
    return f"install it for {sys.executable}"


def _invoke(command: click.Command, argv: list[str], name: str) -> int:
    """What click's own `main` does, but that `run` hears of a reader who has gone."""
    if f"_{name}_COMPLETE".replace("-", "_").upper() in os.environ:
        command.main(argv, prog_name=name)  # the shell asks for completions; ends the process
    try:
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"  # which click does not ask
        with command.make_context(name, argv, terminal_width=width(), color=False if plain else None) as context:
            return int(command.invoke(context) or 0)
    except click.exceptions.Exit as end:  # --help, --version
        return end.exit_code


def _lost(error: OSError) -> int:
    if error.filename is not None:
        return _failed(ToolError(error.strerror or str(error), str(error.filename)))
    _let_go(sys.stdout)
    return _failed(ToolError(f"cannot write the output: {error.strerror or error}"))


def _failed(error: ToolError) -> int:
    with suppress(OSError):
        show_errors([error])
    _let_go(sys.stderr)
    return COULD_NOT_RUN


def _let_go(stream: object) -> None:
    """What is still in the buffer has nowhere to go, and must not make a noise at the interpreter's end."""
    with suppress(OSError, ValueError, AttributeError):
        descriptor = stream.fileno()  # type: ignore[attr-defined]
        try:
            stream.flush()  # type: ignore[attr-defined]
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
