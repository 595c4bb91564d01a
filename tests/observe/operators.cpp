// Operators that lie about what they do, each in its own way, and honest ones that look like them. Raw stores, as kernels make.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <map>
#include <thread>

using at::Tensor;

namespace {

float* f(const Tensor& t) { return t.data_ptr<float>(); }

void twice(const Tensor& x, const Tensor& out) {
  Tensor dense = x.contiguous();
  auto* from = f(dense);
  auto width = out.dim() ? out.size(-1) : 1;
  auto step = out.dim() > 1 ? out.stride(0) : 0, next = out.dim() ? out.stride(-1) : 1;
  for (int64_t i = 0; i < dense.numel(); i++) f(out)[i / width * step + i % width * next] = 2 * from[i];
}

Tensor twice_returned(const Tensor& x, const Tensor& out) { twice(x, out); return out; }

void two(const Tensor& x, const Tensor& o0, const Tensor& o1) { twice(x, o0); twice(x, o1); }

void each(const Tensor& x, at::TensorList outs) { for (const auto& out : outs) twice(x, out); }

Tensor perhaps(const Tensor& x, const std::optional<Tensor>& out) {
  if (!out) return x * 2;
  twice(x, *out);
  return *out;
}

void one_byte(const Tensor& x) { x.data_ptr<uint8_t>()[x.numel() / 2] ^= 1; }

void swap_ends(const Tensor& x) { std::swap(f(x)[0], f(x)[x.numel() - 1]); }

void negate_two(const Tensor& x) { for (int i = 0; i < 2; i++) x.data_ptr<double>()[i] *= -1; }

void bits(const Tensor& x) { reinterpret_cast<uint32_t*>(x.data_ptr())[0] ^= 1u; }  // another NaN, or the other zero

void when(const Tensor& x, bool write) { if (write) f(x)[0] += 1; }

void beside(const Tensor& x, const Tensor& out, int64_t where) { twice(x, out); f(out)[where] = -1; }

Tensor as_it_is(const Tensor& x) { return x; }

Tensor tail(const Tensor& x) { return x.slice(0, 1); }

std::tuple<Tensor, Tensor> with_input(const Tensor& x) { return {x + 1, x.view(-1)}; }

std::tuple<Tensor, Tensor> twins(const Tensor& x) { Tensor y = x + 1; return {y, y.view(-1)}; }

Tensor kept(const Tensor& x) {
  static Tensor* buffer = new Tensor(at::empty_like(x));
  return buffer->copy_(x * 3);
}

Tensor ring(const Tensor& x) {
  static auto* buffers = new std::vector<Tensor>;
  static int turn = 0;
  while (buffers->size() < 4) buffers->push_back(at::empty_like(x));
  return (*buffers)[turn++ % 4].copy_(x * 3);
}

Tensor kept_blob(const Tensor& x) {
  static float memory[64];
  Tensor made = at::from_blob(memory, {x.numel()}, x.options());
  return made.copy_(x.view(-1) * 3);
}

std::tuple<Tensor, Tensor> kept_second(const Tensor& x) { static Tensor* b = new Tensor(at::empty_like(x)); return {x + 1, b->copy_(x)}; }

Tensor kept_by_shape(const Tensor& x) {
  static auto* buffers = new std::map<int64_t, Tensor>;
  if (!buffers->count(x.numel())) (*buffers)[x.numel()] = at::empty_like(x);
  return (*buffers)[x.numel()].copy_(x);
}

Tensor constant(const Tensor& x) { static Tensor* c = new Tensor(at::ones(4)); return *c; }

Tensor writes_last(const Tensor& x) {
  static Tensor* last = new Tensor;
  if (last->defined()) f(*last)[0] += 1;
  *last = x + 1;
  return *last;
}

void resized(const Tensor& x, const Tensor& out) { const_cast<Tensor&>(out).resize_(x.sizes()).copy_(x); }

void other_storage(const Tensor& x, const Tensor& out) { const_cast<Tensor&>(out).set_(x.clone()); }

void by_a_thread(const Tensor& x, const Tensor& out) { std::thread([&] { twice(x, out); }).join(); }

std::vector<Tensor> kept_in_list(const Tensor& x) { static Tensor* b = new Tensor(at::empty_like(x)); return {x + 1, b->copy_(x)}; }

// Honest ones.
void nothing_new(const Tensor& x) { float* p = f(x); for (int64_t i = 0; i < x.numel(); i++) p[i] = p[i] + 0.0f; }

Tensor scratch(const Tensor& x) {
  static Tensor* work = new Tensor(at::zeros({64}));
  f(*work)[0] += 1;  // its own, never handed out
  return x + 1;
}

Tensor frees_and_takes(const Tensor& x) {
  { Tensor gone = at::full_like(x, 7); }
  return at::empty_like(x).copy_(x * 2);
}

std::tuple<Tensor, Tensor, Tensor> chunks(const Tensor& x) {
  auto parts = (x + 1).view({-1, 3}).unbind(1);  // bytes of one allocation, none of them shared
  return {parts[0], parts[1], parts[2]};
}

Tensor declared_view(const Tensor& x) { return x.slice(0, 1); }

int64_t count(const Tensor& x) { return x.numel(); }

std::vector<Tensor> several(const Tensor& x) { return {x + 1, x + 2}; }

Tensor positive(const Tensor& x) { return x.masked_select(x > 0); }

Tensor refuses(const Tensor& x) { TORCH_CHECK(false, "never"); }

Tensor random_like(const Tensor& x) { return at::rand_like(x); }

void random_in_place(const Tensor& x) { x.uniform_(); }

Tensor sum_of(const Tensor& a, const Tensor& b) { return a + b; }

}  // namespace

