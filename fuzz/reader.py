"""Fuzzes the whole reader of `verify-schemas`: libraries, device images, wheels and archives in one.

    python fuzz/reader.py --seconds 3600            grows a corpus in a temporary folder, from fuzz/corpus
    python fuzz/reader.py FILE...                   runs these files once, as for a crash that was found

Looks for three things: an exception other than ToolError, a file that takes over ten seconds, and a library that is
called the same after one bit of its schemas was turned although it then declares something else. With atheris (Linux,
extra `fuzz`) coverage guides the mutations; without it they are blind. What fails is kept in build/crashes.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import os
import random
import re
import signal
import sys
import tempfile
import time
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
    from schema_patch.verify import survey

# The letter of a set, a default, and how a return repeats what its argument says: none says what is written.
MEANING = re.compile(rb"\(\w!\)|=[\w.+-]+|(?<=-> Tensor)\(\w.\)$")


SCHEMA = re.compile(rb"esimd_\w+\([^\0]*\) -> [^\0]*")
WHOLE = [path.read_bytes() for path in sorted((HERE / "corpus").iterdir())]


class Slow(Exception):
    """A file took too long."""


def check(data: bytes) -> tuple[int, frozenset[str]]:
    """The exit code for a file with these bytes, and the codes of what was found. Raises what the reader should not."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as file:
        file.write(data)
        file.flush()
        signal.setitimer(signal.ITIMER_PROF, SLOW)
        try:
            report = survey.survey([file.name], devices=("bmg",) if len(data) % 2 else ())
            return report.exit_code, frozenset(finding.code for finding in report.findings)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


def turned(data: bytes, chance: random.Random) -> None:
    """Turns one bit of one schema of a clean file, which must not stay clean."""
    schemas = list(SCHEMA.finditer(data))
    before = check(data) if schemas else (2, frozenset())
    if before[0]:
        return
    where = chance.choice(schemas)
    at = chance.randrange(where.start(), where.end())
    changed = bytearray(data)
    changed[at] ^= 1 << chance.randrange(8)
    text = bytes(changed[where.start() : where.end()])
    if MEANING.sub(b"", text) != MEANING.sub(b"", where.group()) and check(bytes(changed)) == before:
        raise AssertionError(f"clean after a turned bit: {text!r}")


def mutated(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """Some of what goes wrong with files: bits, numbers at their limits, cuts, and parts of others."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at = chance.randrange(len(changed) or 1)
        kind = chance.randrange(6)
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


def keep(data: bytes, error: BaseException) -> None:
    CRASHES.mkdir(parents=True, exist_ok=True)
    path = CRASHES / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    print(f"{path}: {type(error).__name__}: {error}", file=sys.stderr)


def blind(seconds: float, seed: int) -> int:
    """Mutations without coverage. Gives the number of failures."""
    chance = random.Random(seed)
    failures = runs = 0
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        data = mutated(chance.choice(WHOLE), WHOLE, chance)
        runs += 1
        try:
            check(data)
            if runs % 8 == 0:
                turned(chance.choice(WHOLE), chance)
        except Exception as error:  # noqa: BLE001 - finding these is what this is for
            keep(data, error)
            failures += 1
    print(f"{runs} files in {seconds:.0f} s, {failures} failures, seed {seed}")
    return failures


def guided(seconds: int) -> int:
    """Mutations that coverage guides; libFuzzer ends the process at the first failure, and writes the file down."""
    CRASHES.mkdir(parents=True, exist_ok=True)
    chance = random.Random(0)

    def one(data: bytes) -> None:
        check(data)
        if len(data) % 16 == 0:
            turned(chance.choice(WHOLE), chance)

    with tempfile.TemporaryDirectory() as grown:
        options = [f"-max_total_time={seconds}", f"-timeout={SLOW}", "-rss_limit_mb=1024", f"-max_len={LARGEST}",
                   f"-artifact_prefix={CRASHES}/", "-print_final_stats=1"]  # fmt: skip
        atheris.Setup([sys.argv[0], *options, grown, str(HERE / "corpus")], one)
        atheris.Fuzz()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--blind", action="store_true", help="without coverage, also where atheris is installed")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    signal.signal(signal.SIGPROF, _slow)
    if options.files:
        for path in options.files:
            with contextlib.redirect_stdout(io.StringIO()):
                code, _ = check(path.read_bytes())
            print(f"{path}: exit code {code}")
        return 0
    if options.blind or atheris is None:
        return 1 if blind(options.seconds, options.seed) else 0
    return guided(options.seconds)


def _slow(*_: object) -> None:
    raise Slow(f"over {SLOW} seconds")


if __name__ == "__main__":
    sys.exit(main())
