"""Published wheels, fetched once by pip into a cache folder: $SCHEMA_KIT_WHEELS, or schema-kit-wheels in the user's cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def fetch(requirement: str, platform: str = "manylinux_2_28_x86_64") -> Path:
    """The wheel of a pinned requirement, `name==version`. Fails where pip cannot fetch it."""
    name, version = requirement.split("==")
    prefix = f"{name.replace('-', '_')}-{version}-"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(os.environ.get("SCHEMA_KIT_WHEELS") or cache / "schema-kit-wheels")
    folder.mkdir(parents=True, exist_ok=True)
    for wheel in folder.glob(f"{prefix}*.whl"):
        return wheel
    with tempfile.TemporaryDirectory(dir=folder) as landing:  # a broken download never looks like a wheel
        options = ["--no-deps", "--only-binary=:all:", "--platform", platform, "--python-version", "3.12", "-q"]
        command = [sys.executable, "-m", "pip", "download", *options, "-d", landing, requirement]
        subprocess.run(command, check=True, timeout=600)
        (wheel,) = Path(landing).glob(f"{prefix}*.whl")
        return wheel.rename(folder / wheel.name)