// For the CPU alone, as real ones are: torch's modes see the operators, and no fake reaches a kernel.
#define KERNEL(function) torch::dispatch(c10::DispatchKey::CPU, TORCH_FN(function))

TORCH_LIBRARY(observed_liars, m) {
  m.def("out_void(Tensor x, Tensor out) -> ()", KERNEL(twice));
  m.def("out_returned(Tensor x, Tensor out) -> Tensor", KERNEL(twice_returned));
  m.def("out_declared_returned_as_new(Tensor x, Tensor(a!) out) -> Tensor", KERNEL(twice_returned));
  m.def("partly(Tensor x, Tensor(a!) o0, Tensor o1) -> ()", KERNEL(two));
  m.def("the_other(Tensor(a!) x, Tensor out) -> ()", KERNEL(twice));
  m.def("in_list(Tensor x, Tensor[] outs) -> ()", KERNEL(each));
  m.def("optional(Tensor x, Tensor? out=None) -> Tensor", KERNEL(perhaps));
  m.def("keyword(Tensor x, *, Tensor out) -> ()", KERNEL(twice));
  m.def("strided(Tensor x, Tensor out) -> ()", KERNEL(twice));
  m.def("one_byte(Tensor x) -> ()", KERNEL(one_byte));
  m.def("swap_ends(Tensor x) -> ()", KERNEL(swap_ends));
  m.def("negate_two(Tensor x) -> ()", KERNEL(negate_two));
  m.def("other_nan(Tensor x) -> ()", KERNEL(bits));
  m.def("other_zero(Tensor x) -> ()", KERNEL(bits));
  m.def("when(Tensor x, bool write) -> ()", KERNEL(when));
  m.def("past_the_end(Tensor x, Tensor(a!) out, int where) -> ()", KERNEL(beside));
  m.def("before_the_start(Tensor x, Tensor(a!) out, int where) -> ()", KERNEL(beside));
  m.def("as_it_is(Tensor x) -> Tensor", KERNEL(as_it_is));
  m.def("tail(Tensor x) -> Tensor", KERNEL(tail));
  m.def("with_input(Tensor x) -> (Tensor, Tensor)", KERNEL(with_input));
  m.def("twins(Tensor x) -> (Tensor, Tensor)", KERNEL(twins));
  m.def("kept(Tensor x) -> Tensor", KERNEL(kept));
  m.def("ring(Tensor x) -> Tensor", KERNEL(ring));
  m.def("kept_blob(Tensor x) -> Tensor", KERNEL(kept_blob));
  m.def("kept_second(Tensor x) -> (Tensor, Tensor)", KERNEL(kept_second));
  m.def("kept_by_shape(Tensor x) -> Tensor", KERNEL(kept_by_shape));
  m.def("kept_in_list(Tensor x) -> Tensor[]", KERNEL(kept_in_list));
  m.def("constant(Tensor x) -> Tensor", KERNEL(constant));
  m.def("writes_last(Tensor x) -> Tensor", KERNEL(writes_last));
  m.def("resized(Tensor x, Tensor out) -> ()", KERNEL(resized));
  m.def("other_storage(Tensor x, Tensor out) -> ()", KERNEL(other_storage));
  m.def("by_a_thread(Tensor x, Tensor out) -> ()", KERNEL(by_a_thread));
  m.def("large(Tensor x) -> ()", KERNEL(swap_ends));
}

