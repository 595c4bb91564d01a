"""Texts that are others once the library runs than its file suggests: torch says wrong, so that no reader may say right."""

from __future__ import annotations

import itertools
from pathlib import Path

import against
import pairs
import pytest
import stable
import torch
import ways
from ways import NAMES, NORM, RIGHT, WRONG

from schema_patch.commands import main
from schema_patch.elf import dynamic, reader
from schema_patch.elf.evidence.image import RELR
from schema_patch.elf.evidence.imports import SCHEMA_TEXT
from schema_patch.elf.layout import prove_whole


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("doubt")
    built = []
    for (n, way), compiler in zip(enumerate(ways.WAYS.values()), itertools.cycle(("g++", "clang++")), strict=False):
        built.append(stable.build(folder / f"lib{n}.so", ways.code(way), compiler, "-O2", "-w"))
    return built


def test_what_may_be_otherwise_when_it_runs_is_never_called_right(
    libraries: list[Path],
) -> None:
    for name, path, texts in zip(ways.WAYS, libraries, stable.registered(libraries), strict=True):
        (fp16,) = [text for text in texts if "esimd_gemv_fp16" in text]
        assert "(a!) output" not in fp16, name  # or this test shows nothing
        assert against.judged(path, texts) in ("found", "told"), name


def test_what_another_library_of_the_tree_makes_of_it_is_never_called_right(tmp_path: Path) -> None:
    names = (
        "registered by what is needed",
        "a function of the first stands in for a weak one",
        "the first stands in for torch",
    )
    right = pairs.first("", RIGHT), pairs.second(NORM.replace("rms_norm(", "rms_norm.other("))
    there = [
        against.built(tmp_path / str(n), pair, "g++ -O2")
        for n, pair in enumerate([*map(pairs.PAIRS.get, names), right])
    ]
    texts = stable.registered([paths[0] for paths in there])
    for name, paths, registered in zip(names, there, texts, strict=False):
        for asked in (paths[0].parent, paths[0]):
            assert against.judged(asked, registered) in ("found", "told"), name
    assert against.judged(there[-1][0].parent, texts[-1]) == "right"


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
            "g++", "-O2", "-Wl,--no-as-needed", str(other),
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


def test_packed_relocations_to_nowhere_are_damage_not_a_crash(tmp_path: Path) -> None:
    library = stable.build(
        tmp_path / "lib.so", stable.source([RIGHT, NORM]), "g++", "-O2", "-Wl,-z,pack-relative-relocs"
    )
    data = bytearray(library.read_bytes())
    layout = prove_whole(bytes(data), "x")
    table = layout.offset(dynamic.read(bytes(data), layout, "x").tags[RELR], 8)
    at = layout.offset(int.from_bytes(data[table : table + 8], "little"), 8)
    data[at : at + 8] = (1 << 63).to_bytes(8, "little")
    library.write_bytes(data)
    assert len(reader.read(library).schemas) == 2
