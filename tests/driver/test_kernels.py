"""Every kind of kernel, compiled, linked and run; what the object and the library say of it, held against other readers."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from schema_patch.build.driver import arguments, frontend, objects, spirv
from schema_patch.elf import devices, dynamic, layout
from schema_patch.model import ToolError

from .conftest import SOURCES, TARGETS, run, run_on_cpu


def payload(folder: Path) -> objects.Payload:
    (found,) = objects.payloads(str(folder / "kernels.o"))
    return found


def test_what_runs_is_what_cpp_computes(kernels: Path) -> None:
    done = run_on_cpu(kernels / "kernels")
    assert (done.returncode, done.stdout.strip()) == (0, "0 wrong"), done.stdout + done.stderr


def test_the_library_has_each_kernel_for_the_card_and_for_others(kernels: Path) -> None:
    data = (kernels / "kernels").read_bytes()
    found = layout.prove_whole(data, "kernels")
    code = devices.read(data, found, dynamic.read(data, found, "kernels"), "kernels")
    names = {kernel.name for kernel in payload(kernels).kernels}
    assert not code.unread
    assert {target: set(kernels) for target, kernels in _by_target(code).items()} == {"20.1.0": names, "SPIR-V": names}
    assert len(names) == 10


def _by_target(code: devices.DeviceCode) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in code.codes:
        found.setdefault(one.target, set()).update(one.kernels)
    return found


def test_the_device_side_is_not_linked_twice(kernels: Path) -> None:
    """The section of the compile step is gone from what a linker makes."""
    names = {name for name, _ in objects.sections((kernels / "kernels").read_bytes(), "kernels")}
    assert objects.SECTION_NAME not in names
    assert "__CLANG_OFFLOAD_BUNDLE__sycl-spir64_gen" in names


def members(object_file: Path) -> dict[tuple[int, int], list[list[tuple[int, int]]]]:
    """Of each class, by the line and column of its declaration, the offset and size of each member: from the debug
    information of the host compiler, by a reader that is not ours."""
    found: dict[tuple[int, int], list[list[tuple[int, int]]]] = {}
    with object_file.open("rb") as file:
        info = ELFFile(file).get_dwarf_info()
        for unit in info.iter_CUs():
            for entry in unit.iter_DIEs():
                if entry.tag not in ("DW_TAG_structure_type", "DW_TAG_class_type"):
                    continue
                line = entry.attributes.get("DW_AT_decl_line")
                size = entry.attributes.get("DW_AT_byte_size")
                if line and size:
                    found.setdefault((line.value, size.value), []).append(list(placed(entry, 0)))
    return found


def placed(entry, at: int) -> Iterator[tuple[int, int]]:
    """Those of a class and of what it inherits, each base class as a whole too."""
    for child in entry.iter_children():
        if child.tag in ("DW_TAG_member", "DW_TAG_inheritance") and "DW_AT_data_member_location" in child.attributes:
            offset = at + child.attributes["DW_AT_data_member_location"].value
            yield offset, size_of(child)
            if child.tag == "DW_TAG_inheritance":
                yield from placed(child.get_DIE_from_attribute("DW_AT_type"), offset)


def size_of(entry) -> int:
    kind = entry.get_DIE_from_attribute("DW_AT_type")
    while "DW_AT_byte_size" not in kind.attributes:
        if kind.tag == "DW_TAG_pointer_type":
            return 8
        if "DW_AT_declaration" in kind.attributes:
            return 0
        kind = kind.get_DIE_from_attribute("DW_AT_type")
    return kind.attributes["DW_AT_byte_size"].value


def test_the_arguments_are_where_the_host_compiler_has_them(kernels: Path) -> None:
    """Offset and size of each value and address in the kernel's object, as DWARF has them."""
    layouts = members(kernels / "kernels.o")
    checked = 0
    for kernel in payload(kernels).kernels:
        rows = [(a.offset, a.size) for a in kernel.arguments if a.kind in (arguments.VALUE, arguments.POINTER)]
        if kernel.file != "kernels.cpp" or not rows:
            continue
        candidates = layouts.get((kernel.line, kernel.size), [])
        assert any(set(rows) <= set(found) for found in candidates), (kernel, candidates)
        checked += 1
    assert checked >= 5


