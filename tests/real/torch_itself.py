"""libtorch as installed: torch's own registry is the oracle for the schemas and namespaces read out of the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from schema_patch.elf import reader
from schema_patch.elf.evidence import registrations
from schema_patch.schemas.grammar import SchemaError, parse

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.real
LIBRARY = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"


@pytest.fixture(scope="module")
def found() -> dict[str, set[str]]:
    schemas: dict[str, set[str]] = {}
    registrations.WORK = 1 << 62  # all of it, however long that takes
    for schema in reader.read(LIBRARY).schemas:
        schemas.setdefault(str(schema.schema), set()).add(schema.namespace)
    return schemas


def test_what_torch_registers_is_found_with_its_namespace(found: dict[str, set[str]]) -> None:
    """Torch prints some defaults otherwise than they were written, and defines others in Python: nine in ten remain."""
    listing = "import torch; print(*torch._C._jit_get_all_schemas(), sep='\\n')"  # not with what other tests registered
    registered = subprocess.run(
        [sys.executable, "-c", listing], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(registered) > 3000
    seen = wrong = 0
    for text in registered:
        try:
            parsed = str(parse(text))
        except SchemaError:
            continue
        space, _, rest = parsed.partition("::")
        spaces = found.get(rest, set()) | ({space} if parsed in found else set())
        seen += bool(spaces)
        # What Python defines may have the same text as an operator of another namespace.
        wrong += bool(spaces) and space in ("aten", "quantized", "onednn") and not spaces & {space, ""}
    assert seen > 0.9 * len(registered)
    assert wrong == 0


def test_a_library_of_400_mb_takes_under_200_mb_of_memory() -> None:
    """Of its own: pages of the mapped file, which the kernel drops when it needs them, are not counted."""
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_DATA, (200 << 20,) * 2); "
        "from schema_patch.elf import reader as elf; from schema_patch.elf.evidence import registrations; "
        "registrations.WORK = 1 << 62; print(len(elf.read(sys.argv[1]).schemas))"
    )
    done = subprocess.run([sys.executable, "-c", program, LIBRARY], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 3000
    assert LIBRARY.stat().st_size > 100 << 20
