"""Each way in which real sources write an argument, each trap that looks like one, and what must stay unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
import trees

W, R, U = "written", "read only", "unknown"
LOOP = "for (int i = 0; i < 4; ++i)"
COPY = "void fill(const float* from, float* to, int n) { for (int i = 0; i < n; ++i) to[i] = from[i]; }\n"

# b is written, a is only read.
WRITES_B = {
    "store": f"void op(at::Tensor a, at::Tensor b) {{ float* p = b.data_ptr<float>(); auto q = a.data_ptr<float>(); {LOOP} p[i] = q[i]; }}",
    "arithmetic": "void op(at::Tensor a, at::Tensor b) { auto p = (float*)b.data_ptr() + 8; *(p + 1) = *a.data_ptr<float>(); }",
    "helper": COPY + "void op(const at::Tensor& a, const at::Tensor& b) { fill(a.data_ptr<float>(), b.data_ptr<float>(), 4); }",
    "by name": COPY + "void op(at::Tensor a, at::Tensor b) { auto* run = &fill; run(a.data_ptr<float>(), b.data_ptr<float>(), 4); }",
    "template": "template <typename T> void f(T* x, const T* y) { x[0] = y[0]; }\nvoid op(at::Tensor a, at::Tensor b) { f<float>(b.data_ptr<float>(), a.data_ptr<float>()); }",
    "deep": "void h3(float* p, float v) { *p = v; }\nvoid h2(float* p, float v) { h3(p, v); }\nvoid h1(float* p, float* q) { h2(q, p[0]); }\n"
    "void op(at::Tensor a, at::Tensor b) { h1(a.data_ptr<float>(), b.data_ptr<float>()); }",
    "macro": "#define EXTRACT_PTR(p, t) auto p = reinterpret_cast<float*>(t.data_ptr())\n"
    "void op(at::Tensor a, at::Tensor b) { EXTRACT_PTR(x, a); EXTRACT_PTR(y, b); y[0] = x[0]; }",
    "dispatch": COPY + 'void op(at::Tensor a, at::Tensor b) { AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "op", [&] { '
    "fill(a.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), 4); }); }",
    "own dispatch": "#define CASES(T, NAME, ...) AT_DISPATCH_SWITCH(T, NAME, AT_DISPATCH_CASE(at::kHalf, __VA_ARGS__) AT_DISPATCH_CASE(at::kFloat, __VA_ARGS__))\n"
    + COPY
    + 'void op(at::Tensor a, at::Tensor b) { CASES(a.scalar_type(), "op", [&] { fill(a.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), 4); }); }',
    "launch": "__global__ void k(const float* __restrict__ x, float* __restrict__ y) { y[threadIdx.x] = x[threadIdx.x]; }\n"
    "void op(at::Tensor a, at::Tensor b) { k<<<dim3(1), 32, 0, s>>>(a.data_ptr<float>(), b.data_ptr<float>()); }",
    "pointers in an array": "void k(float** from, float** to) { to[0][0] = from[0][0]; }\n"
    "void op(at::Tensor a, at::Tensor b) { float* f[1] = {a.data_ptr<float>()}; float* t[1] = {b.data_ptr<float>()}; k(f, t); }",
    "struct": "struct Params { float* in; float* out; };\nvoid run(Params& p) { p.out[0] = p.in[0]; }\nvoid set(Params& p, at::Tensor a, at::Tensor b) { p.in = a.data_ptr<float>(); p.out = b.data_ptr<float>(); }\n"
    "void op(at::Tensor a, at::Tensor b) { Params p; set(p, a, b); run(p); }",
    "functor": "struct Kernel { const float* x; float* y; void operator()(sycl::nd_item<1> it) const { y[0] = x[0]; } };\n"
    "void op(at::Tensor a, at::Tensor b) { q.submit([&](sycl::handler& h) { h.parallel_for(r, Kernel{a.data_ptr<float>(), b.data_ptr<float>()}); }); }",
    "constructed functor": "template <typename T, T (*F)(const T&)> class Kernel { public: Kernel(T* y, const T* x) : out_(y), in_(x) {}\n"
    "  void operator() [[sycl::reqd_sub_group_size(32)]] (sycl::nd_item<1> it) const { out_[0] = F(in_[0]); }\n private: T* out_; const T* in_; };\n"
    "void op(at::Tensor a, at::Tensor b) { q.parallel_for(r, Kernel<float, g>(b.data_ptr<float>(), a.data_ptr<float>())); }",
    "lambda": "void op(at::Tensor a, at::Tensor b) { auto x = a.data_ptr<float>(); auto y = b.data_ptr<float>(); h.parallel_for(n, [=](int i) { y[i] = x[i]; }); }",
    "optional comma": "#define RUN(f, n, ...) f(n __VA_OPT__(, ) __VA_ARGS__)\nvoid k(int n, float* x, float* y) { y[n] = x[n]; }\n"
    "void op(at::Tensor a, at::Tensor b) { RUN(k, 3, a.data_ptr<float>(), b.data_ptr<float>()); }",
    "template constant": "template <bool PUT> void k(float* x, float* y) { if constexpr (!PUT) { x[0] = y[0]; } else { y[0] = x[0]; } }\n"
    "template <typename T, bool PUT> void run(at::Tensor a, at::Tensor b) { auto* f = &k<PUT>; f(a.data_ptr<T>(), b.data_ptr<T>()); }\n"
    "void op(at::Tensor a, at::Tensor b) { run<float, true>(a, b); }",
    "lambda parameter": "void op(at::Tensor a, at::Tensor b) { auto set = [](float* to, const float& v) { *to = v; }; set(b.data_ptr<float>(), a.data_ptr<float>()[0]); }",
    "reference": "void set(float& to, float from) { to = from; }\nvoid op(at::Tensor a, at::Tensor b) { set(b.data_ptr<float>()[3], a.data_ptr<float>()[3]); }",
    "esimd": "void op(at::Tensor a, at::Tensor b) { auto v = block_load<float, 8>(a.data_ptr<float>()); block_store<float, 8>(b.data_ptr<float>(), v); }",
    "vector store": "void op(at::Tensor a, at::Tensor b) { auto v = Vec::loadu(a.data_ptr<float>()); v.store(b.data_ptr<float>() + 4); }",
    "atomic": "void op(at::Tensor a, at::Tensor b) { atomicAdd(&b.data_ptr<float>()[0], a.data_ptr<float>()[0]); }",
    "memcpy": "void op(at::Tensor a, at::Tensor b) { cudaMemcpyAsync(b.mutable_data_ptr(), a.const_data_ptr(), 4, kind, stream); }",
    "in place": "void op(at::Tensor a, at::Tensor b) { b.copy_(a); }",
    "view in place": "void op(at::Tensor a, at::Tensor b) { auto v = b.view({-1}).select(0, 1); v.add_(a); }",
    "out form": "void op(at::Tensor a, at::Tensor b) { at::sum_out(b, a, 0); }",
    "accessor": f"void op(at::Tensor a, at::Tensor b) {{ auto y = b.packed_accessor32<float, 2>(); auto x = a.accessor<float, 2>(); {LOOP} y[i][0] = x[i][0]; }}",
    "const_cast": "void op(at::Tensor a, at::Tensor b) { const float* p = b.data_ptr<float>(); const_cast<float*>(p)[0] = a.data_ptr<float>()[0]; }",
    "vector cast": "void op(at::Tensor a, at::Tensor b) { *reinterpret_cast<float4*>(b.data_ptr<float>()) = *reinterpret_cast<const float4*>(a.data_ptr<float>()); }",
    "member store": "void op(at::Tensor a, at::Tensor b) { reinterpret_cast<float4*>(b.data_ptr())[0].x = a.data_ptr<float>()[0]; }",
    "overload": "void f(float* y, const int* x) { y[0] = x[0]; }\nvoid f(const float* y, int* x) { x[0] = y[0]; }\n"
    "void op(at::Tensor a, at::Tensor b) { const float* x = a.data_ptr<float>(); f(x, b.data_ptr<int>()); }",
    "namespaces": "namespace other { void f(float* x, float* y) { x[0] = y[0]; } }\nnamespace mine { void f(float* x, float* y) { y[0] = x[0]; } }\n"
    "void op(at::Tensor a, at::Tensor b) { mine::f(a.data_ptr<float>(), b.data_ptr<float>()); }",
    "temporary": "void op(at::Tensor a, at::Tensor b) { b.select(0, 1) += a; }",
    "assigned view": "void op(at::Tensor a, at::Tensor b) { b.index({0, at::indexing::Slice(0, 1)}) = a + 1; }",
    "sliced": 'void op(at::Tensor a, at::Tensor b) { int64_t k = a.size(0); b.index({"...", torch::indexing::Slice(0, k), k}).copy_(a); }',
    "blob": "void op(at::Tensor a, at::Tensor b) { auto t = torch::from_blob(b.data_ptr(), {3}); t.copy_(a); }",
    "list of tensors": "void op(at::Tensor a, at::Tensor b) { std::vector<at::Tensor> v = {b}; at::_foreach_add_(v, a + 1); }",
    "complex view": "void op(at::Tensor a, at::Tensor b) { at::view_as_real(b).copy_(a); }",
    "storage": "void op(at::Tensor a, at::Tensor b) { auto* p = (float*)b.storage().data_ptr().get(); p[0] = a.data_ptr<float>()[0]; }",
    "placed": "void op(at::Tensor a, at::Tensor b) { new (b.data_ptr<float>()) float(a.data_ptr<float>()[0]); }",
    "exchanged": "void op(at::Tensor a, at::Tensor b) { float old = std::exchange(b.data_ptr<float>()[0], a.data_ptr<float>()[0]); }",
    "atomic reference": "void op(at::Tensor a, at::Tensor b) { sycl::atomic_ref<float, order, scope> r(b.data_ptr<float>()[0]); r += a.data_ptr<float>()[0]; }",
    "kept atomic reference": "void op(at::Tensor a, at::Tensor b) { auto r = cuda::atomic_ref<float>(*b.data_ptr<float>()); r.fetch_add(a.data_ptr<float>()[0]); }",
    "kernel handed on": "__global__ void k(const float* x, float* y) { y[0] = x[0]; }\ntemplate <typename K, typename... Args> void launch(K kernel, Args... args) { cudaLaunchKernelEx(&config, kernel, args...); }\n"
    "void op(at::Tensor a, at::Tensor b) { launch(k, a.data_ptr<float>(), b.data_ptr<float>()); }",
}  # fmt: skip


@pytest.mark.parametrize("style", WRITES_B)
def test_a_write_is_found(tmp_path: Path, style: str) -> None:
    assert trees.answers(tmp_path, WRITES_B[style]) == {"a": R, "b": W}


# Nothing is written here, though each was taken for a write once.
TRAPS = {
    "rebound": "void op(at::Tensor& a, at::Tensor& b) { a = a.reshape({2, 2}); float x = a.data_ptr<float>()[0]; float y = b.data_ptr<float>()[0]; }",
    "fresh": "at::Tensor op(at::Tensor a, at::Tensor b) { auto out = at::empty_like(a); out.copy_(a); out.add_(b); return out; }",
    "rebound in a helper": "void fill(std::optional<at::Tensor>& t) { if (!t.has_value()) { t = torch::empty({3}); t->data_ptr<float>()[0] = 1; } read(t->const_data_ptr<float>()); }\n"
    "void op(const std::optional<at::Tensor>& a, const std::optional<at::Tensor>& b) { auto c = a; auto d = b; fill(c); fill(d); }",
    "rebound and written": "void op(at::Tensor& a, at::Tensor& b) { a = a + 1; a.zero_(); b = torch::empty_like(a); b.data_ptr<float>()[0] = 1; }",
    "indexed by a tensor": "void op(at::Tensor a, at::Tensor b) { auto c = a.index({b}); c.zero_(); }",
    "replaced": "void op(at::Tensor a, at::Tensor b) { at::Tensor c = a; c = at::empty_like(b); c.copy_(a + b); }",
    "either": "void op(at::Tensor a, at::Tensor b) { at::Tensor c; if (b.is_pinned()) { c = a; } else { c = at::empty_like(a); c.copy_(b); } float x = a.data_ptr<float>()[0]; }",
    "local array": f"void op(at::Tensor a, at::Tensor b) {{ float t[4]; auto p = a.data_ptr<float>(); auto q = b.data_ptr<float>(); {LOOP} t[i] = p[i] + q[i]; }}",
    "index": "void op(at::Tensor a, at::Tensor b) { int k = a.data_ptr<int>()[0]; float* t = new float[9]; t[k] = b.data_ptr<float>()[0]; }",
    "shared memory": "void op(at::Tensor a, at::Tensor b) { auto v = block_load<float, 8>(a.data_ptr<float>() + b.data_ptr<int>()[0]); slm_block_store<float, 8>(0, v); }",
    "by value": "void f(float x) { x = 1; }\nvoid op(at::Tensor a, at::Tensor b) { f(a.data_ptr<float>()[0]); f(b.data_ptr<float>()[0]); }",
    "moved pointer": "void op(at::Tensor a, at::Tensor b) { auto p = a.data_ptr<float>(); p += 4; ++p; float x = *p + *b.data_ptr<float>(); }",
    "swapped": "void op(at::Tensor a, at::Tensor b) { auto p = a.data_ptr<float>(); auto q = b.data_ptr<float>(); std::swap(p, q); float x = *p + *q; }",
    "sum of views": "void op(at::Tensor a, at::Tensor b) { auto y = a.narrow(0, 1, 2); auto z = (y - y[1]).pow_(2); auto w = (b.select(0, 1) + y).zero_(); }",
    "sorted copies": "void op(at::Tensor a, at::Tensor b) { auto s = at::sort(a); auto t = torch::fill(b, 3); }",
    "copied into a vector": "std::vector<float> f(const at::Tensor& t) { auto d = t.data_ptr<float>(); return std::vector<float>(d, d + t.numel()); }\n"
    "void op(at::Tensor a, at::Tensor b) { auto v = f(a); v[0] = 1; v.push_back(2); auto w = f(b); std::sort(w.begin(), w.end()); }",
    "shadow": "void op(at::Tensor a, at::Tensor b) { auto f = [](std::vector<float> b) { b[0] = 1; }; float x = a.data_ptr<float>()[0] + b.data_ptr<float>()[0]; }",
    "commented": "void op(at::Tensor a, at::Tensor b) { float x = a.data_ptr<float>()[0] + b.data_ptr<float>()[0]; /* a.zero_(); */ // b.zero_();\n }",
    "disabled": "void op(at::Tensor a, at::Tensor b) { float x = a.data_ptr<float>()[0] + b.data_ptr<float>()[0];\n#if 0\n a.zero_(); b.zero_();\n#endif\n }",
}  # fmt: skip


@pytest.mark.parametrize("trap", TRAPS)
def test_no_write_is_invented(tmp_path: Path, trap: str) -> None:
    assert W not in trees.answers(tmp_path, TRAPS[trap]).values()


# What is not seen is not judged.
UNKNOWN = {
    "vendor library": "void op(at::Tensor a, at::Tensor b) { cublasGemmEx(handle, a.data_ptr(), b.data_ptr()); }",
    "declared only": "void far(float* x, float* y);\nvoid op(at::Tensor a, at::Tensor b) { far(a.data_ptr<float>(), b.data_ptr<float>()); }",
    "a copy, perhaps": "void op(at::Tensor a, at::Tensor b) { a.to(at::kFloat).data_ptr<float>()[0] = 1; b.cpu().zero_(); }",
    "address kept": "void keep(float** table, float* x) { table[0] = x; }\nvoid op(at::Tensor a, at::Tensor b) { auto t = at::empty({2}); keep((float**)b.data_ptr(), a.data_ptr<float>()); run(b); }",
    "a pointer to write through": "struct Out { float* p; };\nvoid use(const float* x, Out o) { if (x[0]) launch(); }\n"
    "void op(at::Tensor a, at::Tensor b) { use(a.const_data_ptr<float>(), {a.mutable_data_ptr<float>()}); use(b.const_data_ptr<float>(), {b.mutable_data_ptr<float>()}); }",
    "one of a list": "void op(at::Tensor a, at::Tensor b) { std::vector<at::Tensor> v; v.emplace_back(at::empty({3})); v.insert(v.end(), a); v.push_back(b); at::Tensor& first = v[0]; new (first.data_ptr()) float(1); }",
    "index, perhaps": "void op(at::Tensor a, at::Tensor b) { auto i = pick(3); a.index({i}).zero_(); b.index({i}) = 1; }",
    "never used": "void op(at::Tensor a, at::Tensor b) {}",
    "inline assembly": 'void op(at::Tensor a, at::Tensor b) { asm volatile("x" :: "l"(a.data_ptr<float>()), "l"(b.data_ptr<float>())); }',
}  # fmt: skip


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_is_not_seen_is_unknown(tmp_path: Path, case: str) -> None:
    found = trees.answers(tmp_path, UNKNOWN[case])
    assert found["a"] == U
    assert found["b"] in (U, W if case == "address kept" else U)


# Declared as written, read here, and handed to what may write it in a way that is not followed: no over-annotation.
OUT_OF_SIGHT = {
    "local struct": "struct F { float* p; void go() { p[0] = 1; } }; F f{a.data_ptr<float>()}; f.go();",
    "local functor": "struct F { float* p; void operator()(int i) const { p[i] = 1; } }; F f{a.data_ptr<float>()}; f(0);",
    "out form by number": "at::_ops::add_Tensor_out::call(b, b, a);",
    "in place by number": "at::_ops::add__Tensor::call(a, b);",
}


@pytest.mark.parametrize("case", OUT_OF_SIGHT)
def test_what_goes_out_of_sight_is_not_called_read_only(tmp_path: Path, case: str) -> None:
    code = f"void op(at::Tensor a, at::Tensor b) {{ float x = a.data_ptr<float>()[0]; {OUT_OF_SIGHT[case]} }}"
    assert trees.answers(tmp_path, code, "Tensor(a!) a, Tensor b")["a"] == U


def test_of_two_chains_of_one_length_the_same_is_told(tmp_path: Path) -> None:
    """Whichever is met first: the earlier lines."""
    code = (
        "void f(float* p) {\n  p[0] = 1;\n  p[1] = 2;\n}\n"
        "void op(at::Tensor a, at::Tensor b) {\n  for (auto* p : {b.data_ptr<float>(), a.data_ptr<float>()}) f(p);\n  f(b.data_ptr<float>());\n}"
    )
    (found,) = trees.infer(trees.write(tmp_path, op_cpp=trees.source(code)))
    answer = found.of("b")
    assert answer
    assert [line for _, line in answer.chain] == [8, 4]


def test_const_parameters_of_what_is_only_declared_are_read(tmp_path: Path) -> None:
    code = "void far(const float* x, float* y);\nvoid op(at::Tensor a, at::Tensor b) { far(a.data_ptr<float>(), b.data_ptr<float>()); }"
    assert trees.answers(tmp_path, code) == {"a": R, "b": U}


def test_lists_and_optionals(tmp_path: Path) -> None:
    code = (
        "void op(const std::vector<at::Tensor>& a, const std::optional<at::Tensor>& b) {\n"
        "  for (auto& t : a) { t.data_ptr<float>()[0] = 0; }\n"
        "  if (b.has_value()) { b.value().zero_(); } }"
    )
    assert trees.answers(tmp_path, code, "Tensor[] a, Tensor? b") == {"a": W, "b": W}


def test_the_definition_may_stand_in_another_file(tmp_path: Path) -> None:
    kernel = "namespace k { template <typename T> void run(T* out, const T* in) { out[0] = in[0]; } }"
    code = '#include "k.h"\nvoid op(at::Tensor a, at::Tensor b) { k::run(b.data_ptr<float>(), a.data_ptr<float>()); }'
    assert trees.answers(tmp_path, code, k_h=kernel) == {"a": R, "b": W}


def test_the_chain_leads_from_the_argument_to_the_store(tmp_path: Path) -> None:
    code = "void put(float* p) {\n  *p = 1;\n}\nvoid op(at::Tensor a, at::Tensor b) {\n  put(b.data_ptr<float>());\n}"
    (found,) = trees.infer(trees.write(tmp_path, op_cpp=trees.source(code)))
    answer = found.of("b")
    assert answer
    assert [(Path(path).name, line) for path, line in answer.chain] == [("op.cpp", 7), ("op.cpp", 4)]


@pytest.mark.parametrize(
    ("body", "returned"),
    [
        ("return b;", "b"),
        ("b.zero_(); return std::move(b);", "b"),
        ("return at::empty_like(a);", "fresh"),
        ("static at::Tensor kept; return kept;", "private buffer"),
        ("thread_local at::Tensor kept = at::empty({1}); return kept;", "private buffer"),
        ("if (a.numel()) return a; return b;", "unknown"),
        ("return either(a, b);", "unknown"),
        ("auto c = outer(a, b); return c;", "unknown"),
        ("return same(b);", "b"),
        ("b = far(a, b); return b;", "fresh"),
        ("b = a + 1; return b;", "fresh"),
        ("return b.defined() ? b : at::empty_like(a);", "b"),
        ('TORCH_CHECK(false, "no CPU"); return a;', "unknown"),
        ('if (a.numel()) { TORCH_CHECK(false, "never"); return a; } return b;', "b"),
    ],
)
def test_what_is_returned(tmp_path: Path, body: str, returned: str) -> None:
    helpers = (
        "at::Tensor either(at::Tensor a, at::Tensor b) { if (a.numel() == 0) return a; return at::cat({a, b}); }\n"
        "at::Tensor outer(at::Tensor a, at::Tensor b) { return either(a, b); }\nat::Tensor same(at::Tensor x) { return x; }\n"
    )
    code = f"{helpers}at::Tensor op(at::Tensor& a, at::Tensor& b) {{ {body} }}"
    (found,) = trees.infer(trees.write(tmp_path, op_cpp=trees.source(code, returns="Tensor")))
    assert found.returns == (returned,)


def test_a_list_that_is_handed_back_beside_a_tensor(tmp_path: Path) -> None:
    code = "std::tuple<at::Tensor, std::vector<at::Tensor>> op(at::Tensor a, const std::vector<at::Tensor>& b) { return {at::zeros_like(a), b}; }"
    source = trees.source(code, "Tensor a, Tensor[] b", "(Tensor, Tensor[])")
    (found,) = trees.infer(trees.write(tmp_path, op_cpp=source))
    assert found.returns == ("fresh", "b")


def test_the_elements_of_a_returned_list_are_not_told_apart(tmp_path: Path) -> None:
    code = "std::vector<at::Tensor> op(at::Tensor a, at::Tensor b) { return {b, at::zeros_like(a)}; }"
    (found,) = trees.infer(trees.write(tmp_path, op_cpp=trees.source(code, returns="Tensor[]")))
    assert found.returns == ("unknown",)


def test_every_place_of_a_tuple_is_told(tmp_path: Path) -> None:
    code = "std::tuple<at::Tensor, at::Tensor> op(at::Tensor a, at::Tensor b) { return {at::zeros_like(a), b}; }"
    (found,) = trees.infer(trees.write(tmp_path, op_cpp=trees.source(code, returns="(Tensor, Tensor)")))
    assert found.returns == ("fresh", "b")


def test_recursion_and_cycles_end(tmp_path: Path) -> None:
    code = (
        "void g(float* p, int n);\nvoid f(float* p, int n) { if (n) g(p + 1, n - 1); }\nvoid g(float* p, int n) { *p = 0; f(p, n); }\n"
        "void op(at::Tensor a, at::Tensor b) { f(b.data_ptr<float>(), 3); float x = a.data_ptr<float>()[0]; }"
    )
    assert trees.answers(tmp_path, code) == {"a": R, "b": W}


def test_a_macro_of_the_tree_may_bind_the_implementation(tmp_path: Path) -> None:
    header = "#define TO_CPU(name, fn) m.impl(name, torch::dispatch(c10::DispatchKey::CPU, TORCH_FN(fn)))\n"
    code = (
        '#include "k.h"\nvoid op(at::Tensor a, at::Tensor b) { b.copy_(a); }\n'
        'TORCH_LIBRARY_FRAGMENT(planted, m) { m.def("op(Tensor a, Tensor b) -> ()"); TO_CPU("op", op); }'
    )
    (found,) = trees.infer(trees.write(tmp_path, op_cpp=code, k_h=header))
    assert [answer.kind.value for answer in found.answers] == [R, W]


def test_an_implementation_for_meta_tensors_is_no_evidence(tmp_path: Path) -> None:
    code = trees.source(
        "void op(at::Tensor a, at::Tensor b) { b.copy_(a); }\nvoid meta(at::Tensor a, at::Tensor b) { a.zero_(); }"
    )
    code += 'TORCH_LIBRARY_IMPL(planted, Meta, m) { m.impl("op", &meta); }\n'
    (found,) = trees.infer(trees.write(tmp_path, op_cpp=code))
    assert [answer.kind.value for answer in found.answers] == [R, W]


def test_a_wrapper_with_the_function_as_its_template_argument(tmp_path: Path) -> None:
    """As `apply --returns void` leaves it, where the wrapper's header is not in the tree."""
    code = "at::Tensor op(at::Tensor a, at::Tensor b) { return b.copy_(a); }"
    text = trees.source(code).replace("&op)", "schema_patch::drop_return<&op>)")
    (found,) = trees.infer(trees.write(tmp_path, op_cpp=text))
    assert {answer.name: answer.kind.value for answer in found.answers} == {"a": R, "b": W}
