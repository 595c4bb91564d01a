"""What the driver meets on other machines: parts that are missing, old, killed or refuse; sources that do not compile."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from schema_patch.build import toolchain
from schema_patch.build.driver import cache, fetch, frontend, images, merging, objects, offline, processes, symbols
from schema_patch.build.driver.arguments import Kernel
from schema_patch.model import ToolError

from .conftest import run
from .pieces import SAYS, image, kernel, payload, program

SILENT = processes.Voice(say=lambda text: None, step=lambda done, total: None)
PLAIN = "int twice(int x) { return 2 * x; }\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.cpp"
    path.write_text(PLAIN)
    return path


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def test_no_clang(source: Path) -> None:
    done = run("-c", source, "-o", source.with_suffix(".o"), SCHEMA_PATCH_CLANG="clang++-no-such")
    refused(done, "expected clang++ from 18 on", "clang++-no-such, which is not there", "apt-get install clang-19")
    assert not source.with_suffix(".o").exists()


def test_a_clang_too_old(source: Path, tmp_path: Path) -> None:
    old = program(tmp_path / "clang++", "echo 'Debian clang version 14.0.6'")
    done = run("-c", source, "-o", source.with_suffix(".o"), SCHEMA_PATCH_CLANG=str(old))
    refused(done, "expected clang++ from 18 on", f"{old} (14.0.6)")


def test_a_clang_that_is_killed(source: Path, tmp_path: Path) -> None:
    script = 'case "$*" in *--version*) echo "clang version 19.1.7";; *) kill -9 $$;; esac'
    killed = program(tmp_path / "clang++", script)
    done = run("-c", source, "-o", source.with_suffix(".o"), SCHEMA_PATCH_CLANG=str(killed))
    refused(done, "was killed, most likely for want of memory")
    assert not source.with_suffix(".o").exists()


def test_another_runtime_on_the_library_path(source: Path, tmp_path: Path) -> None:
    (tmp_path / "oneapi").mkdir()
    (tmp_path / "oneapi/libsycl.so.9").touch()
    done = run("-fsycl", "-c", source, "-o", "a.o", LD_LIBRARY_PATH=str(tmp_path / "oneapi"))
    refused(done, "libsycl.so.9 is on LD_LIBRARY_PATH, and libsycl.so.8 is compiled for", str(tmp_path / "oneapi"))


def test_a_runtime_that_is_not_whole(source: Path, tmp_path: Path) -> None:
    done = run("-fsycl", "-c", source, "-o", "a.o", SCHEMA_PATCH_SYCL=str(tmp_path))
    refused(done, "expected lib/libsycl-jit.so and one libsycl.so.N")


def test_a_source_that_does_not_compile_is_told_once(tmp_path: Path) -> None:
    source = tmp_path / "source.sycl"
    source.write_text("int main() {\n  return undeclared;\n}\n")
    done = run("-fsycl", "-c", "-x", "c++", source, "-o", tmp_path / "source.o")
    refused(done, f"{source}:2:10: error: use of undeclared identifier 'undeclared'")
    assert done.stderr.count("error:") == 1
    assert not (tmp_path / "source.o").exists()


def test_an_instruction_that_the_front_end_does_not_write(tmp_path: Path) -> None:
    source = tmp_path / "source.cpp"
    source.write_text(
        "#include <sycl/sycl.hpp>\n"
        "#ifdef __SYCL_DEVICE_ONLY__\n"
        "SYCL_EXTERNAL int __spirv_BitwiseFunctionINTEL(int, int, int, int);\n"
        "#else\nint __spirv_BitwiseFunctionINTEL(int, int, int, int) { return 0; }\n#endif\n"
        "void run(sycl::queue& queue, int* x) {\n"
        "  queue.single_task([=] { x[0] = __spirv_BitwiseFunctionINTEL(x[0], x[1], x[2], 42); });\n}\n"
    )
    done = run("-fsycl", "-c", source, "-o", tmp_path / "source.o")
    refused(done, f"{source}: device code needs the SPIR-V extension SPV_INTEL_ternary_bitwise_function")


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    refused(run("-fsycl", "-c", "gone.cpp", "-o", "a.o", cwd=tmp_path), "gone.cpp: cannot read: No such file")


def test_one_kernel_of_a_header_in_two_files_is_there_once() -> None:
    both = [payload(name, (kernel("fill"), b"code"), (kernel(name), name.encode())) for name in ("a.cpp", "b.cpp")]
    assert [one.entries for one in merging.images(both, "libsycl.so.8")] == [("fill",), ("a.cpp",), ("b.cpp",)]


@pytest.mark.parametrize(
    ("other", "code", "words"),
    [
        (kernel("same", line=9), b"code", "kernel same (a.cpp:9:1) is also in a.cpp (a.cpp:1:1), and differs"),
        (kernel("same", size=16), b"code", "and differs"),
        (kernel("same"), b"other", "was compiled to other code in a.cpp"),
    ],
)
def test_two_kernels_of_one_name(other: Kernel, code: bytes, words: str) -> None:
    both = [payload("a.cpp", (kernel("same"), b"code")), payload("b.cpp", (other, code))]
    with pytest.raises(ToolError) as caught:
        merging.images(both, "libsycl.so.8")
    assert words in str(caught.value)
    assert str(caught.value).startswith("b.cpp: ")


def test_objects_for_two_runtimes() -> None:
    with pytest.raises(ToolError, match=r"compiled for libsycl\.so\.9, and this link is for libsycl\.so\.8"):
        merging.images([payload("a.cpp", runtime="libsycl.so.9")], "libsycl.so.8")


def test_functions_that_nobody_has() -> None:
    symbols.check(["_Z15__spirv_ocl_sinf", "llvm.usub.sat.i32", "__devicelib_assert_fail"], ["k"], "a.cpp")
    for name, why in {
        "_Z37__sycl_getScalar2020SpecConstantValueIiET_PKcPKvS4_": "specialization constants are not lowered",
        "__imf_sincosf": "in no device library",
        "_Z6helperi": "not linked across files",
    }.items():
        with pytest.raises(ToolError, match=why):
            symbols.check([name], ["k"], "a.cpp")


@pytest.fixture
def spirv_of_no_kernel() -> frontend.DeviceImage:
    return image("_ZTS6kernel", b"\x03\x02\x23\x07" + b"\0" * 16)


def ocloc(monkeypatch: pytest.MonkeyPatch, folder: Path, ids: str = "exit 0", compile: str = "exit 0") -> None:
    path = program(folder / "ocloc", SAYS.format(ids=ids, compile=compile))
    monkeypatch.setenv(offline.VARIABLE, str(path))
    monkeypatch.setenv(cache.VARIABLE, str(folder / "cache"))
    offline.find.cache_clear()


@pytest.fixture(autouse=True)
def _no_compiler_is_remembered():
    yield
    offline.find.cache_clear()
    processes._ending.clear()  # a driver ends after a failure; these tests go on


def test_no_ocloc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    offline.find.cache_clear()
    with pytest.raises(ToolError, match="there is none on the path: `make ocloc` fetches it"):
        offline.find()


def test_an_ocloc_that_does_not_know_the_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = "echo '  <device_type> can be: tgllp, dg2-g10, pvc, ip version  or'"
    ocloc(monkeypatch, tmp_path, ids="echo 'Unknown acronym'; exit 226", compile=known)
    with pytest.raises(
        ToolError, match=r"device 'bmg' is not known to ocloc 23\.43\.0, which knows tgllp, dg2-g10, pvc"
    ):
        offline.check_devices(["bmg"])
    assert "device 'bmg' is not known" in toolchain._driver((), ["bmg"]).missing["offline"]  # what doctor shows
    assert "offline" not in toolchain._driver((), []).missing


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'error: undefined reference to foo'; exit 245", "exit code 245"),
        ("echo 'error: undefined reference to foo'; exit 245", "undefined reference to foo"),
        ("kill -9 $$", "was killed, most likely for want of memory"),
        ("exit 0", "left no machine code"),
    ],
)
def test_an_ocloc_that_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spirv_of_no_kernel: frontend.DeviceImage, script: str, words: str
) -> None:
    ocloc(monkeypatch, tmp_path, compile=script)
    with pytest.raises(ToolError, match=words) as caught:
        offline.compile_all([spirv_of_no_kernel], ["bmg"], [], 2, SILENT)
    assert "_ZTS6kernel" in str(caught.value)


def test_an_ocloc_that_breaks_off_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spirv_of_no_kernel: frontend.DeviceImage
) -> None:
    once = f"test -e {tmp_path}/tried || {{ touch {tmp_path}/tried; echo std::future_error; kill -ABRT $$; }}"
    ocloc(monkeypatch, tmp_path, compile=f"{once}; echo code > machine; exit 0")
    said: list[str] = []
    voice = processes.Voice(said.append, SILENT.step)
    (machine,) = offline.compile_all([spirv_of_no_kernel], ["bmg"], [], 2, voice)
    assert machine.code == b"code\n"
    assert said == [
        "icpx: note: ocloc ended with signal 6 for bmg, kernel _ZTS6kernel, and is run once more\nstd::future_error"
    ]


@pytest.mark.parametrize(
    ("script", "runs"), [("kill -SEGV $$", 2), ("exit 139", 2), ("kill -9 $$", 1), ("exit 245", 1)]
)
def test_which_ends_of_ocloc_are_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spirv_of_no_kernel: frontend.DeviceImage, script: str, runs: int
) -> None:
    ocloc(monkeypatch, tmp_path, compile=f"echo >> {tmp_path}/runs; {script}")
    with pytest.raises(ToolError, match="_ZTS6kernel"):
        offline.compile_all([spirv_of_no_kernel], ["bmg"], [], 2, SILENT)
    assert (tmp_path / "runs").read_text() == "\n" * runs


@pytest.mark.parametrize("kilobytes", [70_000, 110_000])
def test_an_ocloc_without_memory(
    monkeypatch: pytest.MonkeyPatch, kernels: Path, tmp_path: Path, kilobytes: int
) -> None:
    """The real one: with so little it says a code, with more what C++ throws, or an error of its own."""
    real = offline.find().path
    (payload,) = objects.payloads(str(kernels / "kernels.o"))
    ocloc(monkeypatch, tmp_path, compile=f'shift; ulimit -v {kilobytes}; exec {real} compile "$@"')
    with pytest.raises(ToolError, match=r"may be for want of memory \(MAX_JOBS .*\), for bmg, kernel _ZTS"):
        offline.compile_all(payload.images[:1], ["bmg"], [], 1, SILENT)


def test_options_follow_the_image() -> None:
    plain, vector = (
        frontend.DeviceImage(b"", (), [("SYCL/misc properties", facts)]) for facts in ([], [("isEsimdImage", 1)])
    )
    large = frontend.DeviceImage(b"", (), [("SYCL/misc properties", [("isEsimdImage", 1), ("sycl-grf-size", 256)])])
    assert offline.words_for(plain, ["-doubleGRF"]) == ("-ze-opt-large-register-file",)
    assert offline.words_for(vector, []) == ("-vc-codegen",)
    assert offline.words_for(vector, ["-doubleGRF"]) == offline.words_for(large, []) == ("-vc-codegen", "-doubleGRF")


def test_spills_are_read_from_the_notes(tmp_path: Path) -> None:
    notes = "kernels:\n"
    for name, usage, size in (
        ("one", "spill_fill_space", 3456),
        ("two", "private_space", 10240),
        ("three", "single_space", 64),
    ):
        notes += f"""\
  - name: '{name}'
    execution_env: {{simd_size: 16, grf_count: 128}}
    payload_arguments:
      - {{arg_type: packed_local_ids, size: 6}}
    per_thread_memory_buffers:
      - {{type: scratch, usage: {usage}, size: {size}}}
