"""Fuzzes the whole reader of `verify-schemas`: libraries, device images, wheels and archives in one; and what changes
libraries in place.

    python fuzz/reader.py --seconds 3600            grows a corpus in a temporary folder, from fuzz/corpus
    python fuzz/reader.py --seconds 3600 --jobs 16 --seeds DIR     blind, in many processes, from the files of DIR too
    python fuzz/reader.py FILE...                   runs these files once, as for a crash that was found (fuzz/found)

Looks for four things: an exception other than ToolError, a file that takes over ten seconds, a library that is called
the same after one bit of its schemas was turned although it then declares something else, and new bytes for a library
that do not say what was meant. With atheris (Linux, extra `fuzz`) coverage guides the mutations; without it they are
blind. What fails is kept in build/crashes.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import multiprocessing
import os
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent
CRASHES = HERE.parent / "build" / "crashes"
sys.path.insert(0, str(HERE.parent))
SLOW = 10  # seconds of processor time that one file may take: others may use the machine
LARGEST = 1 << 16

try:
    import atheris
except ImportError:
    atheris = None

with atheris.instrument_imports(include=["schema_patch"]) if atheris else contextlib.nullcontext():
    from schema_patch.binary import plan, tree
    from schema_patch.model import ToolError
    from schema_patch.schemas import table
    from schema_patch.schemas.selection import ALL
    from schema_patch.verify import survey

# The letter of a set, a default, and how a return repeats what its argument says: none says what is written.
MEANING = re.compile(rb"\(\w!\)|=[\w.+-]+|(?<=-> Tensor)\(\w.\)$")


SCHEMA = re.compile(rb"esimd_\w+\([^\0]*\) -> [^\0]*")
WHOLE = [path.read_bytes() for folder in ("corpus", "found") for path in sorted((HERE / folder).iterdir())]


class Slow(Exception):
    """A file took too long."""


class Stayed(Exception):
    """A file (the first argument) is called clean and is not."""


@contextlib.contextmanager
def held(data: bytes) -> Iterator[str]:
    """The path of a file with these bytes, for as long as one may take."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as file:
        file.write(data)
        file.flush()
        if signal.getsignal(signal.SIGPROF) != signal.SIG_DFL:  # else somebody else asks, who has all time
            signal.setitimer(signal.ITIMER_PROF, SLOW)
        try:
            yield file.name
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


def check(data: bytes) -> tuple[int, frozenset[str]]:
    """The exit code for a file with these bytes, and the codes of what was found. Raises what the reader should not."""
    with held(data) as name:
        report = survey.survey([name], devices=("bmg",) if len(data) % 2 else ())
        return report.exit_code, frozenset(finding.code for finding in report.findings)


def rewritten(data: bytes) -> int:
    """Plans new bytes for a library and holds each against what was meant. Gives how many there are."""
    with held(data) as name:
        planned = tree.plan_all(name, table.everything(), ALL, plan.annotated)
    for one in planned.files:
        with held(one.new) as name:
            assert one.prove
            try:
                one.prove(name)
            except ToolError as error:
                if "two readers" not in error.message:  # who differ over damage, so that nothing is written
                    raise
    return len(planned.files)


def turned(data: bytes, chance: random.Random) -> None:
    """Turns one bit of one schema of a clean file, which must not stay clean. Raises Stayed where it does."""
    schemas = list(SCHEMA.finditer(data))
    before = check(data) if schemas else (2, frozenset())
    if before[0]:
        return
    start, end = chance.choice(schemas).span()
    text = data[start:end]
    unmarked = data[:start] + text.replace(b"!", b" ") + data[end:]
    if unmarked == data or check(unmarked) == before:
        return  # this text is not judged: no registration is given it, or one in a namespace that nobody knows
    changed = bytearray(data)
    changed[chance.randrange(start, end)] ^= 1 << chance.randrange(8)
    now = bytes(changed[start:end])
    if MEANING.sub(b"", now) != MEANING.sub(b"", text) and check(bytes(changed)) == before:
        raise Stayed(bytes(changed), f"clean after a turned bit: {now!r}")


