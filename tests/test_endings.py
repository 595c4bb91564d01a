"""However a program ends, its exit code says it: 2 and one line where it could not do its work, never 1, no traceback."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import tarfile
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import click
import pytest

from schema_patch.commands import ending
from schema_patch.model import ToolError

PROGRAMS = {
    "schema-patch": [sys.executable, "-m", "schema_patch"],
    "verify-schemas": [sys.executable, "-c", "import sys; from schema_patch.commands.main import main_verify; sys.exit(main_verify())"],
    "esimd_ops": [sys.executable, "-m", "esimd_ops"],
}  # fmt: skip
# Commands that print a line, and some that print much.
CALLS = [
    ("schema-patch", ["--version"]), ("schema-patch", ["--help"]), ("schema-patch", ["splitting-ops"]),
    ("schema-patch", ["check", "examples/as_shipped"]), ("schema-patch", ["check", "--format", "json", "examples/as_shipped"]),
    ("schema-patch", ["apply", "--diff", "examples/as_shipped"]), ("schema-patch", ["audit", "examples/as_shipped"]),
    ("verify-schemas", ["--help"]), ("esimd_ops", ["--help"]), ("esimd_ops", ["graphs", "--help"]),
]  # fmt: skip
ROOT = Path(__file__).parent.parent


def ended(call: tuple[str, list[str]], **streams: object) -> tuple[int, list[str]]:
    words = [*PROGRAMS[call[0]], *call[1]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, check=False, **streams)
    assert "Traceback" not in done.stderr
    return done.returncode, [line for line in done.stderr.splitlines() if line.startswith("error: ")]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: " ".join([call[0], *call[1]]))
def test_output_that_cannot_be_written_is_no_success(call: tuple[str, list[str]]) -> None:
    with open("/dev/full", "w") as full:
        code, lines = ended(call, stdout=full)
    assert (code, len(lines)) == (2, 1)
    assert "cannot write the output: No space left" in lines[0]

    code, lines = ended(call, preexec_fn=lambda: os.close(1))
    assert (code, len(lines)) == (2, 1)
    assert "standard output is closed" in lines[0]

    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        code, lines = ended(call, stdout=gone)
    assert (code, len(lines)) == (ending.NO_READER, 1)
    assert lines[0].endswith("the reader of standard output has gone")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_full_disk_for_both_streams_is_no_success_either(program: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*PROGRAMS[program], "--help"], cwd=ROOT, stdout=full, stderr=full, check=False)
    assert done.returncode == 2


def a_tar_that_goes_on(stream: IO[bytes], pid: int) -> None:
    member = tarfile.TarInfo("big.so")
    member.size = 1 << 24
    stream.write(member.tobuf() + b"\x7fELF" + bytes(1 << 20))
    stream.flush()
    while unread(stream) or Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "S":
        time.sleep(0.05)  # until it has read all there is, and sleeps over more


def unread(stream: IO[bytes]) -> int:
    return int.from_bytes(fcntl.ioctl(stream, termios.FIONREAD, bytes(4)), "little")


def until_it_has_a_child(stream: IO[bytes], pid: int) -> None:
    while not Path(f"/proc/{pid}/task/{pid}/children").read_text():
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("program", "words", "at_work"),
    [("verify-schemas", ["-"], a_tar_that_goes_on), ("esimd_ops", ["check"], until_it_has_a_child)],
)
def test_an_interrupt_ends_with_a_line(
    program: str, words: list[str], at_work: Callable[[IO[bytes], int], None], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with log.open("w") as stream:
        child = subprocess.Popen(
            [*PROGRAMS[program], *words], cwd=ROOT, stdin=subprocess.PIPE, stdout=stream, stderr=stream
        )
        assert child.stdin
        at_work(child.stdin, child.pid)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 2
    assert log.read_text().strip() == "error: interrupted"


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_a_terminal_that_wants_no_colours_gets_none(variables: dict[str, str], coloured: bool) -> None:
    program = (
        "import click\nfrom schema_patch.commands import ending\n"
        "command = click.command()(lambda: click.echo(click.style('x', fg='red')))\n"
        "raise SystemExit(ending.run(command, [], 'name'))"
    )
    plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    terminal, its_end = pty.openpty()
    environment = {**plain, "TERM": "xterm", "PYTHONPATH": str(ROOT), **variables}
    subprocess.run([sys.executable, "-c", program], env=environment, stdout=its_end, check=True)
    os.close(its_end)
    assert (b"\x1b[31m" in os.read(terminal, 99)) == coloured
    os.close(terminal)


def raising(error: BaseException) -> click.Command:
    @click.command()
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ModuleNotFoundError("No module named 'numpy.linalg'", name="numpy.linalg"), f"needs the package numpy, which is missing: {sys.executable} -m pip install 'numpy'"),
        (ModuleNotFoundError("", name="tree_sitter_cpp"), f"{sys.executable} -m pip install 'tree-sitter-cpp==0.23.4'"),
        (ModuleNotFoundError("", name="somebodys_samples"), f"which is missing: install it for {sys.executable}"),
        (ToolError("expected this, found that", "file.cc"), "file.cc: error: expected this, found that"),
        (PermissionError(13, "Permission denied", "there/file"), "there/file: error: Permission denied"),
        (OSError(5, "Input/output error"), "cannot write the output: Input/output error"),
        (KeyboardInterrupt(), "interrupted"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_one_line(error: BaseException, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ending.run(raising(error), [], "name") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("bug", [ZeroDivisionError(), ModuleNotFoundError("ours", name="schema_patch.gone")])
def test_a_bug_stays_a_traceback(bug: Exception) -> None:
    with pytest.raises(type(bug)):
        ending.run(raising(bug), [], "name")


@pytest.mark.parametrize("code", [0, 1])
def test_what_a_command_says_is_the_exit_code(code: int) -> None:
    @click.command()
    def command() -> int:
        return code

    assert ending.run(command, [], "name") == code
