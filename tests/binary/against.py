"""Tables of sources, each built in many ways, against torch's registry: what `ways.py` and `pairs.py` run.

    python tests/binary/ways.py [--jobs N] FOLDER [PART OF A NAME]

What is in FOLDER already is not made or asked again: a run that was ended goes on, also with other jobs.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import itertools
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1] / "registrations"))
import kept
import stable

Sources = tuple[str, ...]  # of a library that is loaded, and perhaps of one that it needs


def judged(path: Path, texts: list[str]) -> str:
    """What is said of libraries for which torch registers some texts; a fault where that is not so."""
    from schema_patch.commands import main as command
    from schema_patch.schemas import rules, table
    from schema_patch.schemas.grammar import parse

    schemas, effects = [parse(text) for text in texts], table.load()
    wrong = any(rules.judge(schema, effects.effect(schema)).verdict.name == "WRONG" for schema in schemas)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = command.main_verify([str(path)])
    return ("found" if wrong else "fault", "told", "fault" if wrong else "right")[(1, 2, 0).index(code)]


def built(folder: Path, sources: Sources, build: str) -> list[Path]:
    """The libraries of a row, the first of which needs the second."""
    folder.mkdir(parents=True, exist_ok=True)
    compiler, *options = build.split()
    needed = [
        stable.build(folder / "libsecond.so", source, compiler, *options, "-w", "-Wl,-soname,libsecond.so")
        for source in sources[1:]
    ]
    more = ("-Wl,--no-as-needed", *map(str, needed), "-Wl,-rpath,$ORIGIN") if needed else ()
    return [stable.build(folder / "libfirst.so", sources[0], compiler, *options, "-w", *more), *needed]


def _libraries(folder: Path, sources: Sources, build: str) -> list[Path]:
    """Those of a row, built whole or not at all; none if that cannot be."""
    if not folder.exists():
        with contextlib.suppress(subprocess.CalledProcessError, FileNotFoundError):
            built(folder.with_suffix(".new"), sources, build)
            folder.with_suffix(".new").rename(folder)
    return sorted(folder.glob("*.so"))


def main(table: Mapping[str, Sources], builds: Sequence[str]) -> int:
    """Exit code 0: all that torch registers wrongly is found or told, and something was asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("part", nargs="?", default="")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    rows = {
        hashlib.sha256(repr((sources, build)).encode()).hexdigest()[:16]: (f"{name}, {build}", sources, build)
        for (name, sources), build in itertools.product(table.items(), builds)
        if options.part in f"{name}, {build}"
    }

    def registered(names: Sequence[str]) -> list[list[str] | None]:
        there = [_libraries(folder / name, *rows[name][1:]) for name in names]
        truth = iter(stable.registered([path for paths in there for path in paths], all_=False))
        return [[text for _ in paths for text in next(truth)] if paths else None for paths in there]

    truth = kept.kept(folder / "torch.jsonl", rows, registered, options.jobs)
    loaded = {name: texts for name, texts in truth.items() if texts}

    def said(names: Sequence[str]) -> Iterator[list[str]]:
        for name in names:
            first = folder / name / "libfirst.so"
            asked = (first, first.parent) if len(rows[name][1]) > 1 else (first,)
            yield [judged(path, loaded[name]) for path in asked]

    counts = Counter[str]()
    for name in truth.keys() - loaded.keys():
        counts["not built" if truth[name] is None else "not loaded"] += 1
    verdicts = kept.kept(folder / f"kit-{kept.state()}.jsonl", loaded, said, options.jobs)
    for name, (words, *_) in rows.items():
        counts.update(verdicts.get(name, ()))
        if name not in loaded:
            print(f"{words}: {'not built' if truth[name] is None else 'not loaded'}")
        elif "fault" in verdicts[name]:
            print(f"{words} ({name}): called otherwise than torch registers it: {loaded[name]}")
    print(f"{len(loaded)} of {len(rows)} libraries: {dict(counts)}")
    return 1 if counts["fault"] or not loaded else 0
