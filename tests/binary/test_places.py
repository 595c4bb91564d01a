"""Texts of installed libraries, wherever compilers put them: rewritten where every byte is known, else refused by name."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import stable
from stable import SCHEMAS, quoted

from schema_patch.commands import main
from schema_patch.elf import reader
from schema_patch.schemas import rules, table
from schema_patch.schemas.grammar import parse

FP16 = SCHEMAS["fp16"]
# How a text comes to torch: words of C++ that give it, and what must stand before them.
WAYS = {
    "literal": (json.dumps(FP16), ""),
    "table": ("rows[1]", f'static const char* const rows[] = {{"x", {json.dumps(SCHEMAS["norm"])}}};'),
    "rows": ("pairs[1].text", f'struct Pair {{ int n; const char* text; }}; static constexpr Pair pairs[] = {{{{1, "y"}}, {{2, {json.dumps(SCHEMAS["add"])}}}}};'),
    "string": ('std::string("esimd_gemv_fp8_pert(Tensor input, Tensor weight, Tensor weight_scale, Tensor output) -> Tensor").c_str()', ""),
    "added": ('(std::string("esimd_gemm_fp8_pert(Tensor input, Tensor weight, ") + "Tensor weight_scale, Tensor output) -> Tensor").c_str()', ""),
    "array": ("local().text", 'struct Local { char text[96] = "esimd_moe_gather(Tensor moe_output, Tensor topk_ids, Tensor scattered_weights, Tensor final_hidden, int K, int topk, int T) -> Tensor"; };'.replace("96", "160") + "static Local local() { return Local(); }"),
}  # fmt: skip
BUILDS = [
    *itertools.product(("g++", "clang++"), ("-O0", "-O2", "-O3", "-Os"), ("bfd",)),
    ("g++", "-O2", "mold"),
    ("clang++", "-O1", "lld"),
]


@pytest.fixture(scope="module")
def patients(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("ways")
    text = stable.source([words for words, _ in WAYS.values()], "\n".join(more for _, more in WAYS.values()))
    return [
        stable.build(folder / f"lib{compiler}{level}{linker}.so", text, compiler, level, f"-fuse-ld={linker}")
        for compiler, level, linker in BUILDS
    ]


def judged(registered: list[str]) -> dict[str, rules.Judgement]:
    """Each operator that torch registers, judged by the table."""
    schemas = [parse(text) for text in registered]
    return {schema.op: rules.judge(schema, table.load().effect(schema)) for schema in schemas}


def test_every_way_of_compilers_is_rewritten_and_torch_says_so(
    patients: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    originals = {path: path.read_bytes() for path in patients}
    assert main.main(["apply", *map(str, patients)]) in (0, 2)
    told = capsys.readouterr()
    for path, found in zip(patients, stable.registered(patients), strict=True):
        new, old = path.read_bytes(), originals[path]
        verdicts = {op: judgement.verdict.name for op, judgement in judged(found).items()}
        refused = {op for op in verdicts if f"{path}: error: {op}: left as it is" in told.err}
        wrong = {op for op, verdict in verdicts.items() if verdict == "WRONG"}
        assert len(verdicts) == len(WAYS)
        assert refused <= wrong, path.name
        assert refused == wrong or f"{path}: error: could not verify all operators" in told.err, path.name
        assert not wrong or "-O0" in path.name or "-Os" in path.name  # what is not optimised is not all read
        assert len(new) == len(old)
        changed = [at for at, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
        assert 10 < len(changed) < 600  # one operator at least
    assert main.main(["revert", *map(str, patients)]) == 0
    assert {path: path.read_bytes() for path in patients} == originals


def test_texts_that_the_compiler_keeps_in_code_are_among_them(patients: list[Path]) -> None:
    from schema_patch.elf import placed
    from schema_patch.elf.layout import prove_whole

    in_code = 0
    for path in patients:
        data = path.read_bytes()
        code = prove_whole(data, str(path)).code
        for row in placed.read(str(path))[1]:
            in_code += any(part.start <= at < part.end for at in row.offsets for part in code)
    assert in_code > 3


REFUSED = {
    "the code of another function": (
        quoted("fp16"), f"SHOWN const char* docs() {{ return {json.dumps(FP16)}; }}", "its text is also used by the code at",
    ),
    "a table that nothing here reads": (
        quoted("fp16"), f"extern const char* const docs[]; const char* const docs[] = {{{json.dumps(FP16)}}};", "also used by a table of addresses at",
    ),
    "the tail of it": (
        quoted("fp16"), 'SHOWN const char* tail() { return "weight, Tensor output) -> Tensor"; }', "its text from 'weight, Tensor outpu' on is also used by the code at",
    ),
    "an exported name": (["text"], f"extern const char text[]; const char text[] = {json.dumps(FP16)};", "also used by the exported name text"),
    "what prints it": ([f"(puts({json.dumps(FP16)}), {json.dumps(FP16)})"], "", "also used by puts"),
    "what compares it": (
        ["pick()"], f'#include <cstdlib>\nstatic const char* pick() {{ const char* s = {json.dumps(FP16)}; if (!strcmp(s, getenv("HOME"))) puts("x"); return s; }}',
        "also used by strcmp",
    ),
    "no byte to spare": (quoted("narrow"), "", "1 more byte needed than its text has"),
    "letters that are reckoned": (
        ["plain()"],
        "static char made[200];\nstatic const char* plain() { static const char code[] = "
        + json.dumps("".join(chr(ord(c) ^ 1) for c in FP16)) + "; char* o = made; for (const char* c = code; *c; ++c) *o++ = *c ^ 1; *o = 0; return made; }",
        "where",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_others_use_is_refused_by_name(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    definitions, more, words = REFUSED[kind]
    library = stable.build(tmp_path / "lib.so", stable.source([*definitions, *quoted("norm")], more), "g++", "-Os")
    before = library.read_bytes()
    assert main.main(["apply", str(library)]) == 2
    told = capsys.readouterr()
    if kind == "letters that are reckoned" and "not known" in told.err:
        return  # not even what it says is known
    op = parse(json.loads(quoted("narrow" if definitions == quoted("narrow") else "fp16")[0])).op
    assert f"{library}: error: {op}: left as it is" in told.err
    assert words in told.err
    texts = {found.schema.op: found.text for found in reader.read(library).schemas}
    assert texts[op] in SCHEMAS.values()  # never in part
    assert "!" in texts["esimd_rms_norm"]  # the next one is done all the same
    assert library.read_bytes() != before


# Ways in which other code comes to a text though all that names it was followed: what stands before, the word of C++ that
# is registered, and how the refusal names who it is.
SHARED = {
    "the callers of a function": (
        "__attribute__((noinline)) static const char* text1() { return TEXT; } SHOWN const char* docs1() { return text1(); }",
        "text1()", "also used by the code at",
    ),
    "the callers of its callers": (
        '__attribute__((noinline)) static const char* text2() { return TEXT; } __attribute__((noinline)) static const char* more2() { asm volatile(""); return text2(); } '
        "SHOWN const char* docs2() { return more2(); }",
        "more2()", "also used by the code at",
    ),
    "who calls an exported function": (
        "SHOWN const char* text3() { return TEXT; }", "text3()", ("also used by the exported name text3", "also used by the code at"),
    ),
    "a table with a function that gives it": (
        "__attribute__((noinline)) static const char* text4() { return TEXT; } typedef const char* (*F4)(); extern const F4 table4[]; const F4 table4[] = {text4};",
        "text4()", ("also used by a table of addresses", "also used by the code at"),
    ),
    "letters in the instructions of a function": (
        "struct Local { char text[200]; }; __attribute__((noinline)) static Local text5() { Local l = {TEXT}; return l; } static char keep5[200]; "
        "SHOWN const char* docs5() { Local l = text5(); memcpy(keep5, l.text, 200); return keep5; }",
        "text5().text", "also used by the code at",
    ),
    "a pointer that is kept": (
        "static const char* kept6; static const char* keep6(const char* s) { kept6 = s; return s; } SHOWN const char* docs6() { return kept6; }",
        "keep6(TEXT)", "also used by what reads",
    ),
    "a row that is kept somewhere": (
        "static const char* rows7[8]; static int many7; static const char* keep7(const char* s) { rows7[many7++] = s; return s; } SHOWN const char* docs7(int n) { return rows7[n]; }",
        "keep7(TEXT)", "also used by what reads",
    ),
    "a table that both read": (
        "static constexpr const char* const rows8[] = {\"x\", TEXT}; SHOWN const char* docs8(int n) { return rows8[n]; }", "rows8[1]", "also used by",
    ),
}  # fmt: skip
NAMED = [name for name, entry in table.load().entries.items() if entry.returns != "nothing" and len(entry.writes) == 1]


@pytest.mark.parametrize(("compiler", "level"), [("g++", "-O0"), ("g++", "-O2"), ("clang++", "-O2")])
def test_what_others_come_to_another_way_is_refused_too(
    compiler: str, level: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts, befores, words = {}, [], []
    for name, (before, word, _) in zip(NAMED, SHARED.values(), strict=False):
        texts[name] = f"{name}({', '.join(f'Tensor {one}' for one in table.load().entries[name].arguments)}) -> Tensor"
        befores.append(before.replace("TEXT", json.dumps(texts[name])))
        words.append(word.replace("TEXT", json.dumps(texts[name])))
    library = stable.build(
        tmp_path / "lib.so", stable.source([*words, *quoted("add")], "\n".join(befores)), compiler, level
    )
    assert main.main(["apply", str(library)]) == 2
    told = capsys.readouterr().err
    for name, (kind, (_, _, who)) in zip(texts, SHARED.items(), strict=True):
        line = next((line for line in told.splitlines() if f": error: {name}: left as it is" in line), "")
        assert any(one in line for one in ((who,) if isinstance(who, str) else who)), (kind, line)
    found = {found.schema.op: found.text for found in reader.read(library).schemas}
    assert {name: found[name] for name in texts} == texts
    assert "!" in found["esimd_norm_add_norm"]


def test_a_shared_tail_that_need_not_change_is_kept(tmp_path: Path) -> None:
    text = "esimd_gemv_fp16_gelu_mul(Tensor input, Tensor weight, Tensor output) -> ()"
    more = 'SHOWN const char* tail() { return "Tensor output) -> ()"; } SHOWN const char* end() { return " -> ()"; }'
    library = stable.build(
        tmp_path / "lib.so",
        stable.source([json.dumps(SCHEMAS["add"])], more.replace("Tensor output) -> ()", "float eps2) -> ()")),
    )
    assert main.main(["apply", str(library)]) == 0
    assert text not in str(library)
    assert b"float eps2) -> ()\0" in library.read_bytes()
    assert "(b!)" in reader.read(library).schemas[0].text


def test_one_text_for_two_registrations_changes_for_both_or_for_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fragment = (
        'struct More { More() { Handle l; aoti_torch_library_init_fragment("%s", "x.cpp", 2, &l); aoti_torch_library_def(l, '
        + quoted("fp16")[0]
        + "); } } more_;"
    )
    library = stable.build(tmp_path / "other.so", stable.source(quoted("fp16"), "") + fragment % "space_of_others")
    assert main.main(["apply", str(library)]) == 2
    assert "another registration is given bytes of the same text" in capsys.readouterr().err
    assert {found.text for found in reader.read(library).schemas} == {FP16}


def test_strip_and_apply_give_the_same_bytes(tmp_path: Path) -> None:
    texts = [
        "esimd_gemv_fp16(Tensor input, Tensor weight, Tensor(a!) output) -> Tensor(a!)",
        "esimd_norm_add_norm(Tensor h2_raw, Tensor(a!) h1, Tensor w1, Tensor w2, Tensor(b!) out, float eps1, float eps2) -> ()",
    ]
    library = stable.build(tmp_path / "lib.so", stable.source(list(map(json.dumps, texts))))
    before = library.read_bytes()
    assert main.main(["strip", str(library)]) == 0
    assert not any(found.schema.writes for found in reader.read(library).schemas)
    assert main.main(["apply", str(library)]) == 0
    assert library.read_bytes() == before
    assert main.main(["apply", str(library)]) == 0  # twice changes nothing
    assert library.read_bytes() == before


def test_signed_files_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library = stable.build(tmp_path / "lib.so", stable.source(quoted("fp16")))
    subprocess.run(["objcopy", "--add-section", f".signature={__file__}", library], check=True)
    appended = tmp_path / "appended.so"
    appended.write_bytes(library.read_bytes() + b"~Module signature appended~\n")
    shutil.copy(appended, tmp_path / "kept")
    assert main.main(["apply", str(library), str(appended)]) == 2
    assert capsys.readouterr().err.count("the library is signed") == 2
    assert appended.read_bytes() == (tmp_path / "kept").read_bytes()
    assert os.listdir(tmp_path).count(".schema-patch.journal.json") == 0


@pytest.mark.parametrize("work", [0, 500, 20000])
def test_more_code_than_is_followed_is_never_called_right(
    work: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from schema_patch.elf.evidence import registrations

    right = "esimd_gemv_fp16(Tensor input, Tensor weight, Tensor(a!) output) -> Tensor(a!)"
    helper = "__attribute__((noinline)) static void add(Handle l, const char* s) { aoti_torch_library_def(l, s); }\n"
    many = "".join(
        f'struct I{n} {{ I{n}() {{ Handle l; aoti_torch_library_init_fragment({json.dumps(stable.SPACE)}, "x", 1, &l); add(l, {json.dumps(right if n == 1 else SCHEMAS["norm"])}); }} }} i{n};\n'
        for n in (1, 2)
    )
    library = stable.build(tmp_path / "lib.so", stable.source([], helper) + many)
    monkeypatch.setattr(registrations, "WORK", work)
    assert main.main_verify([str(library)]) == 2 if work < 20000 else 1
    assert ("the library has more code than is followed" in capsys.readouterr().err) == (work < 20000)