def disagreement(kernel: arguments.Kernel, compiled: spirv.EntryPoint, image: frontend.DeviceImage) -> str | None:
    try:
        arguments._agree(kernel, compiled, arguments._masks(image).get(kernel.name), "kernels.cpp")
    except ToolError as error:
        return str(error)
    return None


def tampered(module: bytes) -> bytes:
    """The module with its floats of 32 bits made doubles."""
    words = list(struct.unpack(f"<{len(module) // 4}I", module))
    at = 5
    while at < len(words):
        if words[at] & 0xFFFF == spirv.TYPE_FLOAT and words[at + 2] == 32:
            words[at + 2] = 64
        at += words[at] >> 16
    return struct.pack(f"<{len(words)}I", *words)


def test_a_table_that_does_not_agree_with_the_code_is_refused(kernels: Path) -> None:
    found = payload(kernels)
    header = frontend.Device(found.images, "", "", "", ())
    with pytest.raises(ToolError, match="is in the device code and not in its header"):
        arguments.kernels(header, "kernels.cpp")
    wrong = 0
    for image in found.images:
        (kernel,) = (k for k in found.kernels if k.name in image.entries)
        other = frontend.DeviceImage(tampered(image.spirv), image.entries, image.properties)
        if other.spirv == image.spirv:
            continue
        for compiled in spirv.read(other.spirv, "kernels.cpp").kernels:
            if (why := disagreement(kernel, compiled, image)) is None:
                continue
            assert "in its table" in why
            assert f"kernels.cpp:{kernel.line}" in why or "a function" in why or "handler.hpp" in why
            wrong += 1
    assert wrong


def test_headers_of_the_command_line_come_after_the_table_of_kernels(tmp_path: Path) -> None:
    """One that includes SYCL's own, as vllm-xpu-kernels has it: the kernel would be launched by no name."""
    (tmp_path / "first.h").write_text("#include <sycl/sycl.hpp>\n")
    (tmp_path / "a.cpp").write_text(
        "#include <sycl/sycl.hpp>\nint main() {\n  sycl::queue q;\n  int* x = sycl::malloc_shared<int>(1, q);\n"
        "  q.submit([&](sycl::handler& h) { h.single_task<class kernel>([=] { *x = 5; }); }).wait();\n  return *x;\n}\n"
    )
    done = run("-fsycl", "-include", "first.h", "a.cpp", "-o", "a", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert run_on_cpu(tmp_path / "a").returncode == 5


def test_dependencies_name_every_file_once(kernels: Path) -> None:
    text = (kernels / "kernels.d").read_text()
    assert text.startswith("kernels.o: ")
    files = text.replace("\\\n", " ").split()[1:]
    assert str(SOURCES / "kernels.cpp") in files
    assert any(path.endswith("/sycl/sycl.hpp") for path in files)
    assert not [path for path in files if "/schema-patch-" in path]
    assert len(files) == len(set(files))


def test_two_builds_are_the_same_bytes(kernels: Path, tmp_path: Path) -> None:
    """With a cache of its own, so that nothing of the first is used."""
    words = ("-fsycl", "-g", "-fsycl-device-code-split=per_kernel", "-o", "kernels.o", SOURCES / "kernels.cpp")
    where = {"SCHEMA_PATCH_CACHE": str(tmp_path / "cache")}
    ocloc = Path.home() / ".cache/schema-patch/driver/ocloc"
    if ocloc.is_dir():
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache/ocloc").symlink_to(ocloc)
    (tmp_path / "folder").mkdir()
    for step in (("-c", *words), ("-fsycl", *TARGETS, "-fsycl-link", "kernels.o", "-o", "device.o")):
        done = run(*step, cwd=tmp_path / "folder", **where)
        assert done.returncode == 0, done.stderr
    done = run("-fsycl", *TARGETS, "-fsycl-link", "kernels.o", "-o", "device.o", cwd=kernels)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "folder/device.o").read_bytes() == (kernels / "device.o").read_bytes()
    first, second = (_without_folder((at / "kernels.o").read_bytes()) for at in (kernels, tmp_path / "folder"))
    assert first == second


def _without_folder(data: bytes) -> dict[str, bytes]:
    """Debug information names the folder that was compiled in, as every compiler's does."""
    return {name: part for name, part in objects.sections(data, "kernels.o") if "debug" not in name}


