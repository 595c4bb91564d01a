"""The runner of children says how each ended, loses nothing that was told, and leaves no process behind."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from esimd_ops.trials import child

HERE = Path(__file__).parent
SEARCHED = os.pathsep.join([str(HERE), *sys.path])


class Ask(msgspec.Struct):
    operators: tuple[str, ...]
    skip: tuple[str, ...] = ()


class Did(msgspec.Struct, tag="did"):
    op: str
    text: str = ""


PROGRAM = child.ChildProgram("planted_child", Did, step_s=1.0, load_s=20.0, environment={"PYTHONPATH": SEARCHED})
LATE = "no answer in time (1 s); the process was stopped"
ENDS = {
    "hangs": LATE,
    "hangs_and_shouts": LATE,
    "hangs_in_mid_message": LATE,
    "hangs_with_closed_pipes": LATE,
    "dies": "ended by SIGSEGV: the last word",
    "dies_in_mid_message": "ended by SIGBUS",
    "dies_and_leaves_a_child": "ended by SIGKILL",
    "leaves": "ended with exit code 3: device lost",
    "leaves_quietly": "ended with exit code 0 in the middle of its work",
    "leaves_in_mid_message": "ended with exit code 0 in the middle of its work",
    "raises": "ended with exit code 1: AssertionError: a bug",
}
GOOD = ("right", "floods_both_streams")


def run(*operators):
    """What was told, and how the processes ended."""
    done, asked = [], []

    def ask(died):
        asked.append(died)
        return Ask(operators, (*(did.op for did in done), *died))

    return done, child.run(PROGRAM, ask, done.append), asked


def test_every_end_is_told_and_nothing_that_was_done_is_lost():
    bad = list(ENDS)
    operators = [op for pair in zip(bad, [GOOD[n % 2] for n in range(len(bad))], strict=True) for op in pair]
    done, ends, asked = run(*operators)
    assert {op: ended.how for op, ended in ends.items()} == ENDS
    assert all(ended.step == child.ChildStep(op, "first") for op, ended in ends.items())
    assert [did.op for did in done] == list(GOOD)  # each once, although it stands several times
    assert asked == [tuple(bad[:n]) for n in range(len(bad) + 1)]
    assert [op for op, ended in ends.items() if ended.traceback] == ["raises"]
    assert "in raises" in ends["raises"].traceback


def test_more_messages_than_a_pipe_holds():
    done, ends, _ = run(*["sends_a_long_message"] * 40)
    assert ends == {}
    assert sum(len(did.text) for did in done) == 40 * 50_000


def test_what_is_no_message_ends_it():
    done, ends, _ = run("sends_what_is_no_message", "right")
    assert "sent what is no message" in ends["sends_what_is_no_message"].how
    assert [did.op for did in done] == ["right"]


def test_a_child_that_dies_of_no_operator_is_not_started_again():
    _, ends, asked = run("loading", "right")
    assert [str(ended) for ended in ends.values()] == ["loading: ended by SIGILL"]
    assert len(asked) == 1


def test_a_child_that_dies_twice_of_the_same_is_not_started_again():
    asked = []

    def ask(died):
        asked.append(died)
        return Ask(("leaves",))  # whatever it died of

    assert list(child.run(PROGRAM, ask, print)) == ["leaves"]
    assert asked == [(), ("leaves",)]


def test_a_child_that_dies_after_its_last_word():
    done, ends, _ = run("right", "dies_at_exit")
    assert [did.op for did in done] == ["right", "dies_at_exit"]
    assert str(ends[""]) == "ending: ended by SIGABRT"


def test_a_program_that_is_not_there():
    ended = child.once(replace(PROGRAM, module="no_such_module"), Ask(()), lambda _: None)
    assert ended is not None
    assert "No module named no_such_module" in ended.how


def test_what_the_listener_raises_ends_the_child():
    heard = []

    def hear(did):
        heard.append(did.text)
        raise KeyError(did.op)

    with pytest.raises(KeyError):
        child.once(PROGRAM, Ask(("right", "hangs")), hear)
    assert heard == [""]
    assert not alive("planted_child")


PARENT = """
import sys
sys.path[:0] = [{here!r}]
import test_child
from esimd_ops.trials import child
try:
    child.once(test_child.replace(test_child.PROGRAM, step_s=60), test_child.Ask(("hangs",)), print, lambda words: print(words, flush=True))
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_parent_that_is_stopped_takes_its_child_along(number):
    program = PARENT.format(here=str(HERE))
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert [parent.stdout.readline() for _ in range(2)] == ["loading\n", "hangs first\n"]
    pids = alive("planted_child", parent.pid)
    assert pids
    parent.send_signal(number)
    out, _ = parent.communicate(timeout=30)
    assert out == ("interrupted\n" if number == signal.SIGINT else "")
    until = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def alive(word, parent=None):
    """The children of `parent` (of this process) whose command line has the word."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode("utf-8", "replace")
            above = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it is gone
            continue
        if word in words and above == (parent or os.getpid()):
            found.append(int(folder.name))
    return found


def test_the_side_that_starts_children_loads_no_torch():
    program = (
        "import sys; import esimd_ops.parity.supervise, esimd_ops.races.run, esimd_ops.probe.run; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
