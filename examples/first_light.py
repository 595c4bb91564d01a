"""The whole way on the patient: silently wrong, found, patched, built, verified in the binary, right.

    first_light.py [--returns alias|void] [SOURCE]

With SOURCE, a tree that you have: patch and check, and where it is a SYCL extension and the machine has the parts of
the compiler driver, a verified wheel of it for Battlemage. Every step is a command that you can type yourself.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from contextlib import nullcontext
from pathlib import Path

from esimd_act import act
from rich.console import Console
from rich.rule import Rule
from rich.table import Table

HERE = Path(__file__).resolve().parent
SCRATCH = Path(os.path.relpath(HERE.parent / "build" / "first-light"))  # relative, so that what is printed stays short
SCRIPTS = Path(sysconfig.get_path("scripts"))
console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--returns", choices=["alias", "void"])
    parser.add_argument("source", nargs="?", type=Path)
    options = parser.parse_args()
    if options.source:
        return patch_and_check(options.source, options.returns or "alias")  # whose callers are not known
    return heal_the_patient(options.returns or "void")


def patch_and_check(source: Path, returns: str) -> int:
    step(f"Patch {source}")
    run("-m", "schema_patch", "apply", "--returns", returns, source, expect=None)
    step("Check it")
    code = run("-m", "schema_patch", "check", source, expect=None)
    step("Infer what the operators do that no table knows: schema-patch audit")
    others = run("-m", "schema_patch", "audit", source, expect=None)
    console.print(f"\nTo take it back: schema-patch revert {source}")
    if code == 0 and any(b"SyclExtension" in path.read_bytes() for path in source.glob("setup*.py")):
        return for_the_card(source, returns)
    return code or (1 if others == 1 else 0)


def for_the_card(source: Path, returns: str) -> int:
    """A wheel with machine code, compiled without oneAPI; what is missing for it is named and left out."""
    step("A wheel for Battlemage: schema-patch rebuild --for bmg")
    if run("-m", "schema_patch", "doctor", "--for", "bmg", expect=None):
        console.print(
            "Left out: what is marked ✗ above is missing. `make ocloc` and `apt-get install clang-19` bring it."
        )
        return 0
    out = SCRATCH / "for-the-card"
    return run("-m", "schema_patch", "rebuild", source, "--for", "bmg", "--returns", returns, "--out", out, expect=None)


def heal_the_patient(returns: str) -> int:
    shutil.rmtree(SCRATCH, ignore_errors=True)
    patient, shipped, patched = SCRATCH / "patient", SCRATCH / "shipped", SCRATCH / "patched"
    shutil.copytree(HERE / "as_shipped", patient, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))

    step("1. The patient as shipped: built, installed, and a six-line program under torch.compile")
    install(patient, shipped)
    run(HERE / "six_lines.py", site=shipped, expect=1)

    step("2. What is wrong with it: schema-patch check")
    run("-m", "schema_patch", "check", patient, expect=1)

    step(f"3. Patch the source: python -m schema_patch apply --returns {returns}")
    run("-m", "schema_patch", "apply", "--returns", returns, patient, expect=0)

    step("4. Build and install it again")
    install(patient, patched)

    step("5. Verify the installed binary: verify-schemas")
    names = sorted(row["op"] for row in verify(shipped)["checked"])
    run(SCRIPTS / "verify-schemas", patched, *(f"--require={name}" for name in names), expect=0)

    step("6. The same program again")
    code = run(HERE / "six_lines.py", site=patched, expect=0 if returns == "void" else 2)
    if code == 2:
        console.print("torch.compile refuses an operator that returns an alias: no longer silent, not yet compiled.")

    step("7. What changed in the binary")
    before, after = ({row["op"]: row for row in verify(site)["checked"]} for site in (shipped, patched))
    table = Table("operator", "schema before", "schema after", "verdict", show_lines=True)
    for name in names:
        old, new = before[name], after[name]
        table.add_row(name, arguments(old["schema"]), arguments(new["schema"]), f"{old['verdict']} → {new['verdict']}")
    console.print(table)
    were_wrong, are_wrong = ([n for n in names if rows[n]["verdict"] == "wrong"] for rows in (before, after))
    console.print(f"{len(names)} operators: {len(were_wrong)} wrong before, {len(are_wrong) or 'none'} after.")
    if are_wrong or not were_wrong:
        return 1
    act(step, run, SCRATCH)
    return 0


def install(project: Path, site: Path) -> None:
    flags = ("--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps", "--target", str(site))
    run("-m", "pip", "install", *flags, project, expect=0)


def verify(site: Path) -> dict[str, list[dict[str, str]]]:
    """The JSON report of verify-schemas."""
    argv = [SCRIPTS / "verify-schemas", "--format", "json", site]
    return json.loads(subprocess.run(argv, capture_output=True, check=False).stdout)


def arguments(schema: str) -> str:
    """A schema without its name, which the table's first column says."""
    return " ".join(schema[schema.index("(") :].split())


def step(title: str) -> None:
    console.print()
    console.print(Rule(f"[bold]{title}", align="left"))


def run(*argv: str | Path, site: Path | None = None, expect: int | None) -> int:
    """Runs an installed command, or Python with these arguments; shows it and insists on its exit code."""
    words = [str(word) for word in (argv if Path(argv[0]).parent == SCRIPTS else (sys.executable, *argv))]
    shown = " ".join(os.path.relpath(word) if os.path.isabs(word) else word for word in words)
    console.print(f"[dim]$ {shown}", soft_wrap=True)
    env = {**os.environ, "PYTHONPATH": str(site.resolve())} if site else dict(os.environ)
    env.pop("CI", None)  # where it is set, torch refuses what it elsewhere lets through, silently wrong
    with console.status("building") if "pip" in words else nullcontext():
        code = subprocess.run(words, env=env, check=False).returncode
    if expect is not None and code != expect:
        raise SystemExit(f"expected exit code {expect}, found {code}: {shown}")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
