"""How real sources get from an argument to a store without a plain call, each with a look-alike that must not be one."""

from __future__ import annotations

from pathlib import Path

import pytest
import trees

W, R, U = "written", "read only", "unknown"
OP = "void op(at::Tensor a, at::Tensor b)"
BOTH = "a.data_ptr<float>(), b.data_ptr<float>()"

# In each, b is written and a is only read; a look-alike of the same form stands on the side of a.
WRITES_B = {
    "class of a cast": "struct Reader { void go(float* x, int n = 1) { float v = x[n]; } };\n"
    "struct Writer { void go(float* x, int n = 1); };\nvoid Writer::go(float* x, int n) { x[n] = 1; }\n"
    f"{OP} {{ auto r = reinterpret_cast<Reader*>(h); auto w = reinterpret_cast<Writer*>(h); r->go(a.data_ptr<float>()); w->go(b.data_ptr<float>()); }}",
    "class that a call returns": "struct R2 { void go(float* x) { float v = x[0]; } };\nstruct W2 { void go(float* x) { x[0] = 1; } };\n"
    "struct Pool { static std::unique_ptr<Pool>& get(int h); R2* reader(); W2* writer(); };\nPool& pool(int h) { return all[h]; }\n"
    "R2* Pool::reader() { return r; }\nW2* Pool::writer() { return w; }\n"
    f"{OP} {{ pool(1).reader()->go(a.data_ptr<float>()); pool(1).writer()->go(b.data_ptr<float>()); }}",
    "class of a field": "struct R3 { void go(float* x) { float v = x[0]; } };\nstruct W3 { void go(float* x) { x[0] = 1; } };\n"
    "struct Pair { R3 first; W3 second; void run(float* x, float* y) { first.go(x); second.go(y); } };\n"
    f"{OP} {{ Pair p; p.run({BOTH}); }}",
    "class known to the caller": "struct Reads { float* x; float* y; void update(int n) const { float v = x[n] + y[n]; } };\n"
    "struct Writes { float* x; float* y; void update(int n) const { y[n] = x[n]; } };\n"
    "template <template <typename> class N> struct Functor { N<int> norm; void operator()(int i) const { norm.update(i); } };\n"
    "template <template <typename> class N> void launch(N<int>& norm) { Functor<N> f{norm}; q.parallel_for(r, f); }\n"
    f"{OP} {{ Reads one{{a.data_ptr<float>(), a.data_ptr<float>()}}; Writes two{{{BOTH}}}; launch<Reads>(one); launch<Writes>(two); }}",
    "inherited constructor": "struct Base { Base(float* y, float* x) : x_(x), y_(y) {} float* x_; float* y_; };\n"
    "struct Derived : public Base { using Base::Base; void run() { y_[0] = x_[0]; } };\n"
    f"{OP} {{ Derived d(b.data_ptr<float>(), a.data_ptr<float>()); d.run(); }}",
    "attribute in a class head": "__device__ struct __attribute__((aligned(32))) Flags { explicit Flags(float* x, float* y) : p(x), q(y) {}\n"
    "  void wait() { q[1] = p[1]; } float* p; float* q; };\n"
    f"{OP} {{ Flags f({BOTH}); f.wait(); }}",
    "specialisation only": "template <typename T> void put(T* p);\ntemplate <>\ninline void put<float>(float* p) { *p = 1; }\n"
    "template <typename T> float look(T* p);\ntemplate <> inline float look<float>(float* p) { return *p; }\n"
    f"{OP} {{ float v = look(a.data_ptr<float>()); put(b.data_ptr<float>()); }}",
    "other platform's macro": "#ifdef FAST\n#define RUN(F, ...) case 1: return F(__VA_ARGS__);\n#else\n#define RUN(F, ...) case 1:\n#endif\n"
    "void k(float* x, float* y) { y[0] = x[0]; }\n"
    f"{OP} {{ switch (n) {{ RUN(k, {BOTH}) default: break; }} }}",
    "a loop of one platform": "__global__ void first(float* x, int n) {\n#ifdef ROCM\n  for (int i = 0; i < n; ++i) {\n#else\n  const int i = 0;\n#endif\n"
    "  float v = x[i];\n#ifdef ROCM\n  }\n#endif\n}\n__global__ void second(float* y) { y[0] = 1; }\n"
    f"{OP} {{ first<<<1, 1>>>(a.data_ptr<float>(), 1); second<<<1, 1>>>(b.data_ptr<float>()); }}",
    "a branch that ends with a directive": "void run(const float* x, float* y, int n) {\n#if defined(ROCM)\n  throw 1;\n#else\n#define CASE(k) case k: y[k] = x[k]; break;\n"
    "  switch (n) {\n  CASE(1)\n  CASE(2)\n  }\n#undef CASE\n#endif\n}\n"
    f"{OP} {{ run({BOTH}, 2); }}",
    "vector intrinsics": f"{OP} {{ auto v = __riscv_vle32_v_f32m1(a.data_ptr<float>(), 4); __riscv_vse32_v_f32m1(b.data_ptr<float>(), v, 4); }}",
    "pointers by rank": "void fill(float** to, const float* from, int n) { int at = n * 4; auto more = n + 1; *(to[n] + at + more) = *(from + at); }\n"
    f"{OP} {{ float* to[8] = {{nullptr}}; to[0] = b.data_ptr<float>(); fill(to, a.data_ptr<float>(), 2); }}",
    "assembly": '__device__ void st(const int* p, int v) { asm volatile("st.global.L1::no_allocate.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }\n'
    '__device__ int ld(const int* p) { int v; asm volatile("ld.global.nc.s32 %0, [%1];" : "=r"(v) : "l"(p)); return v; }\n'
    f"{OP} {{ st(b.data_ptr<int>(), ld(a.data_ptr<int>())); }}",
    "assembly with names": 'void add(int* p) { asm volatile("red.release.gpu.global.add.u32 [%[to]], %[by];" :: [by] "r"(1), [to] "l"(p)); }\n'
    f"{OP} {{ add(b.data_ptr<int>() + a.data_ptr<int>()[0]); }}",
    "swap": f"{OP} {{ atomicCAS(b.data_ptr<int>(), 0, 1); int v = atomicCAS(a.data_ptr<int>(), -1, -1); }}",
    "a sort": f"{OP} {{ auto k = at::empty_like(a); cub::DeviceRadixSort::SortPairs(b.data_ptr(), n, a.const_data_ptr(), k.data_ptr(), a.const_data_ptr(), k.data_ptr(), 4); }}",
    "a collective": f"{OP} {{ torch::cuda::nccl::all2all_single_equal_split(a, b, 2, comm, stream); }}",
    "kernel in a template": "struct Kernel { struct Params { const float* in; float* out; };\n"
    "  void operator()(Params const& p, char* smem) const { p.out[0] = p.in[0]; } };\n"
    f"{OP} {{ Kernel::Params p{{{BOTH}}}; compat::experimental::launch<cutlass::device_kernel<Kernel>, Kernel>(policy, q, p); }}",
    "packed arguments": "__global__ void k(const float* x, float* y) { y[0] = x[0]; }\n"
    f"{OP} {{ auto x = a.data_ptr<float>(); auto y = b.data_ptr<float>(); void* args[] = {{&x, &y}}; cudaLaunchKernel((void*)k, grid, block, args, 0, s); }}",
    "table of kernels": "template <int N> __global__ void k(const float* x, float* y) { y[N] = x[N]; }\n#define K(n) k<n>\nconstexpr auto kernels = std::array\n{ K(1), K(2) };\n"
    f"{OP} {{ kernels[n]<<<1, 1>>>({BOTH}); }}",
    "epilogue": "template <typename G> void run(float* x, float* y) { typename G::EpilogueArguments e{{}, x, dc, y, dd}; G gemm; }\n"
    f"{OP} {{ run<Gemm>({BOTH}); float v = a.data_ptr<float>()[0]; }}",
    "universal matrix product": f"{OP} {{ typename G::Arguments e{{cutlass::gemm::GemmUniversalMode::kGemm, {{1, 2, 3}}, {{a.const_data_ptr(), 1}}, "
    "{{}, nullptr, 1, b.data_ptr(), 2}}; float v = a.data_ptr<float>()[0]; }",
    "the same of the second version": f"{OP} {{ typename G::Arguments e{{cutlass::gemm::GemmUniversalMode::kGemm, {{1, 2, 3}}, 1, "
    "{s, t, u, a.data_ptr(), v}, a.data_ptr(), a.data_ptr(), b.data_ptr(), b.data_ptr(), 4, 5, 6, 7}; float v = a.data_ptr<float>()[0]; }",
    "a borrowed tensor": f"{OP} {{ auto x = c10::MaybeOwned<at::Tensor>::borrowed(a); auto y = c10::MaybeOwned<at::Tensor>::owned(b); y->copy_(*x); }}",
    "address in a new tensor": "__global__ void starts(float** to, const float** from, float* y, const float* x) { to[i] = y + i; from[i] = x + i; }\n"
    f"{OP} {{ auto to = at::empty({{4}}); auto from = at::empty({{4}}); starts<<<1, 1>>>((float**)to.data_ptr(), (const float**)from.data_ptr(), b.data_ptr<float>(), a.data_ptr<float>());\n"
    "  typename G::EpilogueArguments e{{}, nullptr, dc, static_cast<float**>(to.data_ptr()), dd}; float v = a.data_ptr<float>()[0]; }",
}  # fmt: skip


