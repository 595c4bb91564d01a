"""An element of a tensor's data that is handed to something which is not seen: a reference may be taken of it.

Every way to name an element, or its address, against every way to hand it on. By value nothing is written.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import trees

HEAD = """
struct Whole { float x; float a[4]; void hidden(); };
void outside(float& x);
template <typename T> void any(T& x);
void pointer(float* x);
void by_value(float x);
void by_const(const float& x);
struct Unseen;
template <auto F> void argument(float* p) { F(p[1]); }
template <void (*F)(float&)> void typed(float* p) { F(p[1]); }
template <typename T> void forwards(T&& x) { vendor(std::forward<T>(x)); }
template <typename... T> void folds(T&&... x) { ((x = 1), ...); }
"""
SET = "auto p = b.data_ptr<float>(); auto s = reinterpret_cast<Whole*>(p); auto acc = b.accessor<float, 1>(); float& r = p[1];"
ELEMENTS = (
    "p[1]", "*p", "*(p + 1)", "(p[1])", "s->x", "s[1].x", "s->a[2]", "s->a", "r", "static_cast<float&>(p[1])",
    "reinterpret_cast<int&>(p[1])", "std::move(p[1])", "acc[0]",
)  # fmt: skip
RECEIVERS = (
    "outside({});", "any({});", "vendor({});", "int e = vendor({});", "vendor::put({}, 1);", "std::vendor({});",
    "f({});", "unseen->put({});", "unseen.template put<1>({});", "auto g = [&](auto& y) {{ vendor(y); }}; g({});",
    "[](float& y) {{ outside(y); }}({});", "forwards({});", "folds({});",
)  # fmt: skip
ADDRESSES = ("&p[1]", "&*p", "&s->x", "&s[1].a[2]", "&(p[1])", "std::addressof(p[1])", "&acc[0]", "&p[4] - 2", "&r")
TAKERS = (
    "pointer({});",
    "vendor({});",
    "int e = vendor({}, 1);",
    "unseen->put({});",
    "f2({});",
    "new (vendor({})) int(1);",
)
WHOLE = (
    "argument<outside>(p);",
    "typed<outside>(p);",
    "s[1].hidden();",
    "s->hidden();",
    "reinterpret_cast<Unseen*>(p)[2].put();",
)
BY_VALUE = (
    "by_value({});", "by_const({});", "float y = std::exp({}); a.fill_(y);", "float y = {}; vendor(&y);",
    "auto y = {}; y += 1; a.fill_(y);", "float y = std::min({}, 3.f); a.fill_(y);",
)  # fmt: skip


def told(folder: Path, lines: list[str]) -> dict[str, str]:
    """What is said of `b` in operators of one line each."""
    code, registered = [HEAD], []
    for number, line in enumerate(lines):
        known = "void (*f)(float&) = vendor::get(); void (*f2)(float*) = vendor::get(); Unseen* unseen = vendor::get();"
        code.append(
            f"void op{number}(at::Tensor a, at::Tensor b) {{ {SET} {known} {line} float y0 = p[0]; a.fill_(y0); }}"
        )
        registered.append(f'  m.def("op{number}(Tensor(x!) a, Tensor b) -> ()", &op{number});')
    text = "\n".join(["#include <torch/library.h>", *code, "TORCH_LIBRARY(planted, m) {", *registered, "}"])
    found = trees.infer(trees.write(folder, op_cu=text))
    return {line: answers.answers[1].kind.value for line, answers in zip(lines, found, strict=True)}


def test_what_may_be_taken_by_reference_is_never_called_read(tmp_path: Path) -> None:
    lines = [taker.format(one) for one, taker in (*product(ELEMENTS, RECEIVERS), *product(ADDRESSES, TAKERS))]
    found = told(tmp_path, [*lines, *WHOLE])
    assert [line for line, answer in found.items() if answer == "read only"] == []


def test_what_is_taken_by_value_is_read(tmp_path: Path) -> None:
    found = told(tmp_path, [taker.format(one) for one, taker in product(("p[1]", "*p", "s->x", "acc[0]"), BY_VALUE)])
    assert {line: answer for line, answer in found.items() if answer != "read only"} == {}


COPIES = """
template <typename T> __device__ void copy4(T* to, const T* from) { *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from); }
template <typename T> __device__ void nothing(T* to, const T* from) { float x = *to + *from; }
template <typename T, auto F, int N> __global__ void kernel(T* from, T* to) { for (int i = 0; i < N; i++) F(&to[i], &from[i]); }
template <typename T, void (*F)(T*, const T*)> __global__ void typed_kernel(T* from, T* to) { F(&to[3], from); }
template <auto F> void through(float* from, float* to) { kernel<float, F, 4><<<1, 1>>>(from, to); }
template <auto F> void kept(float* from, float* to) { auto f = F; f(to, from); }
"""
LAUNCHES = (
    "kernel<float, {}<float>, 4><<<1, 1>>>({}, {});", "typed_kernel<float, {}<float>><<<1, 1>>>({}, {});",
    "through<{}<float>>({}, {});", "through<&{}<float>>({}, {});", "kept<{}<float>>({}, {});",
    "void* k; k = (void*)&kernel<float, {}<float>, 4>; auto p = {}; auto q = {}; void* args[] = {{&p, &q}};"
    " cudaLaunchKernel(k, 1, 1, args, 0, 0);",
)  # fmt: skip


def test_a_function_that_a_template_is_given_is_followed(tmp_path: Path) -> None:
    for number, (launch, name) in enumerate(product(LAUNCHES, ("copy4", "nothing"))):
        line = launch.format(name, "a.data_ptr<float>()", "b.data_ptr<float>()")
        inner = tmp_path / str(number)
        inner.mkdir()
        found = trees.answers(inner, f"{COPIES}void op(at::Tensor a, at::Tensor b) {{ {line} }}")
        assert found == {"a": "read only", "b": "written" if name == "copy4" else "read only"}, line
