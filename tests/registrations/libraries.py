"""Builds the forms with compilers and linkers, and asks torch what each library registers.

    python tests/registrations/libraries.py --seeds 2 --jobs 2 FOLDER      every combination; prints what was read

What is in FOLDER already is not made or asked again: a run that was ended goes on.

For each library torch's registry is the truth: a text that was read must be registered under its namespace, and where
one that is registered was not read, the library must not be called right.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1]), str(HERE.parent / "schema_patch")]
import kept
from elf_files import sstrip
from forms import FORMS, HEADER

from schema_patch.elf import reader
from schema_patch.model import Verdict
from schema_patch.schemas.grammar import parse
from schema_patch.schemas.rules import judge
from schema_patch.schemas.table import load
from schema_patch.verify import survey

COMPILERS = ("g++", "clang++")
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
LINKERS = ("bfd", "gold", "lld", "mold")
STRIPS = ("", "strip", "sstrip")
COMMON = ("-std=c++20", "-fPIC", "-w")
# One process a library: two cannot register the same namespace.
ASK = """
import json, os, sys, torch
known = set(map(str, torch._C._jit_get_all_schemas()))
for path in sys.argv[1:]:
    sys.stdout.flush()
    if not os.fork():
        try:
            torch.ops.load_library(path)
            new = [str(s) for s in torch._C._jit_get_all_schemas() if str(s) not in known]
        except Exception as error:
            new = ["error: " + str(error)]
        print(json.dumps([path, new]), flush=True)
        os._exit(0)
    os.wait()
"""


@dataclass(frozen=True)
class Built:
    """One library: where it is and how it was made."""

    path: Path
    form: str
    compiler: str
    level: str
    linker: str
    strip: str

    @property
    def words(self) -> str:
        return f"{self.form} {self.compiler} {self.level} {self.linker} {self.strip or 'whole'}"


def flags() -> tuple[list[str], list[str]]:
    from torch.utils import cpp_extension

    include = [f"-I{path}" for path in cpp_extension.include_paths()]
    return include, [*(f"-L{path}" for path in cpp_extension.library_paths()), "-ltorch_cpu", "-lc10"]


def precompiled(folder: Path, compiler: str, level: str, include: Sequence[str]) -> list[str]:
    """The options that make a compiler read torch's headers once."""
    head = folder / f"{compiler}{level}" / "head.h"
    target = head.with_name("head.h.gch" if compiler == "g++" else "head.h.pch")
    if not target.exists():
        head.parent.mkdir(exist_ok=True)
        head.write_text(HEADER)
        made([compiler, level, *COMMON, *include, "-x", "c++-header", str(head)], target)
    return [f"-I{head.parent}", *(["-include-pch", str(target)] if compiler != "g++" else [])]


def compile_(folder: Path, form: str, seed: int, compiler: str, level: str, include: Sequence[str]) -> Path:
    name = f"{form}-{seed}-{compiler}{level}"
    target = folder / f"{name}.o"
    if not target.exists():
        source = folder / f"{name}.cpp"
        source.write_text(FORMS[form](random.Random(f"{form} {seed}")))
        head = precompiled(folder, compiler, level, include)
        made([compiler, level, *COMMON, "-c", *head, *include, str(source)], target)
    return target


def made(command: Sequence[str], target: Path, *, strip: str = "") -> None:
    """What a command writes, whole or not at all."""
    if not target.exists():
        new = target.with_suffix(".new")
        subprocess.run([*command, "-o", str(new)], check=True)
        if strip:
            subprocess.run(["strip", new], check=True)
        if strip == "sstrip":
            sstrip(new)
        new.rename(target)


def link(object_: Path, compiler: str, linker: str, strip: str, link_flags: Sequence[str]) -> Path:
    target = object_.with_name(f"{object_.stem}-{linker}{'-' + strip if strip else ''}.so")
    made([compiler, "-shared", f"-fuse-ld={linker}", str(object_), *link_flags], target, strip=strip)
    return target


def available() -> tuple[list[str], list[str]]:
    return [c for c in COMPILERS if shutil.which(c)], [ld for ld in LINKERS if shutil.which(f"ld.{ld}")]


def build(
    folder: Path, chosen: Iterable[tuple[str, int, str, str]], pairs: Sequence[tuple[str, str]], jobs: int = 1
) -> list[Built]:
    """Libraries of (form, seed, compiler, level), each linked and stripped in each way of `pairs`."""
    include, link_flags = flags()

    def one(row: tuple[str, int, str, str]) -> list[Built]:
        form, seed, compiler, level = row
        made = compile_(folder, form, seed, compiler, level, include)
        return [
            Built(link(made, compiler, ld, strip, link_flags), form, compiler, level, ld, strip) for ld, strip in pairs
        ]

    with ThreadPoolExecutor(jobs) as pool:
        return [built for rows in pool.map(one, list(chosen)) for built in rows]


