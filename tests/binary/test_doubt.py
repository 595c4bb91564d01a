"""Texts that are others once the library runs than its file suggests: torch says wrong, so that no reader may say right."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import stable
import torch

from schema_patch.commands import main
from schema_patch.elf.evidence.imports import SCHEMA_TEXT
from schema_patch.schemas import rules, table
from schema_patch.schemas.grammar import parse

WRONG = json.dumps(stable.SCHEMAS["fp16"])
RIGHT = json.dumps("esimd_gemv_fp16(Tensor input, Tensor weight, Tensor(a!) output) -> Tensor(a!)")
NAMES = f'extern "C" {{ extern const char right[]; const char right[] = {RIGHT}; extern const char wrong[]; const char wrong[] = {WRONG};\n'
EARLY = "__attribute__((constructor(101))) static void early() {"
DEFINE = '(int (*)(Handle, const char*))dlsym(RTLD_DEFAULT, "aoti_torch_library_def")'
NORM = json.dumps(
    "esimd_rms_norm(Tensor input, Tensor(a!) output, Tensor weight, float eps) -> Tensor(a!)"
)  # beside it, right
# What stands before, what runs before the registration, and the word of C++ that is registered; or nothing.
WAYS = {
    "a pointer that code changes": (f"{NAMES} const char* pick = right; }}\n{EARLY} pick = wrong; }}", "", "pick"),
    "a row that code changes": (f"{NAMES} const char* rows[2] = {{right, right}}; }}\n{EARLY} rows[1] = wrong; }}", "", "rows[1]"),
    "a function that code changes": (
        f'{NAMES} const char* one() {{ return right; }} const char* two() {{ return wrong; }} const char* (*pick)() = one; }}\n{EARLY} pick = two; }}',
        "", "pick()",
    ),
    "what a caught exception leaves": ("", f"const char* text = {RIGHT}; try {{ std::stoi(\"x\"); }} catch (std::exception&) {{ text = {WRONG}; }}", "text"),
    "what a function gives that catches": (
        f"__attribute__((noinline)) static const char* pick() {{ try {{ std::stoi(\"x\"); return {RIGHT}; }} catch (std::exception&) {{ return {WRONG}; }} }}",
        "", "pick()",
    ),
    "the second round of what catches": (
        "",
        f"const char* text = {RIGHT}; for (int n = 0; n < 2; ++n) try {{ if (n) aoti_torch_library_def(l, text); std::stoi(\"x\"); }} catch (std::exception&) {{ text = {WRONG}; }}",
        "",
    ),
    "constants that code makes writable": (
        f'#include <sys/mman.h>\n{NAMES} }}\n__attribute__((noinline)) static void unlock(char* p) {{ mprotect((void*)((uintptr_t)p & ~4095ul), 8192, 7); strcpy(p, wrong); }}\n'
        f'{EARLY} char* p = (char*)right; asm volatile("" : "+r"(p)); unlock(p); }}',
        "", "right",
    ),
    "a function found by its name": ("#include <dlfcn.h>", f"({DEFINE})(l, {WRONG});", ""),
    "a function kept where code writes": (
        f"#include <dlfcn.h>\nint (*define)(Handle, const char*); {EARLY} define = {DEFINE}; }}", f"define(l, {WRONG});", "",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("doubt")
    built = []
    for (n, way), compiler in itertools.product(enumerate(WAYS.values()), ("g++", "clang++")):
        before, first, text = way
        code = stable.source([NORM, *([text] if text else [])], f"#include <stdexcept>\n{before}\n")
        code = code.replace(f"  aoti_torch_library_def(l, {NORM});", f"{first}\n  aoti_torch_library_def(l, {NORM});")
        built.append(stable.build(folder / f"lib{n}{compiler}.so", code, compiler, "-O2"))
    return built


def test_what_may_be_otherwise_when_it_runs_is_never_called_right(
    libraries: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    effects = table.load()
    for path, registered in zip(libraries, stable.registered(libraries), strict=True):
        schemas = [parse(text) for text in registered]
        verdicts = {schema.op: rules.judge(schema, effects.effect(schema)).verdict.name for schema in schemas}
        assert verdicts["esimd_gemv_fp16"] == "WRONG", path.name  # or this test shows nothing
        assert main.main_verify([str(path)]) in (1, 2), path.name
        told = capsys.readouterr()
        assert "esimd_gemv_fp16" in told.out or "could not verify all operators" in told.err, path.name


@pytest.mark.parametrize("versioned", [False, True])
def test_a_text_that_another_library_is_given(
    versioned: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    helper = 'SHOWN void others_define(const char* s) { Handle l; aoti_torch_library_init_fragment("%s", "y", 1, &l); aoti_torch_library_def(l, s); }'
    (tmp_path / "map").write_text("OTHER_1.0 { global: others_define; };")
    named = [f"-Wl,--version-script={tmp_path}/map"] if versioned else []
    other = stable.build(tmp_path / "libother.so", stable.HEAD + helper % stable.SPACE, "g++", "-O2", *named)
    more = 'extern "C" void others_define(const char*);\n'
    for name, told, code in (("given", WRONG, 2), ("shown", NORM, 0)):
        library = stable.build(
            tmp_path / f"{name}.so",
            stable.source([NORM, f"(others_define({told}), {NORM})"] if name == "given" else [f"(others_define({told}), {told})"], more),
            "g++", "-O2", "-Wl,--no-as-needed", str(other), f"-Wl,-rpath,{tmp_path}",
        )  # fmt: skip
        assert b"OTHER_1.0" in library.read_bytes() or not versioned
        assert main.main_verify([str(library)]) == code, name
    assert "esimd_gemv_fp16" in capsys.readouterr().err


def test_a_realigned_frame_with_a_catch_is_followed_to_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (
        '#include <stdexcept>\n__attribute__((noinline)) static void fill(char* p) { asm volatile("" :: "r"(p) : "memory"); }\n'
        'struct Late { ~Late(); }; __attribute__((noinline)) Late::~Late() { puts("late"); }\n'
    )
    code = (
        stable.source([RIGHT], before)
        + "static Late late;  // torch's registration is left by a jump to __cxa_atexit\n"
    )
    catching = 'alignas(64) char room[64]; fill(room); try { std::stoi(room); } catch (std::exception&) { puts("x"); }'
    code = code.replace("Init() { Handle l;", f"__attribute__((always_inline)) Init() {{ Handle l; {catching}")
    library = stable.build(tmp_path / "lib.so", code, "g++", "-O2", "-mavx2", "-mforce-drap")
    assert main.main_verify(["--require", "esimd_gemv_fp16", str(library)]) == 0, capsys.readouterr().err


def test_constants_that_are_made_writable_by_what_the_dynamic_section_names(tmp_path: Path) -> None:
    before = f'#include <sys/mman.h>\n{NAMES} }}\nSHOWN void early() {{ char* p = (char*)right; asm volatile("" : "+r"(p)); mprotect((void*)((uintptr_t)p & ~4095ul), 8192, 7); strcpy(p, wrong); }}\n'
    for options, code in (([], 0), (["-Wl,-init,early"], 2)):
        library = stable.build(tmp_path / "init.so", stable.source([NORM, "right"], before), "g++", "-O2", *options)
        ((first, _),) = stable.registered([library])
        assert ("(a!) output" in first) == (not options)  # or this test shows nothing
        assert main.main_verify([str(library)]) == code


def test_every_schema_of_torch_that_has_arguments_is_seen_to_be_one() -> None:
    texts = [str(schema) for schema in torch._C._jit_get_all_schemas() if schema.arguments]
    assert len(texts) > 1000
    assert [text for text in texts if not SCHEMA_TEXT.match(text)] == []