BUILTINS = """#include <sycl/sycl.hpp>
using short8 = short __attribute__((ext_vector_type(8)));
using int8 = int __attribute__((ext_vector_type(8)));
using int2 = int __attribute__((ext_vector_type(2)));
using float8 = float __attribute__((ext_vector_type(8)));
#ifdef __SYCL_DEVICE_ONLY__
#define BUILTIN SYCL_EXTERNAL __attribute__((convergent))
BUILTIN void __spirv_ControlBarrierArriveINTEL(int, int, int);
BUILTIN void __spirv_ControlBarrierWaitINTEL(int, int, int);
BUILTIN void __spirv_Subgroup2DBlockLoadINTEL(int, int, int, int, const void*, int, int, int, int2, void*);
BUILTIN void __spirv_Subgroup2DBlockLoadTransformINTEL(int, int, int, int, const void*, int, int, int, int2, void*);
BUILTIN void __spirv_Subgroup2DBlockStoreINTEL(int, int, int, int, void*, const void*, int, int, int, int2);
BUILTIN float8 __spirv_SubgroupMatrixMultiplyAccumulateINTEL(int, short8, int8, float8, int);
#endif
struct Product {
  const sycl::half *x, *weight;
  float* output;
  int wide, kind;
  [[sycl::reqd_sub_group_size(16)]] void operator()(sycl::nd_item<1> item) const {
#ifdef __SYCL_DEVICE_ONLY__
    short8 a;
    int8 b;
    __spirv_Subgroup2DBlockLoadINTEL(2, 16, 8, 1, x, 32, 8, 32, int2{0, 0}, &a);
    __spirv_Subgroup2DBlockLoadTransformINTEL(2, 16, 16, 1, weight, wide, 16, wide, int2{0, 0}, &b);
    float8 c = __spirv_SubgroupMatrixMultiplyAccumulateINTEL(16, a, b, float8{}, KIND);
    __spirv_ControlBarrierArriveINTEL(2, 2, 0x104);
    __spirv_ControlBarrierWaitINTEL(2, 2, 0x102);
    __spirv_Subgroup2DBlockStoreINTEL(4, 16, 8, 1, &c, output, 64, 8, 64, int2{0, 0});
#endif
  }
};
void launched(sycl::queue& queue, Product product) { queue.parallel_for(sycl::nd_range<1>(16, 16), product); }
"""
FLOATS = 0x400 | 0x800  # of both matrices, as the extension numbers them


def test_builtins_that_the_translator_does_not_write_are_instructions(tmp_path: Path) -> None:
    """The graphics compiler takes them. Intel's CPU runtime has none of them, so no more can be asked here."""
    (tmp_path / "a.cpp").write_text(BUILTINS)
    done = run("-fsycl", "-c", "-fPIC", f"-DKIND={FLOATS}", "a.cpp", "-o", "a.o", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    ((image,),) = (one.images for one in objects.payloads(str(tmp_path / "a.o")))
    rows = list(spirv.instructions(image.spirv, "a.cpp"))
    constants = {words[1]: words[2] for code, words in rows if code == spirv.CONSTANT}
    barriers = [(code, [constants[word] for word in words]) for code, words in rows if code in (6142, 6143)]
    assert barriers == [(6142, [2, 2, 0x104]), (6143, [2, 2, 0x102])]
    ((_, _, depth, *_, kind),) = (words for code, words in rows if code == 6237)
    assert (constants[depth], kind) == (16, FLOATS)
    blocks = {code: [constants.get(word) for word in words[:4]] for code, words in rows if 6231 <= code <= 6235}
    assert blocks == {6231: [2, 16, 8, 1], 6232: [2, 16, 16, 1], 6235: [4, 16, 8, 1]}
    assert {words[0] for code, words in rows if code == spirv.CAPABILITY} >= {6141, 6228, 6229, 6236}
    assert not any("schema_patch" in name for name in spirv.read(image.spirv, "a.cpp").imports)
    done = run("-fsycl", *TARGETS, "-shared", "a.o", "-o", "a.so", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(rb"barrier_count: +1\b", (tmp_path / "a.so").read_bytes())  # as the graphics compiler tells it


def test_what_must_be_in_the_instruction_itself_must_be_a_constant(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text(BUILTINS)
    done = run("-fsycl", "-c", "-DKIND=kind", "a.cpp", "-o", "a.o", cwd=tmp_path)
    assert done.returncode == 1
    assert "expected a constant as the last argument of __spirv_SubgroupMatrixMultiplyAccumulateINTEL" in done.stderr
    assert not (tmp_path / "a.o").exists()