def registered(libraries: Sequence[Built]) -> dict[str, list[str]]:
    """What torch registers for each library, by path."""
    paths = [str(built.path) for built in libraries]
    done = subprocess.run([sys.executable, "-c", ASK, *paths], capture_output=True, text=True, check=True)
    return dict(map(json.loads, done.stdout.splitlines()))


@dataclass
class Outcome:
    """One library held against torch."""

    built: Built
    registered: int
    read: int
    told: int  # registrations said to be of unknown text
    faults: list[str]


def held(built: Built, truth: list[str]) -> Outcome:
    facts = reader.read(built.path)
    real = {str(parse(text)): text for text in truth}
    found = {
        f"{schema.namespace}::{parse(schema.text)}" if schema.namespace else str(parse(schema.text))
        for schema in facts.schemas
    }
    named = {f"{row.namespace}::{row.name}" for row in facts.named}
    inferred = {text for text in real if text.partition("(")[0] in named}
    bare = {text.partition("::")[2]: text for text in real}  # of a text whose namespace is not known
    found = {bare.get(text, text) for text in found}
    faults = [
        f"registered by nobody: {text}" for text in sorted(found - real.keys()) if not re.match(r"(\w+::)?never_", text)
    ]
    unread = real.keys() - found - inferred
    told = len(facts.unread)
    if unread and not told:
        faults.append(f"registered and not read, nor said to be unknown: {sorted(unread)[:3]}")
    report = survey.survey([str(built.path)])
    wrong = [text for text in real if judge(parse(text), load().effect(parse(text))).verdict is Verdict.WRONG]
    if report.exit_code == 0 and (wrong or unread):
        faults.append(f"called right: {(wrong or sorted(unread))[:3]}")
    return Outcome(built, len(real), len(real) - len(unread), told, faults)


def outcome(built: Built, told: list[str]) -> Outcome:
    if any(text.startswith("error: ") for text in told):
        return Outcome(built, 0, 0, 0, [f"torch does not load it: {told[0][:300]}"])
    return held(built, told)


def outcomes(libraries: Sequence[Built]) -> Iterator[Outcome]:
    truth = registered(libraries)
    return (outcome(built, truth[str(built.path)]) for built in libraries)


def resumed(folder: Path, libraries: Sequence[Built], jobs: int) -> Iterator[Outcome]:
    """The same, but for what a folder has already."""
    by_name = {built.path.name: built for built in libraries}

    def ask(names: Sequence[str]) -> list[list[str]]:
        found = registered([by_name[name] for name in names])
        return [found[str(by_name[name].path)] for name in names]

    truth = kept.kept(folder / "torch.jsonl", by_name, ask, jobs)

    def judge(names: Sequence[str]) -> Iterator[list[object]]:
        for name in names:
            one = outcome(by_name[name], truth[name])
            yield [one.registered, one.read, one.told, one.faults]

    for name, row in kept.kept(folder / f"kit-{kept.state()}.jsonl", by_name, judge, jobs).items():
        yield Outcome(by_name[name], *row)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--forms", default=",".join(FORMS))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    compilers, linkers = available()
    chosen = [
        (form, seed, compiler, level)
        for compiler, level, form, seed in itertools.product(
            compilers, LEVELS, options.forms.split(","), range(options.seeds)
        )
    ]
    for compiler, level in itertools.product(compilers, LEVELS):
        precompiled(options.folder, compiler, level, flags()[0])
    pairs = [(ld, STRIPS[n % len(STRIPS)]) for n, ld in enumerate(linkers)] + [(linkers[0], "sstrip")]
    libraries = build(options.folder, chosen, pairs, options.jobs)
    total: Counter[str] = Counter()
    forms: dict[str, Counter[str]] = {}
    for one in resumed(options.folder, libraries, options.jobs):
        row = {"libraries": 1, "registered": one.registered, "read": one.read, "faults": len(one.faults)}
        total.update(row)
        forms.setdefault(f"{one.built.form} {one.built.compiler} {one.built.level}", Counter()).update(row)
        for fault in one.faults:
            print(f"{one.built.words}: {fault}")
    for name, counts in forms.items():
        print(f"{name}: {counts['read']} of {counts['registered']} read")
    share = total["read"] / max(1, total["registered"])
    print(f"{total['libraries']} libraries, {total['read']} of {total['registered']} registrations read ({share:.1%}), "
          f"{total['faults']} faults")  # fmt: skip
    return 1 if total["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
