"""Kernel objects of one size whose fields are others for the host compiler than for the front end."""

from __future__ import annotations

from pathlib import Path

import pytest

from schema_patch.build.driver import compiling, frontend, hostside, layouts, options, runtime
from schema_patch.model import ToolError

from .conftest import SOURCES, run

SOURCE = SOURCES / "layouts.cpp"
NAMED = {"Fill<float>": "DIFFERS", "Right<float>": "SAME"}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[layouts.Layouts, layouts.Layouts]:
    """What each side has, as the driver asks them."""
    work = tmp_path_factory.mktemp("layouts")
    plan, found = options.parse(["-fsycl", "-c", str(SOURCE)]), runtime.find()
    device = frontend.compile_device(str(SOURCE), compiling.device_words(plan), found)
    headers = (device.header, device.footer)
    hostside.compile_host(plan, str(SOURCE), str(work / "a.o"), str(work / "a.d"), found, headers, b"")
    return device.layouts, layouts.read((work / hostside.LAYOUTS).read_text(), device.layouts)


def meant() -> dict[str, str]:
    lines = enumerate(SOURCE.read_text().splitlines(), 1)
    of = {f"{SOURCE.name}:{number}": line.partition("// ")[2].split()[0] for number, line in lines if "  // " in line}
    return {**of, **NAMED}


def test_what_differs_is_refused_and_nothing_else(both: tuple[layouts.Layouts, layouts.Layouts]) -> None:
    device, host = both
    found = {}
    for name, fields in device.items():
        assert name in host, name
        try:
            layouts.agree({name: fields}, host, "layouts.cpp")
            found[name.rpartition(":")[0] or name] = "SAME"
        except ToolError:
            found[name.rpartition(":")[0] or name] = "DIFFERS"
    assert found == meant()
    assert len(found) >= 13


def test_one_place_of_a_template_is_as_many_classes(both: tuple[layouts.Layouts, layouts.Layouts]) -> None:
    assert sorted(len(fields) for fields in both[0].values()) == [*[1] * (len(both[0]) - 1), 2]


def test_the_first_difference_is_told_at_the_kernel(tmp_path: Path) -> None:
    done = run("-fsycl", "-c", SOURCE, "-o", tmp_path / "layouts.o")
    assert done.returncode == 1
    assert f"{SOURCE}: kernel object layouts.cpp:" in done.stderr
    assert "the front end has int32 and the host compiler float32" in done.stderr
    assert not (tmp_path / "layouts.o").exists()
