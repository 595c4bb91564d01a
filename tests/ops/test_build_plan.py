"""setup.py chooses a build from facts, without a compiler."""

import importlib.util
import re
from pathlib import Path

import pytest

from schema_patch.build import doctor
from schema_patch.installed import policy

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
    assert ("ESIMD_OPS_AHEAD_OF_TIME", None) in plan.macros
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


def test_what_a_build_depends_on(setup_py, host, xpu):
    base = setup_py.DEPENDENCIES
    assert setup_py.build_plan(host._replace(torch=None)).dependencies == base
    assert not [name for name in base if name.startswith(("torch", "intel"))]
    native = setup_py.build_plan(host).dependencies
    assert native[len(base) :] == ("torch==2.13.0", "intel-sycl-rt==2025.3.*", "intel-opencl-rt==2025.3.*")
    assert setup_py.build_plan(xpu).dependencies[len(base) :] == ("torch==2.13.0+xpu",)


def test_no_path_of_the_machine_is_compiled_in(setup_py, host, xpu):
    for env in (host, xpu):
        plan = setup_py.build_plan(env._replace(site_packages="/env/site-packages"))
        maps = [f"-ffile-prefix-map={setup_py.ROOT}=.", "-ffile-prefix-map=/env/site-packages=site-packages"]
        for words in filter(None, (plan.cxx_args, plan.sycl_args)):
            assert [word for word in words if "prefix-map" in word] == maps  # of several that fit, the last counts


def test_the_interpreters_own_run_path_is_left_out(setup_py):
    configured = "g++ -shared -Wl,-rpath,/opt/conda/lib -L/opt/conda/lib"
    words = [*configured.split(), "-Wl,-rpath,/asked/for"]
    assert setup_py.own_search_path(words, configured) == [
        "g++",
        "-shared",
        "-L/opt/conda/lib",
        "-Wl,-rpath,/asked/for",
    ]


@pytest.mark.parametrize(
    ("needed", "found"),
    [
        (("libc10.so", "libsycl.so.8"), None),
        (("libc10.so",), "none"),
        (("libsycl.so.9",), "libsycl.so.9"),
        (("libsycl.so.8", "libsycl.so.9"), "libsycl.so.8, libsycl.so.9"),
        (("libsycl.so.8", "libsycl-preview.so.8"), "libsycl.so.8, libsycl-preview.so.8"),
    ],
)
def test_one_runtime_and_no_other(setup_py, needed, found):
    why = setup_py.wrong_runtime(needed)
    assert why == (found and f"expected to need libsycl.so.8 and no other SYCL runtime, found {found}")


def test_the_two_sides_of_a_family_are_two_objects(setup_py):
    sources = setup_py.build_plan(
        setup_py.Environment("2.13.0+xpu", torch_has_xpu=True, cxx="c++", icpx="2025.3.2")
    ).sources
    objects = setup_py.apart(sources, [str(Path(source).with_suffix(".o")) for source in sources])
    assert "csrc/gdn/gdn.o" in objects
    assert "csrc/gdn/gdn.sycl.o" in objects
    assert len(set(objects)) == len(sources)


def test_setup_py_and_the_policies_are_of_one_mind(setup_py):
    assert doctor.toolchain().compiler == setup_py.TOOLCHAIN
    assert f"libsycl.so.{policy.load().sycl.major}" == setup_py.RUNTIME
    assert f'"TORCH_XPU_ARCH_LIST", "{doctor.toolchain().arch}"' in (ROOT / "setup.py").read_text()


def test_every_device_source_is_embedded_and_listed_for_the_ahead_of_time_build():
    embedded = (ROOT / "csrc/kernel_sources.cpp").read_text()
    for path in [*ROOT.glob("csrc/*/*.sycl"), *ROOT.glob("csrc/device/*.h")]:
        name = path.relative_to(ROOT / "csrc").as_posix()
        assert embedded.count(f'"{name}"') == 1, name
    families = {path.parent.name for path in ROOT.glob("csrc/*/*.sycl")}
    listed = "".join(path.read_text() for path in ROOT.glob("csrc/*/*.sycl"))
    names = {
        part
        for path in ROOT.glob("csrc/*/*.cpp")
        for part in path.read_text().split('"')[1::2]
        if part.split("/")[0] in families and part.count("<") == part.count(">") > 0
    }
    for name in names | gemm_names():
        assert f'AHEAD_OF_TIME("{name}", ' in listed, name


def gemm_names():
    """gemm.cpp puts names together from a kind of weights; one token of fp16 is left to the GEMV."""
    gemm = (ROOT / "csrc/gemm/gemm.cpp").read_text() + (ROOT / "csrc/gemv/gemv.cpp").read_text()
    calls = re.findall(r"gemm::run\(\{([^{}]*)\}", gemm)
    assert len(calls) == gemm.count("gemm::run(") == 4
    names = set()
    for call in calls:
        order, *rows, scale = re.findall(r'"([^"]+)"', call)
        names |= {f"gemm/{layout}_of_tokens<{order}>" for layout in ("lines", "columns")}
        for row in rows:
            names |= {f"gemm/many_tokens<{row}, {scale}, {each}>" for each in (2, 4)} | {
                f"gemm/few_tokens<{row}, {scale}>"
            }
            if row != "HalfRow":
                names.add(f"gemm/one_token<{row}, {scale}>")
    return names
