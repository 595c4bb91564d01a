"""Sources and trees that a tester broke the tool with: nothing known goes unseen, nothing that cannot compile is written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from schema_patch.commands import main
from schema_patch.cpp import registrations
from schema_patch.text import journal

GOLDEN = Path(__file__).parent.parent / "golden"
WRONG = (GOLDEN / "one_literal" / "in.cc").read_bytes()
RIGHT = (GOLDEN / "one_literal" / "alias.cc").read_bytes()
RMS = '"esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor"'
GOOD = 'm.def("esimd_gemv_fp16(Tensor input, Tensor weight, Tensor(a!) output) -> Tensor(a!)");'


@pytest.mark.parametrize(
    "code",
    [
        f"static auto r = torch::RegisterOperators().op({RMS}, &f);",
        f"constexpr const char* kSchema = {RMS};\nTORCH_LIBRARY_FRAGMENT(esimd_ops, m) {{ m.def(kSchema); }}",
        f"#define DEF(s) m.def(s)\nTORCH_LIBRARY_FRAGMENT(esimd_ops, m) {{ DEF({RMS}); }}",
        f"auto g = [](torch::Library& m) {{ m.def({RMS}); }};",
        f"static torch::Library lib(torch::Library::FRAGMENT, x); int i = (lib.def({RMS}), 0);",
        f"void init(torch::Library* m) {{ m->def({RMS}); }}",
        f"TORCH_LIBRARY_FRAGMENT(esimd_ops, m) {{ for (const char* s : {{{RMS}}}) m.def(s); }}",
        f"TORCH_LIBRARY_FRAGMENT(esimd_ops, m) {{ auto& lib = m; lib.def({RMS}); }}",
        f"TORCH_LIBRARY_FRAGMENT(esimd_ops, m) {{ (m).def({RMS}); }}",
        f"#define REG(ns, m) TORCH_LIBRARY_FRAGMENT(ns, m)\nREG(esimd_ops, m) {{ m.def({RMS}); }}",
        f"template <class L> void reg(L& m) {{ m.def({RMS}); }}",
        f'IPEX_OP_REGISTER_OVERLOAD({RMS}, "esimd_rms_norm", Sig, f)',
        'TORCH_LIBRARY_FRAGMENT(esimd_ops, m) { m.def("esimd_rms_norm", &f); }',
        '#define REG(n, a) m.def(#n a)\nTORCH_LIBRARY_FRAGMENT(esimd_ops, m) { REG(esimd_rms_norm, "(Tensor x) -> ()"); }',
        "TORCH_LIBRARY_FRAGMENT(esimd_ops, m) { OTHERS(esimd_rms_norm); }",
        '#define REG(n) TORCH_LIBRARY_FRAGMENT(esimd_ops, m) { m.def(#n "(Tensor x) -> ()"); }\nREG(esimd_rms_norm)',
        f"TORCH_LIBRARY_FRAGMENT(esimd_ops, m) {{ m.def({RMS.replace('norm(', 'norm.v2(')}); }}",
        '#define BODY m.def("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps)" \\\n " -> Tensor");',
    ],
)
def test_a_known_operator_is_never_unseen(code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "good.cc").write_text(f"TORCH_LIBRARY(esimd_ops, m) {{ {GOOD} }}\n")
    (tmp_path / "odd.cc").write_text(code + "\n")
    assert main.main(["check", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "odd.cc:" in out
    assert "esimd_rms_norm" in out
    (tmp_path / "odd.cc").write_text(f"/* {code.replace('*/', '')} */\n")
    assert main.main(["check", str(tmp_path)]) == 0  # in a comment it registers nothing


@pytest.mark.parametrize("block", ["esimd_ops, m /* library */", "/* ns */ esimd_ops, m", "// x\n esimd_ops, m"])
def test_comments_in_the_head_of_a_block(block: str, tmp_path: Path) -> None:
    (tmp_path / "a.cc").write_text(f"TORCH_LIBRARY({block}) {{ m.def({RMS}); }}\n")
    assert main.main(["apply", str(tmp_path)]) == 0
    assert "Tensor(a!) output" in (tmp_path / "a.cc").read_text()


def test_a_namespace_that_the_file_defines_is_a_macro(tmp_path: Path) -> None:
    (tmp_path / "a.cc").write_text(f"#define my_ns esimd_ops\nTORCH_LIBRARY_EXPAND(my_ns, m) {{ m.def({RMS}); }}\n")
    assert main.main(["check", str(tmp_path)]) == 1


@pytest.mark.parametrize(
    "bound",
    [
        'auto* fn = &f; m.impl("esimd_rms_norm", fn);',
        'auto fn = [](at::Tensor o) { return o; }; m.impl("esimd_rms_norm", fn);',
        'm.impl("esimd_rms_norm", [n = 0](at::Tensor o) mutable { return o; });',
        'Functor functor; m.impl("esimd_rms_norm", functor);',
        'm.impl("esimd_rms_norm", &f); m.impl("esimd_rms_norm", c10::DispatchKey::Meta, +[](at::Tensor o) { return o; });',
        'm.impl("esimd_rms_norm", &f); m.impl(kName, at::kCPU, &f);',
        'm.impl("esimd_rms_norm", decltype(&f)(&f));',
    ],
)
def test_void_is_refused_where_it_would_not_compile(
    bound: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.cc"
    file.write_text(f"TORCH_LIBRARY(esimd_ops, m) {{ m.def({RMS}); {bound} }}\n")
    before = file.read_bytes()
    assert main.main(["apply", "--returns", "void", str(file)]) == 2
    assert "cannot drop the return of" in capsys.readouterr().err
    assert file.read_bytes() == before


@pytest.mark.parametrize("start", ["\ufeff#ifndef A\n#include <x>\n#endif\n", "", "#include <x>\n"])
def test_the_wrapper_stands_before_its_use(start: str, tmp_path: Path) -> None:
    file = tmp_path / "a.cc"
    block = f'TORCH_LIBRARY(esimd_ops, m) {{ m.def({RMS}); m.impl("esimd_rms_norm", &f); }}\n#include "tail.inc"\n'
    file.write_text(start + block, "utf-8")
    assert main.main(["apply", "--returns", "void", str(file)]) == 0
    text = file.read_text("utf-8")
    assert text.index("struct DropReturn") < text.index("TORCH_LIBRARY(")
    assert text.startswith(start[:1] if start.startswith("\ufeff") else start)


def test_nested_journals_become_one(tmp_path: Path) -> None:
    file = tmp_path / "n" / "sub" / "a.cc"
    file.parent.mkdir(parents=True)
    file.write_bytes(WRONG)
    for steps in (
        [["apply", "n"], ["strip", "n/sub"], ["revert", "n"]],
        [["apply", "n/sub/a.cc"], ["strip", "n"], ["revert", "n"]],
        [["apply", "n"], ["strip", "n/sub"], ["revert", "n/sub"]],
    ):
        for command, path in steps:
            assert main.main([command, str(tmp_path / path)]) == 0
        assert file.read_bytes() == WRONG
        assert not list(tmp_path.rglob(journal.NAME))


def test_revert_of_one_file_leaves_the_others(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.cc").write_bytes(WRONG)
    assert main.main(["apply", str(tmp_path)]) == 0
    assert main.main(["revert", str(tmp_path / "a.cc")]) == 0
    assert ((tmp_path / "a.cc").read_bytes(), (tmp_path / "b.cc").read_bytes()) == (WRONG, RIGHT)
    assert main.main(["revert", str(tmp_path)]) == 0
    assert (tmp_path / "b.cc").read_bytes() == WRONG


def test_several_processes_in_one_directory(tmp_path: Path) -> None:
    for i in range(8):
        (tmp_path / f"{i}.cc").write_bytes(WRONG)
    running = [subprocess.Popen([sys.executable, "-m", "schema_patch", "apply", tmp_path / f"{i}.cc"], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL) for i in range(8)]  # fmt: skip
    assert [process.wait(60) for process in running] == [0] * 8
    assert main.main(["revert", str(tmp_path)]) == 0
    assert {(tmp_path / f"{i}.cc").read_bytes() for i in range(8)} == {WRONG}


def test_odd_files_are_named_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.cc")
    (tmp_path / "dir.cc").mkdir()
    assert main.main(["check", str(tmp_path)]) == 2
    assert "pipe.cc: error: expected a regular file" in capsys.readouterr().err
    (tmp_path / "pipe.cc").unlink()
    name = os.fsdecode(b"x\xff.cc")
    (tmp_path / name).write_bytes(WRONG)
    assert main.main(["apply", "--format", "json", str(tmp_path)]) == 2
    assert "x\\xff.cc: error: expected a file name in UTF-8" in capsys.readouterr().err
    (tmp_path / name).unlink()
    (tmp_path / "elsewhere").symlink_to("/usr/include")
    assert main.main(["check", str(tmp_path)]) == 2
    assert "leads to a directory out of the tree" in capsys.readouterr().err


def test_deep_nesting_is_an_error_not_a_crash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = f"x(int[] a={'[' * 2000}1{']' * 2000}) -> ()"
    (tmp_path / "a.cc").write_text(f'TORCH_LIBRARY(esimd_ops, m) {{ m.def("{deep}"); {GOOD} }}\n')
    assert main.main(["check", str(tmp_path)]) == 1
    assert "nested at most 50 deep" in capsys.readouterr().out


def test_an_annotation_with_an_after_set(tmp_path: Path) -> None:
    (tmp_path / "a.cc").write_text(
        f"TORCH_LIBRARY(esimd_ops, m) {{ m.def({RMS.replace('Tensor output', 'Tensor(a -> b) output')}); }}\n"
    )
    main.main(["apply", str(tmp_path)])
    assert "Tensor(a! -> b) output" in (tmp_path / "a.cc").read_text()


def test_a_form_feed_does_not_break_the_diff(tmp_path: Path) -> None:
    file = tmp_path / "a.cc"
    file.write_bytes(b"// page\x0c break \xe9\n" + WRONG)
    diff = subprocess.run(
        [sys.executable, "-m", "schema_patch", "apply", "--diff", "a.cc"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    ).stdout
    subprocess.run(["patch", "-p1", "-s"], input=diff, cwd=tmp_path, check=True)
    assert file.read_bytes() == b"// page\x0c break \xe9\n" + RIGHT


@pytest.mark.parametrize("name", ["small", "STRING(LARGE) small"])
def test_a_macro_behind_a_literal_is_told_wherever_the_parser_puts_it(name: str) -> None:
    """Which of them the parser takes for one expression depends on what follows; torch reads neither part alone."""
    code = f'TORCH_LIBRARY(x, m) {{\n  m.def(\n      "op(Tensor a, int n=" STRING({name}) ", Tensor? b=None) -> Tensor");\n}}\n'
    source = registrations.read(code.encode(), "x.cpp")
    assert not source.registrations
    assert [problem.location.line for problem in source.problems] == [3]


@pytest.mark.parametrize("behind", [",", "", " /* , */ ,", " // )\n,"])
def test_a_comment_behind_the_schema_is_no_macro(behind: str) -> None:
    function = " &f" if behind else ""
    source = registrations.read(
        f'TORCH_LIBRARY(x, m) {{ m.def("op(Tensor a) -> Tensor"{behind}{function}); }}'.encode(), "x.cpp"
    )
    assert len(source.registrations) == 1
    assert not source.problems


def test_a_template_of_another_language_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "made.cpp").write_bytes(RIGHT)
    (tmp_path / "jinja.cpp").write_text(
        'TORCH_LIBRARY(x, m) {\n{% if a %}\n  m.def("{{ name }}(Tensor a) -> Tensor");\n{'
    )
    assert main.main(["check", str(tmp_path)]) == 0
    assert "jinja.cpp:1:1: warning: SP002 not read: the file is a template" in capsys.readouterr().out


def test_an_operator_is_not_taken_for_one_whose_name_it_begins_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = RMS.replace("esimd_rms_norm", "esimd_rms_norm_gated")
    (tmp_path / "a.cc").write_text(f"TORCH_LIBRARY_FRAGMENT(esimd_ops, m) {{ {GOOD} m.def({text}s); }}\n")
    main.main(["check", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "SP002" in shown
    assert "esimd_rms_norm:" not in shown


def test_operators_that_no_table_knows_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [f"an_operator_of_a_long_name_{number}" for number in range(9)]
    body = " ".join(f'm.def("{name}(Tensor x) -> ()");' for name in names)
    (tmp_path / "a.cc").write_text(f"TORCH_LIBRARY_FRAGMENT(esimd_ops, m) {{ {GOOD} {body} }}\n")
    assert main.main(["check", "."]) == 0
    shown = capsys.readouterr().err
    assert "schema-patch audit ." in " ".join(shown.split())
    assert all(name in shown for name in names)
    assert max(map(len, shown.splitlines()[1:])) <= 80