"""
    (tmp_path / "notes").write_text(notes)
    (tmp_path / "a.s").write_text('.section .ze_info\n.incbin "notes"\n')
    subprocess.run(["c++", "-c", "a.s", "-o", "a.o"], cwd=tmp_path, check=True)
    assert offline.Machine((tmp_path / "a.o").read_bytes()).spills == {"one": 3456, "three": 64}


def test_the_mirror_is_the_machines_own(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d/debian.sources").write_text(
        "Types: deb\n# URIs: http://old.example/debian\nURIs: http://security.example/debian-security\n"
        "Suites: bookworm-security\n\nTypes: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\n"
    )
    (tmp_path / "sources.list.d/other.list").write_text("deb [signed-by=/x] https://other.example/repo stable main\n")
    assert fetch.find_mirror(tmp_path) == "http://mirror.example/debian"
    (tmp_path / "sources.list.d/debian.sources").write_text(
        "Types: deb\nURIs: http://a.example/ubuntu\nSuites: noble\n"
    )
    assert fetch.find_mirror(tmp_path) == ""


def test_where_there_is_no_apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    offline.find.cache_clear()
    with pytest.raises(ToolError, match="found no apt-get, dpkg-deb: install the package with ocloc"):
        fetch.fetch()


def test_a_property_keeps_its_type_and_each_string_is_there_once(tmp_path: Path) -> None:
    carried = [
        images.Carried("spir64", b"x" * 600, ("kernel",), [("SYCL/misc properties", [("optLevel", 3)])]),
        images.Carried("spir64_gen", b"y" * 600, ("kernel",), [("SYCL/kernel names", [("kernel", 1)])]),
    ]
    text = images.assembly(carried, "8", None, str(tmp_path))
    assert text.count('.asciz "kernel"') == 1
    assert "SYCL/kernel names" not in text
    assert ".quad 1\n.quad 3" in text


def test_a_kernel_that_the_host_compiler_lays_out_otherwise(tmp_path: Path) -> None:
    """Refused at the launch in the source, by the assertion in SYCL's headers that icpx relies on too."""
    source = tmp_path / "source.cpp"
    source.write_text(
        "#include <sycl/sycl.hpp>\n"
        "#ifdef __SYCL_DEVICE_ONLY__\nstruct Pair { int a; float b; };\n#else\nstruct Pair { int a; double b; };\n#endif\n"
        "void run(sycl::queue& queue, float* x, Pair pair) {\n"
        "  queue.single_task([=] { x[0] = pair.a + pair.b; });\n"
        "}\n"
    )
    done = run("-fsycl", "-c", source, "-o", tmp_path / "source.o")
    refused(done, "Unexpected kernel lambda size", f"{source}:8:")
    assert not (tmp_path / "source.o").exists()


