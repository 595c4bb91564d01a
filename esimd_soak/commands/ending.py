"""How a program ends: every end that is not an answer is exit code 2 and one line on stderr, never a traceback.

Knows streams and exit codes; no command. An answer (0 clean, 1 findings, 2 could not run) is the command's own. A full
or closed stdout, ctrl-C, a missing package, a disk that refuses: the world's doing, told here. A reader that has gone,
as `head` has, ends it with a line and the code of that signal. Anything else is a bug and shows its traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress

from esimd_soak.model import ToolError

COULD_NOT_RUN = 2
NO_READER = 128 + 13  # SIGPIPE, as a shell tells it


def run(work: Callable[[], int]) -> int:
    """The exit code of `work`, with everything flushed that it printed."""
    _occupy_closed_streams()
    if sys.stdout is None:
        return _say("standard output is closed: there is nowhere to write the answer")
    try:
        code = work()
        sys.stdout.flush()
        return code
    except ToolError as error:
        return _say(str(error))
    except KeyboardInterrupt:
        return _say("interrupted")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "esimd_soak":
            raise
        name = error.name.split(".")[0].replace("_", "-")
        package = {"hdrh": "hdrhistogram"}.get(name, name)
        return _say(f"error: {error.name} is not installed: {sys.executable} -m pip install {package}")
    except BrokenPipeError:
        _say("error: the reader of standard output has gone")
        return NO_READER
    except OSError as error:
        named = f": {error.filename}" if error.filename else ""
        return _say(f"error: {error.strerror or error}{named}")
    finally:
        _forget_what_cannot_be_written()


def _say(words: str) -> int:
    if sys.stderr is not None:
        with suppress(OSError):
            print(words, file=sys.stderr, flush=True)
    return COULD_NOT_RUN


def _occupy_closed_streams() -> None:
    """A file opened later must not get the number of a closed stream, or prose would be written into it."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one


def _forget_what_cannot_be_written() -> None:
    """What stays in a buffer is flushed again when the interpreter ends, and its failure would be the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
