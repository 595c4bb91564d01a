"""A child that misbehaves as asked: each operator is named after what it does. Run as `python -m planted_child FD`."""

import atexit
import os
import signal
import subprocess
import sys
import time

import msgspec

from esimd_ops.trials.child import ChildStep, serve

PIPE = int(sys.argv[1]) if len(sys.argv) > 1 else -1


class Ask(msgspec.Struct):
    operators: tuple[str, ...]
    skip: tuple[str, ...] = ()


class Did(msgspec.Struct, tag="did"):
    op: str
    text: str = ""


def right():
    pass


def floods_both_streams():
    for stream in (sys.stdout, sys.stderr):
        stream.write("flood\n" * 200_000)
        stream.flush()


def sends_a_long_message():
    os.write(PIPE, msgspec.json.encode(Did("long", "x" * 50_000)) + b"\n")


def hangs():
    time.sleep(3600)


def hangs_and_shouts():
    while True:
        sys.stderr.write("still here\n" * 1000)


def hangs_in_mid_message():
    while True:
        os.write(PIPE, b" ")
        time.sleep(0.1)


def hangs_with_closed_pipes():
    os.close(PIPE)
    os.close(2)
    hangs()


def dies():
    sys.stderr.write("noise\nthe last word\n")
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGSEGV)


def dies_in_mid_message():
    os.write(PIPE, b'{"type":"did","op":"dies_in_')
    os.kill(os.getpid(), signal.SIGBUS)


def dies_and_leaves_a_child():
    # Its own child holds both pipes open.
    subprocess.Popen(["sleep", "5"], pass_fds=(PIPE,), stdin=subprocess.DEVNULL)
    os.kill(os.getpid(), signal.SIGKILL)


def leaves_quietly():
    os._exit(0)


def leaves_in_mid_message():
    os.write(PIPE, b'{"type":"did"')
    os._exit(0)


def leaves():
    sys.stderr.write("device lost\n")
    sys.stderr.flush()
    os._exit(3)


def raises():
    raise AssertionError("a bug")


def sends_what_is_no_message():
    os.write(PIPE, b"hello\n")
    hangs()


def dies_at_exit():
    atexit.register(os.abort)


def work(ask, tell):
    tell(ChildStep("", "loading"))
    for op in ask.operators:
        if op in ask.skip:
            continue
        if op != "loading":
            tell(ChildStep(op, "first"))
        globals()[op]()
        tell(Did(op))
    tell(ChildStep("", "ending"))


def loading():
    os.kill(os.getpid(), signal.SIGILL)


if __name__ == "__main__":
    serve(Ask, work)