def test_a_function_of_intels_mathematics(tmp_path: Path) -> None:
    """Its header declares it, and no library that comes with the runtime has it."""
    source = tmp_path / "source.cpp"
    source.write_text(
        "#include <sycl/sycl.hpp>\n#include <sycl/ext/intel/math.hpp>\n"
        "void run(sycl::queue& queue, int* x) {\n"
        "  queue.single_task([=] { *x = sycl::ext::intel::math::rhadd(x[0], x[1]); });\n}\n"
    )
    done = run("-fsycl", "-c", source, "-o", tmp_path / "source.o")
    refused(done, "__imf_rhadd is in no device library that comes with the runtime", str(source))


def test_a_specialization_constant(tmp_path: Path) -> None:
    source = tmp_path / "source.cpp"
    source.write_text(
        "#include <sycl/sycl.hpp>\n"
        "constexpr sycl::specialization_id<int> factor(3);\n"
        "void run(sycl::queue& queue, int* x) {\n"
        "  queue.submit([&](sycl::handler& handler) {\n"
        "    handler.single_task([=](sycl::kernel_handler kernel) {\n"
        "      *x = kernel.get_specialization_constant<factor>();\n"
        "    });\n  });\n}\n"
    )
    done = run("-fsycl", "-c", source, "-o", tmp_path / "source.o")
    refused(done, "specialization constants are not lowered by the front end", str(source))
