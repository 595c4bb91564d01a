"""Fetches ocloc and its graphics compiler as Debian's packages, and unpacks them beside the system: `make ocloc`.

    python -m schema_patch.build.driver.fetch

An ocloc on the path that knows the device is left as it is. Debian's unstable suite knows Battlemage, and its packages
need a newer C library than stable releases have: it comes with them, and a small program starts ocloc by its loader.
apt has a state of its own for this, so that no file of the system is touched and root is not needed; the mirror is
the machine's own, and apt checks the packages against Debian's signatures. What was fetched is recorded with its
checksums.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from schema_patch.model import ToolError

from . import cache, offline

DEVICE = "bmg"
SUITE = "sid"
PACKAGES = ("intel-ocloc", "libigc2", "libigdfcl2", "libc6", "libstdc++6", "libgcc-s1")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SOURCES = Path("/etc/apt")
TOOLS = ("apt-get", "dpkg-deb")
INSTALL = (
    "install the package with ocloc of your distribution (intel-ocloc, from 25.x on) or of Intel's own for its GPUs"
)
CONFIGURATION = """\
Dir::Etc::sourcelist "{root}/etc/sources.list";
Dir::Etc::sourceparts "-";
Dir::State "{root}/state";
Dir::State::status "/dev/null";
Dir::Cache "{root}/cache";
APT::Sandbox::User "";
APT::Architecture "amd64";
"""
PROGRAM = """\
#!/bin/sh
# ocloc with the C library that it was built for.
root=$(dirname "$(dirname "$(readlink -f "$0")")")/root
lib=usr/lib/x86_64-linux-gnu
loader=$root/usr/lib64/ld-linux-x86-64.so.2
exec "$loader" --library-path "$root/$lib:/$lib:/lib/x86_64-linux-gnu" "$root/usr/bin/{name}" "$@"
"""


def fetch() -> Path:
    """The program, fetched where there is none yet. Raises ToolError where it cannot be."""
    if found := _there():
        return found
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise ToolError(f"expected {' and '.join(TOOLS)} to fetch ocloc with, found no {', '.join(missing)}: {INSTALL}")
    mirror = find_mirror(SOURCES)
    if not mirror:
        raise ToolError(f"expected a mirror of Debian among apt's sources, found none: {INSTALL}", str(SOURCES))
    target = cache.folder() / offline.FETCHED
    work = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        _download(work, mirror)
        _unpack(work)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(work, target)
    except OSError as error:
        raise ToolError(f"cannot write: {error.strerror}", str(error.filename)) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    offline.find.cache_clear()
    offline.check_devices([DEVICE])
    return target / "bin" / "ocloc"


def find_mirror(sources: Path) -> str:
    """The address of the machine's own mirror of Debian, from apt's sources; empty where it has none."""
    for address, suites in _sources(sources):
        # Not Debian's security archive, which has no unstable suite, nor another distribution's.
        if re.search(r"/debian/?$", address) and not any("security" in suite for suite in suites):
            return address
    return ""


def _there() -> Path | None:
    try:
        return Path(offline.check_devices([DEVICE]).path)
    except ToolError:
        return None


def _sources(folder: Path) -> Iterator[tuple[str, Sequence[str]]]:
    for path in sorted([*folder.glob("sources.list.d/*.sources"), *folder.glob("sources.list.d/*.list"),
                        *folder.glob("sources.list")]):  # fmt: skip
        text = "\n".join(line for line in path.read_text("utf-8", "replace").splitlines() if not line.startswith("#"))
        for block in re.split(r"\n\s*\n", text):
            suites = re.search(r"(?m)^Suites:\s*(.+)", block)
            for line in re.findall(r"(?m)^URIs:\s*(.+)", block):
                for address in line.split():
                    yield address, suites[1].split() if suites else ()
        for address, suite in re.findall(r"(?m)^deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)", text):
            yield address, (suite,)


def _download(root: Path, mirror: str) -> None:
    for name in ("state/lists/partial", "cache/archives/partial", "etc", "debs"):
        (root / name).mkdir(parents=True)
    signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
    (root / "etc/sources.list").write_text(f"deb {signed}{mirror} {SUITE} main\n")
    (root / "etc/apt.conf").write_text(CONFIGURATION.format(root=root))
    environment = {**os.environ, "APT_CONFIG": str(root / "etc/apt.conf")}
    for words in (["apt-get", "-qq", "update"], ["apt-get", "-qq", "download", *PACKAGES]):
        print(f"{' '.join(words[2:])} …", file=sys.stderr)
        done = subprocess.run(words, cwd=root / "debs", env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise ToolError(f"`{' '.join(words)}` failed with {mirror}: {said[-600:]}\n{INSTALL}")


def _unpack(root: Path) -> None:
    fetched = []
    for path in sorted((root / "debs").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", path, root / "root"], check=True)
        data = path.read_bytes()
        fetched.append({"package": path.name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})
    programs = sorted((root / "root/usr/bin").glob("ocloc*"))
    if not programs:
        raise ToolError("expected a program ocloc in the package intel-ocloc, found none", str(root))
    (root / "bin").mkdir()
    program = root / "bin/ocloc"
    program.write_text(PROGRAM.format(name=programs[-1].name))
    program.chmod(0o755)
    (root / "packages.json").write_text(json.dumps(fetched, indent=1) + "\n")
    for name in ("state", "cache", "etc", "debs"):
        shutil.rmtree(root / name)


def main() -> int:
    try:
        program = fetch()
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    compiler = offline.find()
    print(f"{program}: ocloc {compiler.version}, graphics compiler {compiler.igc or 'of unknown version'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
