"""Kinds of wrong answers: each is told the right way, in several forms."""

from __future__ import annotations

from pathlib import Path

import pytest
import trees

from schema_patch.audit import judge
from schema_patch.commands import main
from schema_patch.model import Verdict


class Quiet:
    """Hears of files, and says nothing."""

    def __call__(self, path: str) -> None: ...

    def expect(self, count: int) -> None: ...


def audited(folder: Path) -> judge.Audit:
    return judge.audit([str(folder)], Quiet(), cached=False)


def verdicts(folder: Path, **files: str) -> dict[str, str]:
    """The verdict on each operator of these files, C++ or Python."""
    trees.write(folder, **files)
    return {row.op: row.verdict.value for row in audited(folder).checked}


# An element that is copied out of the data and changed there: `a` is only read.
COPY = "struct Pair { float x, y; };\n%s\nvoid op(at::Tensor a, at::Tensor b) { auto p = a.data_ptr<Pair>(); %s }"
COPIES = {
    "by reference": ("void load(Pair& to, const Pair& from) { to = from; }", "Pair v; load(v, p[1]); v.x += 1;"),
    "by pointer": ("void load(Pair* to, const Pair* from) { *to = *from; }", "Pair v; load(&v, p + 1); v.x = 1;"),
    "by template": ("template <class T> void load(T& to, T from) { to = from; }", "Pair v; load(v, p[1]); v.x++;"),
    "punned": (
        "template <class T, class U, class V> void put(U& u, const V& v) {"
        " reinterpret_cast<T&>(u) = reinterpret_cast<const T&>(v); }",
        "Pair v; put<double>(v, p[1]); v.x = 1;",
    ),
    "in two steps": (
        "void load(Pair& to, const Pair& from) { to = from; }\nvoid get(Pair& to, Pair* p) { load(to, p[3]); }",
        "Pair v; get(v, p); v.x = 1;",
    ),
}


@pytest.mark.parametrize("form", COPIES)
def test_an_element_copied_through_a_reference_is_no_write(tmp_path: Path, form: str) -> None:
    assert trees.answers(tmp_path, COPY % COPIES[form])["a"] == "read only"


def test_a_pointer_copied_through_a_reference_still_leads_there(tmp_path: Path) -> None:
    code = "struct Args { float* p; };\nvoid set(Args& to, float* p) { to.p = p; }\n"
    code += "void op(at::Tensor a, at::Tensor b) { Args s; set(s, a.data_ptr<float>()); s.p[0] = 1; }"
    assert trees.answers(tmp_path, code)["a"] == "written"


def test_a_store_behind_a_field_of_a_tensor_class_of_the_tree_is_unknown(tmp_path: Path) -> None:
    code = (
        "namespace rt { struct Impl { int* sizes; void* data; };\n"
        "class Tensor { public: template <class T> T* mutable_data_ptr() const { return (T*)impl->data; }\n"
        "int size(int i) const { if (i > 9) fail(HERE); return impl->sizes[i]; } private: Impl* impl; };\n"
        "void op(const Tensor& a, Tensor& b) { if (b.size(0)) b.mutable_data_ptr<float>()[0] = 1; } }\nusing rt::op;"
    )
    assert trees.answers(tmp_path, code, "Tensor a, Tensor(a!) b")["b"] == "unknown"


# `o` is taken where it is there, and what is filled where it is not is a new tensor.
CONDITIONS = {
    "at::Tensor t = o.has_value() ? *o : at::empty_like(x); if (!o.has_value()) t.fill_(0);": False,
    "at::Tensor t; if (o) t = o.value(); else t = at::empty_like(x); if (!o) t.zero_();": False,
    "at::Tensor t; if (o != c10::nullopt) { t = *o; } else { t = x.clone(); t.zero_(); }": False,
    "const bool has = o.has_value(); auto t = has ? *o : at::empty_like(x); if (!has) t.zero_();": False,
    "bool f = o.has_value() && n; at::Tensor t; if (f) { t = *o; } else { t = x.clone(); } if (!f) t.zero_();": False,
    "at::Tensor t = o.has_value() ? *o : at::empty_like(x); if (o.has_value()) t.fill_(0);": True,
    "at::Tensor t = o.has_value() ? *o : at::empty_like(x); t.fill_(0);": True,
    "bool f = n; at::Tensor t = x.clone(); if (f) t = *o; f = !f; if (!f) t.zero_();": True,
    "if (!o.has_value() || n) { if (n) o->zero_(); }": True,
}