def mutated(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """Some of what goes wrong with files: bits, numbers at their limits, cuts, and parts of others."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        places = [chance.randrange(len(changed) or 1) for _ in range(4)]
        at = next((at for at in places if changed[at : at + 1] > b"\0"), places[0])  # more than half is padding
        kind = chance.choice((0, 0, 0, 1, 1, 2, 3, 4, 4, 5))  # what moves all that follows breaks most files at once
        if kind == 0 and changed:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            size = chance.choice((1, 2, 4, 8))
            number = chance.choice((0, 1, -1, 1 << (8 * size - 1), len(changed), at, chance.getrandbits(8 * size)))
            changed[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
        elif kind == 2:
            del changed[at : at + chance.choice((1, 2, 8, 64, 1 << 12))]
        elif kind == 3:
            other = chance.choice(others)
            start = chance.randrange(len(other) or 1)
            changed[at:at] = other[start : start + chance.choice((8, 64, 1 << 10))]
        elif kind == 4:
            changed[at : at + 8] = changed[chance.randrange(len(changed) or 1) :][:8]
        else:
            del changed[at : at + 1 if chance.randrange(8) else None]
    return bytes(changed[:LARGEST])


def one(data: bytes, number: int, others: list[bytes], chance: random.Random) -> int:
    """All that is tried with one file, the costly part with some only. Gives how many libraries were rewritten."""
    check(data)
    if number % 8 == 0:
        turned(chance.choice(others), chance)
    return rewritten(data) if number % 4 == 0 and data.startswith(b"\x7fELF") else 0


def keep(data: bytes, error: Exception) -> None:
    if isinstance(error, Stayed):
        data, *error.args = error.args
    CRASHES.mkdir(parents=True, exist_ok=True)
    path = CRASHES / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    *_, last = traceback.extract_tb(error.__traceback__)
    print(f"{path}: {type(error).__name__} in {last.name}: {error}", file=sys.stderr)


def blind(seconds: float, seed: int, seeds: Sequence[Path] = ()) -> int:
    """Mutations without coverage. Gives the number of failures."""
    signal.signal(signal.SIGPROF, _slow)
    chance = random.Random(seed)
    whole = [*WHOLE, *(path.read_bytes() for path in seeds)]
    failures = runs = changed = 0
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        data = mutated(chance.choice(whole), whole, chance)
        runs += 1
        try:
            changed += one(data, runs, whole, chance)
        except Exception as error:  # noqa: BLE001 - finding these is what this is for
            keep(data, error)
            failures += 1
    print(f"{runs} files in {seconds:.0f} s, {changed} rewritten, {failures} failures, seed {seed}", flush=True)
    return failures


def guided(seconds: int) -> int:
    """Mutations that coverage guides; libFuzzer ends the process at the first failure, and writes the file down."""
    CRASHES.mkdir(parents=True, exist_ok=True)
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as grown:
        options = [f"-max_total_time={seconds}", f"-timeout={SLOW}", "-rss_limit_mb=1024", f"-max_len={LARGEST}",
                   f"-artifact_prefix={CRASHES}/", "-print_final_stats=1"]  # fmt: skip
        atheris.Setup(
            [sys.argv[0], *options, grown, str(HERE / "corpus")], lambda data: one(data, len(data), WHOLE, chance)
        )
        atheris.Fuzz()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--blind", action="store_true", help="without coverage, also where atheris is installed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with a seed of its own; blind")
    parser.add_argument("--seeds", type=Path, help="a folder with more files to begin with; blind")
    options = parser.parse_args()
    signal.signal(signal.SIGPROF, _slow)
    if options.files:
        for path in options.files:
            data = path.read_bytes()
            with contextlib.redirect_stdout(io.StringIO()):
                code, _ = check(data)
                changed = rewritten(data) if data.startswith(b"\x7fELF") else 0
            print(f"{path}: exit code {code}, {changed} rewritten")
        return 0
    if options.blind or options.seeds or options.jobs > 1 or atheris is None:
        more = sorted(options.seeds.iterdir()) if options.seeds else []
        given = [(options.seconds, options.seed + n, more) for n in range(options.jobs)]
        with multiprocessing.Pool(options.jobs) as pool:
            failures = sum(pool.starmap(blind, given, chunksize=1))
        print(f"{options.jobs} processes, {failures} failures")
        return 1 if failures else 0
    return guided(options.seconds)


def _slow(*_: object) -> None:
    raise Slow(f"over {SLOW} seconds")


if __name__ == "__main__":
    sys.exit(main())