TORCH_LIBRARY(observed_honest, m) {
  m.def("out_void(Tensor x, Tensor(a!) out) -> ()", KERNEL(twice));
  m.def("out_returned(Tensor x, Tensor(a!) out) -> Tensor(a!)", KERNEL(twice_returned));
  m.def("two(Tensor x, Tensor(a!) o0, Tensor(b!) o1) -> ()", KERNEL(two));
  m.def("in_list(Tensor x, Tensor(a!)[] outs) -> ()", KERNEL(each));
  m.def("keyword(Tensor x, *, Tensor(a!) out) -> ()", KERNEL(twice));
  m.def("gaps(Tensor x, Tensor(a!) out) -> ()", KERNEL(twice));
  m.def("part_of_an_arena(Tensor x, Tensor(a!) out) -> ()", KERNEL(twice));
  m.def("from_threads(Tensor x, Tensor(a!) out) -> ()", KERNEL(twice));
  m.def("nothing_new(Tensor(a!) x) -> ()", KERNEL(nothing_new));
  m.def("scratch(Tensor x) -> Tensor", KERNEL(scratch));
  m.def("frees_and_takes(Tensor x) -> Tensor", KERNEL(frees_and_takes));
  m.def("chunks(Tensor x) -> (Tensor, Tensor, Tensor)", KERNEL(chunks));
  m.def("declared_view(Tensor(a) x) -> Tensor(a)", KERNEL(declared_view));
  m.def("count(Tensor x) -> int", KERNEL(count));
  m.def("several(Tensor x) -> Tensor[]", KERNEL(several));
  m.def("positive(Tensor x) -> Tensor", KERNEL(positive));
  m.def("refuses(Tensor x) -> Tensor", KERNEL(refuses));
  m.def("random_like(Tensor x) -> Tensor", KERNEL(random_like));
  m.def("random_in_place(Tensor(a!) x) -> ()", KERNEL(random_in_place));
  m.def("aliased_inputs(Tensor a, Tensor b) -> Tensor", KERNEL(sum_of));
  m.def("input_is_output(Tensor x, Tensor(a!) out) -> ()", KERNEL(twice));
  m.def("empty(Tensor x, Tensor(a!) out) -> ()", KERNEL(twice));
  m.def("resized(Tensor x, Tensor(a!) out) -> ()", KERNEL(resized));
  m.def("by_a_thread(Tensor x, Tensor(a!) out) -> ()", KERNEL(by_a_thread));
  m.def("expanded(Tensor a, Tensor b) -> Tensor", KERNEL(sum_of));
  m.def("holder_writes(Tensor x) -> Tensor", KERNEL(scratch));
  m.def("inference(Tensor x) -> Tensor", KERNEL(frees_and_takes));
  m.def("large(Tensor a, Tensor b) -> Tensor", KERNEL(sum_of));
}
