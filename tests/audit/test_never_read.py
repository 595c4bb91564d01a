"""C++ that writes `b` in every way that was thought of: none of them may be called a read.

What is not followed is unknown; how many are followed is held too, so that none is lost.
"""

from __future__ import annotations

from pathlib import Path

import trees

FOLLOWED = 190
HEAD = """
void zero(at::Tensor t) { t.zero_(); }
struct Zero { void operator()(at::Tensor t) const { t.zero_(); } };
struct Holder { at::Tensor t; void run() { t.zero_(); } };
struct Made { Made(at::Tensor x) : t_(x) {} void run() { t_.zero_(); } at::Tensor t_; };
struct Setter { at::Tensor t; Setter& operator=(float v) { t.fill_(v); return *this; } Setter& operator+=(float v) { t.add_(v); return *this; } void operator<<(int v) { t.fill_(v); } void operator[](int v) { t.fill_(v); } };
struct AtEnd { at::Tensor t; ~AtEnd() { t.zero_(); } };
struct Converts { at::Tensor t; operator float*() const { return t.data_ptr<float>(); } };
struct Base { virtual void run(at::Tensor t) = 0; virtual ~Base() {} };
struct Derived : Base { void run(at::Tensor t) override { t.zero_(); } };
struct Fields { float* p; int n; };
struct Outer { Fields f; };
at::Tensor g;
void apply(void (*f)(at::Tensor), at::Tensor t) { f(t); }
template <typename F> void run(F f, at::Tensor t) { f(t); }
template <typename... A> void pack(A... a) { second(a...); }
void second(at::Tensor x, at::Tensor y) { y.zero_(); }
void late(at::Tensor x, at::Tensor y);
__global__ void kernel(at::PackedTensorAccessor32<float, 1> acc) { acc[0] = 1; }
__global__ void plain(float* p) { p[0] = 1; }
#define SET(x) x.zero_()
#define BOTH(x, y) do { y.copy_(x); } while (0)
"""
WRITES = """
std::function<void()> f = [&] { b.zero_(); }; f();
auto f = std::bind(zero, b); f();
std::bind(zero, std::placeholders::_1)(b);
auto t = std::make_tuple(a, b); std::get<1>(t).zero_();
std::tuple<at::Tensor, at::Tensor> t(a, b); std::get<1>(t).zero_();
std::tuple<at::Tensor, at::Tensor> t{a, b}; std::get<1>(t).zero_();
std::pair<at::Tensor, at::Tensor> p{a, b}; p.second.zero_();
std::pair<at::Tensor, at::Tensor> p(a, b); p.second.zero_();
std::map<std::string, at::Tensor> m; m["k"] = b; m["k"].zero_();
std::map<std::string, at::Tensor> m; m.insert({"k", b}); m.at("k").zero_();
std::map<std::string, at::Tensor> m; m.emplace("k", b); m.at("k").zero_();
std::map<std::string, at::Tensor> m{{"k", b}}; for (auto& [k, v] : m) v.zero_();
std::map<std::string, at::Tensor> m{{"k", b}}; m.find("k")->second.zero_();
std::vector<at::Tensor> v{a, b}; v[1].zero_();
std::vector<at::Tensor> v{a, b}; v.back().zero_();
std::vector<at::Tensor> v = {a, b}; for (auto& t : v) t.zero_();
std::vector<at::Tensor> v; v.push_back(b); v[0].zero_();
std::vector<at::Tensor> v; v.emplace_back(b); v.front().zero_();
std::vector<at::Tensor> v(2); v[0] = b; v[0].zero_();
std::vector<at::Tensor> v(2, b); v[0].zero_();
std::array<at::Tensor, 2> v{a, b}; v[1].zero_();
std::array<at::Tensor, 2> v = {{a, b}}; v[1].zero_();
at::Tensor v[2] = {a, b}; v[1].zero_();
at::TensorList v = {a, b}; v[1].zero_();
std::optional<at::Tensor> o = b; o->zero_();
std::optional<at::Tensor> o(b); o.value().zero_();
c10::optional<at::Tensor> o{b}; (*o).zero_();
auto o = std::make_optional(b); o->zero_();
auto h = std::make_unique<Holder>(b); h->run();
auto h = std::make_shared<Made>(b); h->run();
std::unique_ptr<Made> h(new Made(b)); h->run();
Made* h = new Made(b); h->run(); delete h;
Holder h{b}; h.run();
Holder h; h.t = b; h.run();
Made h(b); h.run();
Made(b).run();
Holder h{b}; Holder& r = h; r.run();
Holder h{b}; Holder* r = &h; r->run();
Holder h{b}; h.t.zero_();
std::vector<Holder> v; v.push_back(Holder{b}); v[0].run();
std::vector<Holder> v{{b}}; v[0].t.zero_();
Setter s{b}; s = 1.0f;
Setter s{b}; s += 1.0f;
Setter s{b}; s << 1;
Setter s{b}; s[1];
AtEnd e{b};
{ AtEnd e{b}; }
Converts c{b}; float* p = c; p[0] = 1;
g = b; g.zero_();
at::Tensor& r = b; r.zero_();
at::Tensor* p = &b; p->zero_();
at::Tensor* p = &b; (*p).zero_();
at::Tensor x; std::swap(x, b); x.zero_();
at::Tensor x, y; std::tie(x, y) = std::make_tuple(a, b); y.zero_();
auto [x, y] = std::make_tuple(a, b); y.zero_();
for (auto t : {a, b}) t.zero_();
for (const auto& t : std::vector<at::Tensor>{a, b}) t.zero_();
at::Tensor c; c = b; c.zero_();
at::Tensor c = at::Tensor(b); c.zero_();
at::Tensor c(b); c.zero_();
at::Tensor c{b}; c.zero_();
auto c = std::move(b); c.zero_();
auto c = n ? a : b; c.zero_();
b.variable_data().zero_();
b.detach().zero_();
auto f = &at::Tensor::zero_; (b.*f)();
at::zero_(b);
at::native::zero_(b);
at::_ops::zero_::call(b);
at::add_out(b, a, a);
at::add_outf(a, a, 1, b);
b.index_put_({at::indexing::None}, a);
b.select(0, 1) = a[0];
b[0] = a[0];
b[0][1] = a[0][1];
b[0][1] += 1;
b += a;
b.slice(0, 1, 2).copy_(a);
b.narrow(0, 1, 2).fill_(1);
std::copy(a.data_ptr<float>(), a.data_ptr<float>() + 3, b.data_ptr<float>());
std::fill_n(b.data_ptr<float>(), 3, 0.f);
std::for_each(b.data_ptr<float>(), b.data_ptr<float>() + 3, [](float& x) { x = 0; });
std::generate(b.data_ptr<float>(), b.data_ptr<float>() + 3, [] { return 1.f; });
std::iota(b.data_ptr<float>(), b.data_ptr<float>() + 3, 0);
std::sort(b.data_ptr<float>(), b.data_ptr<float>() + 3);
std::reverse(b.data_ptr<float>(), b.data_ptr<float>() + 3);
std::replace(b.data_ptr<float>(), b.data_ptr<float>() + 3, 1.f, 2.f);
std::transform(a.data_ptr<float>(), a.data_ptr<float>() + 3, b.data_ptr<float>(), [](float x) { return x; });
auto acc = b.accessor<float, 1>(); acc[0] = 1;
kernel<<<1, 1>>>(b.packed_accessor32<float, 1>());
float* p = b.data_ptr<float>(); *p++ = 1;
float* p = b.data_ptr<float>(); p[0] += 1;
float* p = b.data_ptr<float>(); ++*p;
float* p = b.data_ptr<float>(); (*p)--;
float* p = b.data_ptr<float>(); *(p + 1) = 2;
float* p = b.data_ptr<float>(); std::swap(p[0], p[1]);
float* p = b.data_ptr<float>(); std::exchange(*p, 1.f);
float* p = b.data_ptr<float>(); float& r = p[0]; r = 1;
float* p = b.data_ptr<float>(); auto& r = *p; r += 1;
float* p = b.data_ptr<float>(); float* q = p + n; q[0] = 1;
float* p; p = b.data_ptr<float>(); p[0] = 1;
float* p = nullptr; if (n) p = b.data_ptr<float>(); if (p) p[0] = 1;
float* p = b.data_ptr<float>(); float** pp = &p; (*pp)[0] = 1;
float* p = b.data_ptr<float>(); for (float* q = p; q != p + 3; ++q) *q = 1;
new (b.data_ptr<float>()) float(1);
*reinterpret_cast<float4*>(b.data_ptr()) = v;
reinterpret_cast<float4*>(b.data_ptr())[0].x = 1;
static_cast<float*>(b.data_ptr())[0] = 1;
((float*)b.data_ptr())[0] = 1;
std::span<float> s(b.data_ptr<float>(), 3); s[0] = 1;
std::span<float> s{b.data_ptr<float>(), 3}; for (auto& x : s) x = 0;
std::vector<float*> ps{b.data_ptr<float>()}; ps[0][0] = 1;
std::array<float*, 2> ps = {a.data_ptr<float>(), b.data_ptr<float>()}; ps[1][0] = 1;
std::vector<float*> ps; ps.push_back(b.data_ptr<float>()); *ps[0] = 1;
std::map<int, float*> ps; ps[1] = b.data_ptr<float>(); ps[1][0] = 1;
Fields q{b.data_ptr<float>(), 3}; q.p[0] = 1;
Fields q; q.p = b.data_ptr<float>(); Fields* r = &q; r->p[0] = 1;
Fields q = {.p = b.data_ptr<float>(), .n = 3}; q.p[0] = 1;
Outer o{{b.data_ptr<float>(), 3}}; o.f.p[0] = 1;
Outer o; o.f.p = b.data_ptr<float>(); Fields f = o.f; f.p[0] = 1;
Fields q[2]; q[1].p = b.data_ptr<float>(); q[1].p[0] = 1;
auto p = b.data_ptr<float>(); [=] { p[0] = 1; }();
auto p = b.data_ptr<float>(); auto f = [p](int i) { p[i] = 1; }; f(1);
auto p = b.data_ptr<float>(); auto f = [q = p](int i) { q[i] = 1; }; f(1);
auto p = b.data_ptr<float>(); at::parallel_for(0, n, 1, [&](int64_t s, int64_t e) { p[s] = 1; });
auto p = b.data_ptr<float>(); std::thread t([&] { p[0] = 1; }); t.join();
auto p = b.data_ptr<float>(); auto t = std::async([&] { p[0] = 1; });
std::thread t(zero, b); t.join();
AT_DISPATCH_ALL_TYPES(b.scalar_type(), "x", [&] { b.data_ptr<scalar_t>()[0] = 1; });
AT_DISPATCH_ALL_TYPES(b.scalar_type(), "x", ([&] { plain<<<1, 1>>>(b.data_ptr<scalar_t>()); }));
switch (n) { case 1: b.zero_(); break; default: break; }
do { b.zero_(); } while (n);
while (n--) { b.zero_(); }
try { b.zero_(); } catch (...) { throw; }
try { f(); } catch (const std::exception& e) { b.zero_(); }
if (auto t = b; t.defined()) t.zero_();
if constexpr (true) { b.zero_(); }
for (int i = 0; i < n; ++i) if (i) b.zero_(); else a.size(0);
label: b.zero_(); if (n) goto label;
apply(zero, b);
apply(&zero, b);
run(zero, b);
run([](at::Tensor t) { t.zero_(); }, b);
run(Zero{}, b);
run(Zero(), b);
pack(a, b);
std::invoke(zero, b);
std::apply(zero, std::make_tuple(b));
void (*f)(at::Tensor) = zero; f(b);
auto f = zero; f(b);
std::function<void(at::Tensor)> f = zero; f(b);
std::vector<void (*)(at::Tensor)> fs{zero}; fs[0](b);
Zero z; z(b);
Zero{}(b);
Base* x = new Derived; x->run(b);
std::unique_ptr<Base> x = std::make_unique<Derived>(); x->run(b);
Derived d; Base& x = d; x.run(b);
SET(b);
BOTH(a, b);
at::Tensor t = b.view({-1}); t.zero_();
at::transpose(b, 0, 1).zero_();
at::squeeze(b).zero_();
b.flatten().zero_();
b.contiguous().zero_();
torch::from_blob(b.data_ptr(), {3}).zero_();
auto t = at::from_blob(b.data_ptr(), {3}); t.fill_(1);
auto v = b.unbind(0); v[0].zero_();
for (auto& t : b.split(1)) t.zero_();
auto t = b.chunk(2); t[1].zero_();
b.storage().mutable_data();
static_cast<float*>(b.storage().data_ptr().get())[0] = 1;
static_cast<float*>(b.unsafeGetTensorImpl()->mutable_data())[0] = 1;
b.mutable_data_ptr<float>()[0] = 1;
std::ref(b).get().zero_();
std::variant<at::Tensor, int> v = b; std::get<at::Tensor>(v).zero_();
std::queue<at::Tensor> q; q.push(b); q.front().zero_();
std::deque<at::Tensor> q; q.push_front(b); q[0].zero_();
std::list<at::Tensor> q{b}; q.front().zero_();
std::set<at::Tensor> q{b}; for (auto t : q) t.zero_();
c10::List<at::Tensor> l; l.push_back(b); l.get(0).zero_();
c10::Dict<std::string, at::Tensor> d; d.insert("x", b); d.at("x").zero_();
c10::IValue iv(b); iv.toTensor().zero_();
std::vector<c10::IValue> stack; stack.push_back(b); stack.back().toTensor().zero_();
intptr_t x = (intptr_t)b.data_ptr(); *(float*)x = 1;
uint64_t x = reinterpret_cast<uint64_t>(b.data_ptr()); reinterpret_cast<float*>(x)[0] = 1;
char* c = (char*)b.data_ptr(); c[0] = 1;
std::memset((char*)b.data_ptr() + 4, 0, 4);
std::memcpy(b.data_ptr(), a.data_ptr(), 4);
union { float* p; long l; } u; u.p = b.data_ptr<float>(); u.p[0] = 1;
late(a, b);
at::native::copy_(b, a);
b.copy_(a).add_(1);
return (void)b.zero_();
b.zero_(), a.size(0);
TORCH_CHECK(b.zero_().defined());
std::atomic_ref<float> r(*b.data_ptr<float>()); r = 1;
std::atomic_ref<float> r(*b.data_ptr<float>()); r.fetch_add(1);
__atomic_fetch_add(b.data_ptr<int>(), 1, 0);
cub::DeviceReduce::Sum(tmp, bytes, a.data_ptr<float>(), b.data_ptr<float>(), 3);
thrust::fill(thrust::device, b.data_ptr<float>(), b.data_ptr<float>() + 3, 0);
thrust::device_ptr<float> p(b.data_ptr<float>()); thrust::fill(p, p + 3, 0);
std::cin >> b.data_ptr<float>()[0];
std::ifstream in("x"); in >> n >> b.data_ptr<float>()[0];
std::atomic_ref<float> r(b.data_ptr<float>()[0]); r = 1;
Eigen::Map<Eigen::VectorXf> m(b.data_ptr<float>(), 4); m.setZero();
_mm256_maskstore_ps(b.data_ptr<float>(), m, v);
_mm512_mask_compressstoreu_ps(b.data_ptr<float>(), m, v);
_mm512_mask_cvtepi32_storeu_epi8(b.data_ptr<float>(), m, v);
_mm_maskmoveu_si128(v, m, (char*)b.data_ptr<float>());
_mm256_sincos_ps(b.data_ptr<float>(), v);
_tile_stored(0, b.data_ptr<float>(), 64);
__riscv_vsseg2e32_v_f32m1x2(b.data_ptr<float>(), v, n);
vec_st(v, 0, b.data_ptr<float>());
vec_xst_len(v, b.data_ptr<float>(), 4);
vendor_act_f16(b.data_ptr<float>(), n);
extern void late(at::Tensor x, at::Tensor y); late(a, b);
(b.*(&at::Tensor::zero_))();
auto m = b.expect_contiguous(); m->zero_();
auto m = b.expect_contiguous(); m->data_ptr<float>()[0] = 1;
at::batch_norm(a, {}, {}, a, b, true, .1, 1e-5, true);
torch::nn::functional::batch_norm(a, a, b);
torch::nn::functional::relu(b, torch::nn::functional::ReLUFuncOptions().inplace(true));
torch::nn::functional::embedding(a, b, torch::nn::functional::EmbeddingFuncOptions().max_norm(1.));
at::rrelu_with_noise(a, b, .1, .2, true);
b.squeeze(0) = a;
b.permute({1, 0}) = a;
b.movedim(0, 1) = a;
at::sort_out(x, b, a);
at::sort_outf(a, 0, false, b, x);
at::sum_outf(a, {}, false, {}, b);
at::cpu::add_out(b, a, a);
thrust::device_ptr<float> p = thrust::device_pointer_cast(b.data_ptr<float>()); p[0] = 1;
auto it = thrust::make_zip_iterator(b.data_ptr<float>(), a.data_ptr<float>()); thrust::sort(it, it + 3);
""".strip().split("\n")


def told(folder: Path, number: int, line: str) -> str:
    code = f"{HEAD}void op(at::Tensor a, at::Tensor b) {{ int n = 1; {line} float x0 = a.data_ptr<float>()[0]; }}\n"
    inner = folder / str(number)
    inner.mkdir()
    return trees.answers(inner, f"{code}void late(at::Tensor x, at::Tensor y) {{ y.zero_(); }}\n")["b"]


def test_a_write_is_never_called_a_read(tmp_path: Path) -> None:
    found = {line: told(tmp_path, number, line) for number, line in enumerate(WRITES)}
    assert [line for line, answer in found.items() if answer == "read only"] == []
    assert sum(answer == "written" for answer in found.values()) >= FOLLOWED