@pytest.mark.parametrize("style", WRITES_B)
def test_the_write_is_reached(tmp_path: Path, style: str) -> None:
    assert trees.answers(tmp_path, WRITES_B[style]) == {"a": R, "b": W}


# Nothing is proved here, on either side.
UNKNOWN = {
    "either of a list": f"{OP} {{ std::vector<at::Tensor> out; out.push_back(n ? at::empty_like(a) : a); out.push_back(n ? b : at::empty_like(b)); for (auto& t : out) t.zero_(); }}",
    "two addresses in one tensor": "__global__ void starts(float** to, float* y, float* x) { to[0] = y; to[1] = x; }\n"
    f"{OP} {{ auto to = at::empty({{4}}); starts<<<1, 1>>>((float**)to.data_ptr(), a.data_ptr<float>(), b.data_ptr<float>());\n"
    "  typename G::EpilogueArguments e{{}, nullptr, dc, static_cast<float**>(to.data_ptr()), dd}; }",
    "another instruction": f'{OP} {{ asm volatile("foo.global [%0], %1;" :: "l"(a.const_data_ptr<int>()), "l"(b.const_data_ptr<int>())); }}',
    "packed arguments of an unknown kernel": f"{OP} {{ const float* x = a.data_ptr<float>(); const float* y = b.data_ptr<float>(); float v = *x + *y; void* args[] = {{(void*)&x, (void*)&y}};"
    " cudaLaunchCooperativeKernel((void*)table[3], grid, block, args, 0, s); }",
    "packed arguments that are not seen": f"__global__ void k(float* x) {{ float v = *x; }}\n{OP} {{ auto x = a.data_ptr<float>(); auto y = b.data_ptr<float>(); float v = *x + *y; std::vector<void*> args; args.push_back(&x); args.push_back(&y);"
    " cudaLaunchKernel((void*)k, grid, block, args.data(), 0, s); }",
    "fewer arguments than the library's": f"{OP} {{ cublasGemmEx(h, a.data_ptr(), b.data_ptr()); }}",
    "a library beside ATen": f"{OP} {{ torch::cuda::nccl::anything(a, b); }}",
    "a library's function": f"{OP} {{ sampling::Run<float>({BOTH}); }}",
    "a method that does nothing seen": "struct P { void take(float* x) {} };\nstruct Q { void take(float* x) {} };\n"
    f"template <typename T> void f(T& t, float* x, float* y) {{ t.take(x); t.take(y); }}\n{OP} {{ f(unknown, {BOTH}); }}",
}  # fmt: skip


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_is_not_proved_is_unknown(tmp_path: Path, case: str) -> None:
    assert trees.answers(tmp_path, UNKNOWN[case]) == {"a": U, "b": U}


