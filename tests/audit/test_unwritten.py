"""Operators that are registered by a name alone: torch infers their schema, and no inferred schema declares a write."""

import pytest
import torch

from schema_patch.audit import judge
from schema_patch.commands import main
from schema_patch.cpp import registrations
from schema_patch.inference import unwritten
from schema_patch.model import Verdict

SOURCE = """
#include <torch/library.h>
namespace k {
void fill(at::Tensor out, double value) { out.fill_(value); }
static inline at::Tensor add(const at::Tensor& x, const at::Tensor& y) { return x + y; }
torch::Tensor& twice(torch::Tensor& x) { x.mul_(2); return x; }
void odd(other::Kind kind, at::Tensor x) { x.zero_(); }
}
TORCH_LIBRARY(mylib, m) {
  m.def("fill", &k::fill);
  m.def("add", k::add);
  m.def("twice", TORCH_FN(k::twice));
  m.def("odd", &k::odd);
  m.def("elsewhere", &somewhere::else_);
}
static auto registry = torch::RegisterOperators()
    .op("old::fill", &k::fill)
    .op("old::whole(Tensor out, float value) -> ()", &k::fill);
"""


FIXED = {
    'm.def("fill", ': 'm.def("fill(Tensor(a!) out, float value) -> ()", ',
    'm.def("twice", ': 'm.def("twice(Tensor(a!) x) -> Tensor(a!)", ',
    '.op("old::fill", ': '.op("old::fill(Tensor(a!) out, float value) -> ()", ',
    '"old::whole(Tensor out, ': '"old::whole(Tensor(a!) out, ',
}


@pytest.fixture
def result(tmp_path):
    path = tmp_path / "ops.cpp"
    path.write_text(SOURCE)

    class Steps:
        def __call__(self, path: str) -> None: ...
        def expect(self, count: int) -> None: ...

    return judge.audit([str(path)], Steps(), cached=False)


def test_a_write_is_a_finding_with_the_schema_to_write(result):
    told = {(f.op, f.location.line): f for f in result.findings if f.code == "SP004"}
    assert {op for op, _ in told} == {"fill", "twice"}
    assert [f.message.partition("write ")[2] for f in told.values() if f.op == "fill"] == [
        '"fill(Tensor(a!) out, float value) -> ()"'
    ] * 2
    assert '"twice(Tensor(a!) x) -> Tensor(a!)"' in next(f.message for f in told.values() if f.op == "twice")
    assert not any(f.fixable for f in told.values())


def test_what_only_reads_is_right_and_what_cannot_be_told_is_unknown(result):
    verdicts = {row.op: row.verdict for row in result.checked}
    assert verdicts["add"] is Verdict.RIGHT
    assert verdicts["odd"] is verdicts["elsewhere"] is Verdict.UNKNOWN


def test_a_whole_schema_of_the_old_kind_is_judged_like_any_other(result):
    (finding,) = (f for f in result.findings if f.op == "whole" and f.code == "SP101")
    assert finding.fixable


def test_apply_writes_the_schema_behind_the_name(tmp_path):
    path = tmp_path / "ops.cpp"
    path.write_text(SOURCE)
    assert main.main(["apply", "--infer", str(tmp_path)]) == 0
    expected = SOURCE
    for old, new in FIXED.items():
        assert expected.count(old) == 1
        expected = expected.replace(old, new)
    assert path.read_text() == expected
    assert main.main(["apply", "--infer", str(tmp_path)]) == 0
    assert path.read_text() == expected
    assert main.main(["revert", str(tmp_path)]) == 0
    assert path.read_text() == SOURCE


def test_the_schema_is_one_that_torch_parses(result):
    for row in result.rows:
        assert torch._C.parse_schema(row.operator.schema.text).name == row.operator.schema.name


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("const at::Tensor&", "Tensor"),
        ("c10::optional<torch::Tensor>", "Tensor?"),
        ("const std::vector<at::Tensor> &", "Tensor[]"),
        ("std::optional<std::vector<int64_t>>", "int[]?"),
        ("at::IntArrayRef", "int[]"),
        ("std::tuple<at::Tensor, int64_t>", "(Tensor, int)"),
        ("static inline void", "()"),
        ("c10::string_view", "str"),
        ("int", None),  # torch takes no int, so that nothing can be registered with it
        ("void*", None),
        ("T", None),
        ("std::vector<void>", None),
    ],
)
def test_types(written, expected):
    assert unwritten.type_of(written) == expected


def test_a_method_of_another_object_is_no_registration():
    source = registrations.read(b'auto r = torch::RegisterOperators(); auto q = plan.op("x", &f);', "a.cpp")
    assert not source.unwritten
    assert not source.registrations