@pytest.mark.parametrize("code", CONDITIONS)
def test_what_is_reached_only_without_an_optional_is_no_evidence_about_it(tmp_path: Path, code: str) -> None:
    function = f"void op(at::Tensor x, const std::optional<at::Tensor>& o, int64_t n) {{ {code} }}"
    written = trees.answers(tmp_path, function, "Tensor x, Tensor? o, int n")["o"] == "written"
    assert written is CONDITIONS[code]


UNKNOWN_WRITE = """
void vendor(void* p);
at::Tensor op(const at::Tensor& a, std::optional<at::Tensor> b) {
  at::Tensor c;
  if (b.has_value()) c = b.value(); else c = at::empty_like(a);
  vendor(c.data_ptr());
  return c;
}"""


def test_half_a_schema_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = trees.write(tmp_path, op_cpp=trees.source(UNKNOWN_WRITE, "Tensor a, Tensor? b", "Tensor"))
    before = Path(path).read_bytes()
    (finding,) = audited(tmp_path).findings
    assert (finding.code, finding.fixable) == ("SP103", False)
    assert main.main(["apply", "--infer", str(tmp_path)]) == 1
    assert Path(path).read_bytes() == before
    shown = capsys.readouterr().out
    assert "SP103" in shown
    assert "1 right" not in shown


def test_a_return_of_which_nothing_is_known_is_not_right(tmp_path: Path) -> None:
    code = (
        "at::Tensor op(at::Tensor a, at::Tensor b) { at::Tensor c; if (a.defined()) c = a.contiguous();"
        " else c = at::empty_like(b); return c; }"
    )
    made = {"op": Verdict.UNKNOWN.value}
    assert verdicts(tmp_path, op_cpp=trees.source(code, returns="Tensor")) == made


PYTHON = """
import torch
lib = torch.library.Library("lib", "DEF")
lib.define("op(Tensor x, Tensor y) -> %s")
def op(x, y):
    %s
lib.impl("op", op, "CPU")
"""
RETURNS = {
    ("Tensor", "return x"): "wrong",
    ("Tensor", "return x.view(-1)"): "wrong",
    ("Tensor", "z = x[0]\n    return z"): "wrong",
    ("(Tensor, Tensor)", "return x + 1, y"): "wrong",
    ("Tensor", "return x.contiguous()"): "unknown",
    ("Tensor", "return [x, y][0] if y.sum() else x + 1"): "unknown",
    ("Tensor", "return x + y"): "right",
    ("int", "return x.shape[0]"): "right",
    ("()", "return x"): "right",
}


@pytest.mark.parametrize(("returns", "body"), RETURNS)
def test_what_a_python_operator_returns(tmp_path: Path, returns: str, body: str) -> None:
    assert verdicts(tmp_path, ops_py=PYTHON % (returns, body))["op"] == RETURNS[returns, body]


def test_a_custom_op_that_returns_its_argument_is_wrong(tmp_path: Path) -> None:
    code = (
        'import torch\n@torch.library.custom_op("lib::op", mutates_args=())\ndef op(x: torch.Tensor) -> torch.Tensor:\n'
    )
    assert verdicts(tmp_path, ops_py=code + "    return x\n") == {"op": "wrong"}
    assert verdicts(tmp_path, ops_py=code + "    return x.clone()\n") == {"op": "right"}


def test_the_alias_is_written_into_a_python_schema(tmp_path: Path) -> None:
    (path,) = trees.write(tmp_path, ops_py=PYTHON % ("Tensor", "y.add_(x)\n    return y"))
    assert main.main(["apply", "--infer", str(tmp_path)]) == 0
    assert '"op(Tensor x, Tensor(a!) y) -> Tensor(a!)"' in Path(path).read_text()


