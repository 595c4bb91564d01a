"""The first minute: a library that is silently wrong, found, made safe in three ways, verified; and a race.

    first_light.py [--returns alias|void] [SOURCE]

With SOURCE, what is wrong in a tree of yours, which is only read; of a SYCL extension, where the parts of the compiler
are there, also a patched and verified wheel for Battlemage. Every step is a command that you can type
yourself; all that they print is in build/run/log.txt.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path

import step
from rich.console import Console

from schema_patch.build.toolchain import asks_for_sycl

ROOT = Path(os.path.relpath(Path(__file__).resolve().parents[1]))  # relative, so that what is printed stays short
SCRATCH = ROOT / "build" / "run"
LOG = SCRATCH / "log.txt"
PATIENT = ROOT / "examples/as_shipped"
SHIPPED, IN_PLACE = SCRATCH / "shipped", SCRATCH / "in-place"
REBUILT, PATCHED = SCRATCH / "rebuilt", SCRATCH / "new"
SIX_LINES, RACING = ROOT / "examples/six_lines.py", ROOT / "examples/racing.py"
SCRIPTS = Path(sysconfig.get_path("scripts"))
NAMESPACE, RACE = "esimd_race", "esimd_race::esimd_resadd_norm_gemv_fp8_pert"
AS_A_B580 = {"ESIMD_HOST_SCHEDULE": "ascending,lockstep,resident=20"}  # it holds 20 groups of this kernel at once
WIDTH = 80
console = Console(highlight=False, markup=False, soft_wrap=True)

Select = Callable[[list[str]], Iterable[str]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--returns", choices=["alias", "void"])
    parser.add_argument("source", nargs="?", type=Path)
    options = parser.parse_args()
    for left in (SCRATCH, *(PATIENT / "build").glob("bdist.*")):  # the latter of a run that was interrupted
        shutil.rmtree(left, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    if options.source:
        return ask(options.source, options.returns or "alias")  # whose callers are not known
    heal(options.returns or "void")
    return 0


def heal(returns: str) -> None:
    """The patient: the operators as published, with the schemas as published, over kernels of this kit."""
    block("1. Wrong", "A library with the 47 schemas as published, and six lines under torch.compile.")
    install(PATIENT, SHIPPED)
    run("python", SIX_LINES, site=SHIPPED, expect=1, show=holding("eager", "compiled", "different"))

    block("2. Found", "In the installed binary, without loading it; and in the source.")
    run("verify-schemas", SHIPPED, expect=1, show=findings)
    run("schema-patch", "check", PATIENT, expect=1, show=last)

    block("3. Three ways to be safe")
    say("The guard, without a rebuild, in every process that imports torch:")
    run("python", SIX_LINES, site=SHIPPED, env={"SCHEMA_KIT_GUARD": "1"}, expect=0, show=holding("the same"))
    say("The installed library, without a compiler: its schemas rewritten in place; compiled with the guard alone:")
    shutil.copytree(SHIPPED, IN_PLACE)
    run("schema-patch", "apply", IN_PLACE, expect=0, show=last)
    run("python", SIX_LINES, site=IN_PLACE, expect=2, show=holding("schema", "refused"))
    run("python", SIX_LINES, site=IN_PLACE, env={"SCHEMA_KIT_GUARD": "1"}, expect=0, show=holding("the same"))
    say("The source: patched, built against the installed torch, verified:")
    run("schema-patch", "rebuild", PATIENT, "--returns", returns, "--out", REBUILT, expect=0, show=verdicts)
    install(next(REBUILT.glob("*.whl")), PATCHED)
    refused = returns == "alias"  # torch.compile refuses to trace an alias: no longer silent, not yet compiled
    run("python", SIX_LINES, site=PATCHED, expect=2 if refused else 0, show=holding("schema", "refused", "the same"))

    block("4. Verified", "All 47 must be in the binary that is installed now, and right.")
    names = sorted(row["op"] for row in report(SHIPPED)["checked"])
    run("verify-schemas", PATCHED, "--require", ",".join(names), expect=0, show=verdicts)

    block("5. A race, and its replacement", "A kernel for Arc GPUs, built for this CPU as it stands.")
    race()
    close(
        "Your own library: `verify-schemas SITE-PACKAGES` and `schema-patch audit TREE` say what is wrong;",
        "`make run SOURCE=TREE` asks both of a tree. README.md says, by job, what to do then.",
    )


def race() -> None:
    """An operator that reads what another of its work-groups writes: seen, shown, replaced."""
    build = SCRATCH / "esimd"
    quietly("host-build", "python", "-m", "esimd_ops", "host-build", ROOT / "examples/esimd", "--checks", "-o", build)
    seen = holding("HR101")
    run("python", "-m", "esimd_ops", "races", "--namespace", NAMESPACE, site=build, expect=1, show=seen)
    say("The same call with 20 groups at once, as a B580 holds; then with this kit's operator in its place:")
    run("python", RACING, site=build, env=AS_A_B580, expect=1, show=last)
    run("python", RACING, site=build, env={**AS_A_B580, "SCHEMA_KIT_REPLACE": RACE}, expect=0, show=last)


def ask(source: Path, returns: str) -> int:
    """Verdicts on a tree, what an audit adds, and what to do next. Nothing is written into it."""
    block(f"1. {source}", "What its operators declare, against what the tables know.")
    known = run("schema-patch", "check", source, show=findings)
    block("2. What the audit adds", "Inferred from the code, with the places; no table needed.")
    inferred = run("schema-patch", "audit", source, show=findings)
    changes = {f"apply --returns {returns}": known, "apply --infer": inferred}
    wrong = [change for change, code in changes.items() if code == 1]
    sycl = asks_for_sycl(source)
    builds = any(b"Extension(" in path.read_bytes() for path in source.glob("setup*.py"))
    block("3. Next", "Nothing was changed." if wrong else "")
    for change in wrong:
        say("What would be written (without --diff it is):")
        say(f"$ schema-patch {change} --diff {source}", style="bold")
    if wrong and not sycl and builds:
        say("A patched and verified wheel, of a copy:")
        say(f"$ schema-patch rebuild {source} --out rebuilt", style="bold")
    if not wrong:
        close("Nothing wrong was found." if 0 in (known, inferred) else "Nothing could be verified: see the log.")
    if sycl:
        wheel(source, returns)
    return 1 if wrong else min(known, inferred)


def wheel(source: Path, returns: str) -> None:
    """A patched copy of a SYCL tree, compiled for Battlemage, and verified once more as whoever installs it would."""
    block("4. A wheel for Battlemage", "Of a patched copy; many kernels take minutes, and ctrl-C leaves nothing.")
    argv = ("rebuild", source, "--for", "bmg", "--returns", returns, "--out")
    if run("schema-patch", "doctor", "--for", "bmg", show=in_the_way):
        say("When that is mended:")
        say(" ".join(map(str, ("$ schema-patch", *argv, "rebuilt"))), style="bold")
        return
    quietly(f"schema-patch rebuild {source.name} --for bmg", "schema-patch", *argv, REBUILT)
    run("verify-schemas", next(REBUILT.glob("*.whl")), "--target", "bmg-g21", expect=0, show=verdicts)
    close(f"The wheel, and build.json, which says what made it: {REBUILT}")


def install(what: Path, site: Path) -> None:
    flags = ("--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps", "--target")
    quietly(f"pip install, into {site}", "python", "-m", "pip", "install", *flags, site, ROOT / what)


def report(site: Path) -> dict[str, list[dict[str, str]]]:
    """The JSON report of verify-schemas."""
    argv = [SCRIPTS / "verify-schemas", "--format", "json", site]
    return json.loads(subprocess.run(argv, capture_output=True, check=False).stdout)


def quietly(title: str, *argv: str | Path) -> None:
    """A step that takes a while: a line, and the log."""
    if step.run(LOG, title, words(argv), dict(os.environ)):
        raise SystemExit(2)


def run(
    *argv: str | Path,
    show: Select,
    site: Path | None = None,
    env: dict[str, str] | None = None,
    expect: int | None = None,
) -> int:
    """Shows a command and the lines of its output that tell; insists on its exit code."""
    set_here = {**({"PYTHONPATH": str(site)} if site else {}), **(env or {})}
    told = " ".join([*(f"{name}={value}" for name, value in set_here.items()), *map(str, argv)])
    say("$ " + re.sub(r"(\w+),\w+(,\w+){3,}", r"\1,…", told), style="bold")
    # Where CI is set, torch refuses what it elsewhere lets through, silently wrong.
    around = {name: value for name, value in os.environ.items() if name != "CI"} | {"COLUMNS": "160"} | set_here
    done = subprocess.run(
        words(argv), env=around, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"\n$ {told}\n{done.stdout}")
    for line in show(done.stdout.splitlines()):
        say(line, "  ")
    if expect is not None and done.returncode != expect:
        raise SystemExit(f"expected exit code {expect}, found {done.returncode}: {shlex.join(words(argv))}; see {LOG}")
    return done.returncode


def words(argv: Iterable[str | Path]) -> list[str]:
    """A command as it is run: its program is that of this environment."""
    program, *rest = map(str, argv)
    return [sys.executable if program == "python" else str(SCRIPTS / program), *rest]


def holding(*marks: str) -> Select:
    """The lines that hold one of these words."""
    return lambda lines: [line for line in lines if any(mark in line for mark in marks)]


def in_the_way(lines: list[str]) -> list[str]:
    """What doctor counts as an error, with the lines below it that say why and how to mend it."""
    told = [line for line in re.split(r"\n(?! )", "\n".join(lines)) if line.startswith("✗")]
    return "\n".join(told).splitlines() or lines[:1]


def last(lines: list[str]) -> list[str]:
    return verdicts(lines) or lines[-1:]


def verdicts(lines: list[str]) -> list[str]:
    """The line that counts."""
    return [line for line in lines if re.match(r"\d+ operators?: |no operators", line)]


def findings(lines: list[str]) -> list[str]:
    """The verdict in a sentence, the first finding, how many more there are, and the line that counts."""
    verdict = [line for line in lines[:1] if line.startswith("affected")]
    found = [line.strip().replace(f"{SCRATCH}/", "") for line in lines if re.search(r"\berror: SP\d", line)]
    more = [f"… and {len(found) - 1} more"] if len(found) > 1 else []
    return [*verdict, *(re.sub("undeclared: .*", "undeclared", line) for line in found[:1]), *more, *verdicts(lines)]


def block(title: str, what: str = "") -> None:
    console.print()
    console.print(title, style="bold underline")
    if what:
        say(what)


def say(text: str, indent: str = "", style: str | None = None) -> None:
    """A paragraph of at most 80 columns."""
    filled = textwrap.fill(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
    console.print(filled, style=style)


def close(*lines: str) -> None:
    console.print()
    say(" ".join(lines), style="bold")
    say(f"All that was printed: {LOG}")


if __name__ == "__main__":
    raise SystemExit(main())