def test_written_where_contiguous_makes_no_copy(tmp_path: Path) -> None:
    code = f"{OP} {{ a.contiguous().zero_(); b.reshape({{-1}}).data_ptr<float>()[0] = 1; }}"
    (found,) = trees.infer(trees.write(tmp_path, op_cpp=trees.source(code)))
    assert [(answer.kind.value, answer.reason) for answer in found.answers] == [(W, "where it is contiguous")] * 2


def test_a_value_or_a_new_one(tmp_path: Path) -> None:
    code = "void op(at::Tensor a, std::optional<at::Tensor> b) { auto t = b.value_or(at::empty({4})); t.copy_(a); }"
    assert trees.answers(tmp_path, code, "Tensor a, Tensor? b") == {"a": R, "b": W}


def test_to_look_into_an_optional_reads_no_data(tmp_path: Path) -> None:
    code = "void op(std::optional<at::Tensor> a, std::optional<at::Tensor> b) { if (a) { at::Tensor t = *a; int n = t.size(0); } float v = (*b).data_ptr<float>()[0]; }"
    assert trees.answers(tmp_path, code, "Tensor? a, Tensor? b") == {"a": U, "b": R}


PEERS = {
    "of a table": "peers.data_ptr<int64_t>()[1]",
    "of a number": "static_cast<uintptr_t>(address)",
}


@pytest.mark.parametrize("peer", PEERS)
def test_a_store_that_leads_nobody_knows_where(tmp_path: Path, peer: str) -> None:
    """A peer's pointer may lead to this very buffer: what is declared is not called read only; without the store it is."""
    body = "float* to = reinterpret_cast<float*>(%s); to[0] = 1; float v = own.data_ptr<float>()[0] + x.data_ptr<float>()[0];"
    arguments = "Tensor(a!) own, Tensor x, Tensor peers, int address"
    code = f"void op(at::Tensor own, at::Tensor x, at::Tensor peers, int64_t address) {{ {body % PEERS[peer]} }}"
    found = trees.answers(tmp_path, code, arguments)
    assert found["own"] == U
    assert found["x"] == R
    assert trees.answers(tmp_path, code.replace("to[0] = 1;", ""), arguments)["own"] == R


@pytest.mark.parametrize(("body", "own"), [("", U), ("float v = *p;", R), ("*p = 1;", W)])
def test_a_pointer_that_goes_out_of_sight(tmp_path: Path, body: str, own: str) -> None:
    """What is declared is read only where every pointer to it is seen to be read; of others it is enough to see no store."""
    code = f"void f(float* p) {{ {body} }}\nvoid op(at::Tensor own, at::Tensor x) {{ f(own.data_ptr<float>()); f(x.data_ptr<float>()); float v = own.data_ptr<float>()[0] + x.data_ptr<float>()[0]; }}"
    found = trees.answers(tmp_path, code, "Tensor(a!) own, Tensor x")
    assert found == {"own": own, "x": R if own == U else own}