# A path that a flag shuts off, as the caller gives it: `a` is only read.
FLAGGED = {
    "with more": ("if (inplace && b.numel() > 1) a.copy_(b); ", "help(a, b, false);"),
    "turned": ("if (!(keep || b.numel() > 1)) a.copy_(b); ", "help(a, b, true);"),
    "chosen": ("auto& t = inplace ? a : b; t.zero_(); ", "help(a, b, false);"),
    "handed on": ("if (inplace) a.copy_(b); ", "more(a, b, false);"),
}


@pytest.mark.parametrize("form", FLAGGED)
@pytest.mark.parametrize("turned", [False, True])
def test_a_flag_that_is_given_decides_which_way_is_taken(tmp_path: Path, form: str, turned: bool) -> None:
    body, call = FLAGGED[form]
    name = "keep" if "keep" in body else "inplace"
    call = call.replace("false", "TRUE").replace("true", "false").replace("TRUE", "true") if turned else call
    code = f"void help(at::Tensor& a, at::Tensor& b, bool {name}) {{ {body} b.add_(a); }}\n"
    code += "void more(at::Tensor& a, at::Tensor& b, bool flag) { help(a, b, flag); }\n"
    found = trees.answers(tmp_path, f"{code}void op(at::Tensor& a, at::Tensor& b) {{ {call} }}")
    assert found["a"] == ("written" if turned else "read only")


CHANGED = {
    "assigned": "inplace = b.numel() > 1; if (inplace) a.copy_(b);",
    "through a pointer": "look(&inplace); if (inplace) a.copy_(b);",
    "through a reference of its own": "bool& r = inplace; r = true; if (inplace) a.copy_(b);",
    "by a function": "turn(inplace); if (inplace) a.copy_(b);",
    "by a template": "put(inplace, true); if (inplace) a.copy_(b);",
    "by a macro": "SET; if (inplace) a.copy_(b);",
    "swapped": "bool other = true; std::swap(other, inplace); if (inplace) a.copy_(b);",
    "of a lambda": "auto f = [&](bool inplace) { if (inplace) a.copy_(b); }; f(true);",
    "of a block": "{ bool inplace(true); if (inplace) a.copy_(b); }",
    "before a choice": "if (inplace && b.numel() ? false : true) a.copy_(b);",
}


@pytest.mark.parametrize("form", CHANGED)
def test_a_flag_that_may_be_another_decides_nothing(tmp_path: Path, form: str) -> None:
    code = "#define SET inplace = true\nvoid look(bool* p) { *p = true; }\nvoid turn(bool& p) { p = true; }\n"
    code += "template <class T> void put(T& to, T from) { to = from; }\n"
    code += f"void help(at::Tensor& a, at::Tensor& b, bool inplace) {{ {CHANGED[form]} b.add_(a); }}\n"
    found = trees.answers(tmp_path, f"{code}void op(at::Tensor& a, at::Tensor& b) {{ help(a, b, false); }}")
    assert found["a"] == "written"


@pytest.mark.parametrize(
    "made",
    ["std::vector<at::Tensor> v(2, a);", "std::vector<at::Tensor> v(n, a);", "auto v = std::vector<at::Tensor>(n, a);"],
)
@pytest.mark.parametrize("place", [0, 1])
def test_each_of_so_many_elements_is_the_value(tmp_path: Path, made: str, place: int) -> None:
    found = trees.answers(
        tmp_path, f"void op(at::Tensor& a, at::Tensor& b) {{ int n = 2; {made} v[{place}].copy_(b); }}"
    )
    assert found == {"a": "written", "b": "read only"}


@pytest.mark.parametrize("made", ["(p[3])", "(p[n])", "(n, p[0])", "(p[n], p[0])"])
def test_what_a_vector_is_sized_by_is_not_its_data(tmp_path: Path, made: str) -> None:
    body = f"const float* p = a.data_ptr<float>(); int n = 3; std::vector<float> v{made}; v[1] = 2; b.fill_(v[1]);"
    found = trees.answers(tmp_path, f"void op(at::Tensor& a, at::Tensor& b) {{ {body} }}")
    assert found == {"a": "read only", "b": "written"}
