"""Elements of lists, tuples and arrays, ranges of iterators, copies: `b` is written, `a` beside it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
import trees

POINTERS = "auto p = a.data_ptr<float>(); auto q = b.data_ptr<float>(); "
WRITES_B_ALONE = {
    "tuple": "auto [x, y] = std::make_tuple(a, b); y.zero_();",
    "get": "auto t = std::make_tuple(a, b); std::get<1>(t).zero_();",
    "pair": "auto t = std::make_pair(a, b); t.second.zero_();",
    "array": "at::Tensor t[2] = {a, b}; t[1].zero_();",
    "vector": "std::vector<at::Tensor> t = {a, b}; t[1].zero_();",
    "pointers": POINTERS + "float* t[2] = {p, q}; t[1][0] = t[0][0];",
    "views in a list": "auto c = a.unbind(0); c[0] = b.clone(); b.zero_();",
    "range": POINTERS + "std::vector<float> v(p, p + 3); v[0] = 1; q[0] = v[0];",
    "policy": POINTERS + "std::copy(std::execution::par, p, p + 3, q);",
    "stream": POINTERS + "thrust::copy(thrust::cuda::par.on(stream), p, p + 3, q);",
    "transform": POINTERS + "thrust::transform(thrust::device, p, p + 3, q, f);",
    "two ranges": POINTERS + "std::transform(p, p + 3, p, q, std::plus<>());",
    "larger": "auto c = at::max(a, b); c.zero_(); b.copy_(c);",
    "vector load": POINTERS + "float4 v = *reinterpret_cast<float4*>(p); v.x = 1; q[0] = v.x;",
    "local bits": POINTERS + "float v = p[0]; reinterpret_cast<uint32_t&>(v) = 3; q[0] = v;",
    "one of many": "for (auto& t : b.chunk(2)) t.copy_(a);",
    "first part": "auto parts = b.split(2); parts.front().copy_(a);",
}


@pytest.mark.parametrize("case", WRITES_B_ALONE)
def test_what_stands_beside_it_is_not_written(tmp_path: Path, case: str) -> None:
    found = trees.answers(tmp_path, f"void op(at::Tensor a, at::Tensor b) {{ {WRITES_B_ALONE[case]} }}")
    assert found["b"] == "written"
    assert found["a"] != "written"


CHANGED = {
    "assigned": "std::vector<at::Tensor> t = {b, b}; t[1] = a; t[1].zero_();",
    "grown": "std::vector<at::Tensor> t; t.push_back(a); t[0].zero_();",
    "by a variable": "std::vector<at::Tensor> t = {a, b}; for (int i = 0; i < 2; ++i) t[i].zero_();",
}


@pytest.mark.parametrize("case", CHANGED)
def test_a_list_that_was_changed_may_hold_any_of_them(tmp_path: Path, case: str) -> None:
    assert trees.answers(tmp_path, f"void op(at::Tensor a, at::Tensor b) {{ {CHANGED[case]} }}")["a"] == "written"


@pytest.mark.parametrize("method", ["set_data", "swap"])
def test_a_tensor_that_is_given_other_data_is_not_called_read_only(tmp_path: Path, method: str) -> None:
    code = f"void op(at::Tensor a, at::Tensor b) {{ float x = a.data_ptr<float>()[0]; a.{method}(b); }}"
    assert trees.answers(tmp_path, code, "Tensor(a!) a, Tensor b")["a"] == "unknown"
