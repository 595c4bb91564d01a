"""setup.py chooses a build from facts, without a compiler."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def setup_py():
    spec = importlib.util.spec_from_file_location("setup_py", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def host(setup_py):
    return setup_py.Environment(
        torch="2.13.0+cpu", cxx="/usr/bin/c++", sycl_rt="2025.3.3", sycl_include="/env/include", sycl_library="/env/lib"
    )


@pytest.fixture
def xpu(host):
    return host._replace(torch="2.13.0+xpu", torch_has_xpu=True, icpx="2025.3.1")


def test_everything_present_is_xpu(setup_py, xpu):
    plan = setup_py.build_plan(xpu)
    assert plan.mode == "xpu"
    assert ("ESIMD_OPS_XPU", None) in plan.macros
    assert "csrc/norm/norm.sycl" in plan.sources
    assert "csrc/kernel_sources.cpp" not in plan.sources


def test_no_xpu_is_host(setup_py, host):
    plan = setup_py.build_plan(host)
    assert (plan.mode, plan.reason) == ("host", "not xpu: this torch has no XPU support")
    assert not [source for source in plan.sources if source.endswith(".sycl")]
    assert "/env/lib" in plan.library_dirs


def test_another_icpx_is_host(setup_py, xpu):
    plan = setup_py.build_plan(xpu._replace(icpx="2024.2.0"))
    assert (plan.mode, plan.reason) == ("host", "not xpu: icpx 2025.3.x is needed, found 2024.2.0")


@pytest.mark.parametrize(
    ("missing", "why"),
    [
        ({"torch": None}, "torch is not installed"),
        ({"cxx": None}, "no C++ compiler was found"),
        ({"sycl_rt": None}, "intel-sycl-rt 2025.3.x is needed, found none"),
        ({"sycl_rt": "2026.0.0"}, "intel-sycl-rt 2025.3.x is needed, found 2026.0.0"),
    ],
)
def test_a_missing_part_is_pure_python(setup_py, host, missing, why):
    plan = setup_py.build_plan(host._replace(**missing))
    assert plan.mode == "none"
    assert f"not host: {why}" in plan.reason
    assert setup_py.extension_arguments(plan) == {}


def test_a_forced_mode(setup_py, xpu):
    for mode in ("none", "host", "xpu"):
        assert setup_py.build_plan(xpu._replace(forced=mode)).mode == mode


@pytest.mark.parametrize(
    ("forced", "message"),
    [
        ("xpu", "ESIMD_OPS_BUILD=xpu, but this torch has no XPU support"),
        ("cuda", "ESIMD_OPS_BUILD: expected one of xpu, host, none, found 'cuda'"),
    ],
)
def test_a_forced_mode_is_never_replaced(setup_py, host, forced, message):
    with pytest.raises(ValueError, match=message):
        setup_py.build_plan(host._replace(forced=forced))


def test_the_run_path_is_relative(setup_py, host):
    plan = setup_py.build_plan(host)
    assert any("-rpath,$ORIGIN/../torch/lib:$ORIGIN/../../.." in argument for argument in plan.link_args)


def test_every_device_source_is_embedded_and_listed_for_the_ahead_of_time_build():
    embedded = (ROOT / "csrc/kernel_sources.cpp").read_text()
    for path in [*ROOT.glob("csrc/*/*.sycl"), *ROOT.glob("csrc/device/*.h")]:
        name = path.relative_to(ROOT / "csrc").as_posix()
        assert embedded.count(f'"{name}"') == 1, name
    families = {path.parent.name for path in ROOT.glob("csrc/*/*.sycl")}
    listed = "".join(path.read_text() for path in ROOT.glob("csrc/*/*.sycl"))
    for path in ROOT.glob("csrc/*/*.cpp"):
        for part in path.read_text().split('"')[1::2]:
            if part.split("/")[0] in families and not part.endswith(".h"):
                assert f'AHEAD_OF_TIME("{part}", ' in listed, part
