"""One idea a case: in.cc, what apply makes of it in both return styles, and what is said. `--update-golden` rewrites."""

from pathlib import Path

import pytest

from schema_patch.report import text
from schema_patch.schemas import table
from schema_patch.schemas.annotate import Returns
from schema_patch.source import patch
from schema_patch.text.files import SourceFile

GOLDEN = Path(__file__).parent.parent / "golden"
CASES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
KNOWN = table.load()


def examine(data: bytes) -> patch.Unit:
    return patch.examine(SourceFile("in.cc", Path("in.cc"), data), KNOWN)


@pytest.mark.parametrize("returns", list(Returns))
@pytest.mark.parametrize("case", CASES)
def test_apply(case: str, returns: Returns, update_golden: bool) -> None:
    folder = GOLDEN / case
    source = (folder / "in.cc").read_bytes()
    unit = examine(source)
    plan = patch.annotate_all([unit], KNOWN, returns)
    new = plan.files[0].new if plan.files else source

    found = text.text(patch.report([unit]))
    errors = [text.error_line(error) for error in (*unit.errors, *plan.errors)]
    after = text.text(patch.report([examine(new)]))
    said = f"before:\n{found}\n\n{returns.value}:\n{after}\n" + "".join(f"{line}\n" for line in errors)
    expected = {folder / f"{returns.value}.cc": new, folder / f"{returns.value}.txt": said.encode()}
    for file, data in expected.items():
        if update_golden:
            file.write_bytes(data)
        assert file.read_bytes() == data
    again = patch.annotate_all([examine(new)], KNOWN, returns)
    assert not again.files
