// One kernel of each kind that real trees have; each part counts what is not what C++ computes itself.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <sycl/sycl.hpp>

namespace syclex = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::bfloat16;

constexpr int kItems = 64;

struct __declspec(align(8)) Pair {  // as icpx takes it everywhere
  float* place;
  int16_t step;
};

struct Nested {
  char tag;
  Pair pair;
  double plus;
};

struct Scale {
  float* x;
  float by;
  int n;
  short pad;
  double plus;
  void operator()(sycl::nd_item<1> item) const {
    const int i = item.get_global_id(0);
    if (i < n) x[i] = x[i] * by + float(plus) + pad;
  }
};

struct Rows {
  int* several[2];
  double plus;
};

struct Shared : Rows {  // taken apart for its accessor: its addresses become structures of their own
  const int* from;
  char tag;
  int* to;
  sycl::local_accessor<int, 1> tile;
};

struct Inherited : Shared {
  int* unused;
  Nested nested;
  void operator()(sycl::nd_item<1> item) const {
    const int i = item.get_global_id(0), l = item.get_local_id(0);
    tile[l] = from[i] + tag;
    sycl::group_barrier(item.get_group());
    to[i] = tile[item.get_local_range(0) - 1 - l];
    several[0][i] = several[1][i] = static_cast<int>(plus);
    nested.pair.place[i * nested.pair.step] = static_cast<float>(nested.plus) + nested.tag;
  }
};

template <int kPlus>
void named(sycl::queue& queue, float* x) {
  queue.submit([&](sycl::handler& handler) {
    handler.parallel_for<class Named>(sycl::range<1>(kItems - 3), [=](sycl::id<1> i) { x[i] += kPlus; });
  });
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclex::sub_group_size<16>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclex::nd_range_kernel<1>))
void as_function(const sycl::half* from, T* to, int64_t n) {
  const auto i = sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_id(0);
  if (int64_t(i) < n) to[i] = T(from[i]) + 1;
}
template void as_function<float>(const sycl::half*, float*, int64_t);

// In a function that is neither inline nor a template: here g++ and clang name closures in ways of their own.
void lambdas(sycl::queue& queue, float* x, int n) {
  const float a = 2.5f;
  const long off = 3;
  const char c = 1;
  queue.submit([&](sycl::handler& handler) {
    handler.parallel_for(sycl::nd_range<1>(n, 16), [=](sycl::nd_item<1> item) {
      const int i = item.get_global_id(0);
      x[i] = a * i + off + c;
    });
  });
  queue.submit([&](sycl::handler& handler) {
    handler.parallel_for(sycl::nd_range<1>(n, 16), Scale{x, 2.0f, n, 7, 0.5});
  });
  queue.single_task([=] {});
}

void accessors(sycl::queue& queue, sycl::buffer<int, 1>& buffer, Nested nested) {
  queue.submit([&](sycl::handler& handler) {
    sycl::local_accessor<float, 2> tile({4, 4}, handler);
    sycl::accessor numbers(buffer, handler, sycl::read_write);
    handler.parallel_for(sycl::nd_range<1>(kItems, 16), [=](sycl::nd_item<1> item) {
      const int i = item.get_global_id(0), l = item.get_local_id(0);
      tile[l / 4][l % 4] = numbers[i];
      sycl::group_barrier(item.get_group());
      numbers[i] = static_cast<int>(tile[3 - l / 4][3 - l % 4]);
      nested.pair.place[i * nested.pair.step] = static_cast<float>(nested.plus) + nested.tag;
    });
  });
}

void inherited(sycl::queue& queue, int* numbers, Nested nested) {
  queue.submit([&](sycl::handler& handler) {
    const sycl::local_accessor<int, 1> tile(16, handler);
    const Shared shared{{{numbers + 2 * kItems, numbers + 3 * kItems}, 9.5}, numbers, 5, numbers + kItems, tile};
    handler.parallel_for(sycl::nd_range<1>(kItems, 16), Inherited{shared, nullptr, nested});
  });
}

void library(sycl::queue& queue, float* x, double* d, uint16_t* narrow) {
  queue.parallel_for(sycl::range<1>(kItems), [=](sycl::id<1> i) {
    const float v = x[i];
    narrow[i] = sycl::bit_cast<uint16_t>(bfloat16(v));
    x[i] = static_cast<float>(bfloat16(v)) + std::sin(v) + sqrtf(v);
    d[i] = std::pow(double(v), 1.5) + std::fmod(double(v), 0.75);
  });
}

int main() {
  sycl::queue queue{sycl::property::queue::in_order{}};
  auto* x = sycl::malloc_shared<float>(4 * kItems, queue);
  int bad = 0;
  const auto expect = [&](const char* what, double found, double wanted, double tolerance = 0) {
    if (!(std::abs(found - wanted) <= tolerance)) {
      ++bad;
      std::printf("%s: expected %g, found %g\n", what, wanted, found);
    }
  };

  lambdas(queue, x, kItems);
  named<64>(queue, x);
  queue.wait();
  for (int i = 0; i < kItems; ++i)
    expect("lambdas", x[i], (2.5f * i + 3 + 1) * 2.0f + 0.5f + 7 + (i < kItems - 3 ? 64 : 0));

  auto* half = sycl::malloc_shared<sycl::half>(kItems, queue);
  for (int i = 0; i < kItems; ++i) half[i] = sycl::half(i / 4.0f);
  const auto id = syclex::get_kernel_id<as_function<float>>();
  const auto kernel =
      sycl::get_kernel_bundle<sycl::bundle_state::executable>(queue.get_context(), {id}).get_kernel(id);
  queue.submit([&](sycl::handler& handler) {
    handler.set_arg(0, half);
    handler.set_arg(1, x);
    handler.set_arg(2, int64_t(kItems));
    handler.parallel_for(sycl::nd_range<1>(kItems, 16), kernel);
  });
  queue.wait();
  for (int i = 0; i < kItems; ++i) expect("function", x[i], i / 4.0f + 1);

  std::vector<int> numbers(kItems);
  for (int i = 0; i < kItems; ++i) numbers[i] = i;
  {
    sycl::buffer<int, 1> buffer(numbers.data(), kItems);
    accessors(queue, buffer, {5, {x, 2}, 0.25});
  }
  for (int i = 0; i < kItems; ++i) {
    expect("accessor", numbers[i], i / 16 * 16 + 15 - i % 16);
    expect("nested", x[2 * i], 5.25);
  }

  auto* handed = sycl::malloc_shared<int>(4 * kItems, queue);
  for (int i = 0; i < 4 * kItems; ++i) handed[i] = i < kItems ? 7 * i : -1;
  inherited(queue, handed, {5, {x, 2}, 0.25});
  queue.wait();
  for (int i = 0; i < kItems; ++i) {
    expect("inherited", handed[kItems + i], 7 * (i / 16 * 16 + 15 - i % 16) + 5);
    expect("array", handed[2 * kItems + i] + handed[3 * kItems + i], 18);
    expect("nested of a base", x[2 * i], 5.25);
  }

  auto* d = sycl::malloc_shared<double>(kItems, queue);
  auto* narrow = sycl::malloc_shared<uint16_t>(kItems, queue);
  for (int i = 0; i < kItems; ++i) x[i] = 0.3f * i + 1 / 256.0f;
  library(queue, x, d, narrow);
  queue.wait();
  for (int i = 0; i < kItems; ++i) {
    const float v = 0.3f * i + 1 / 256.0f;
    const bfloat16 wanted(v);  // on the host, by SYCL's own header
    expect("bfloat16", narrow[i], sycl::bit_cast<uint16_t>(wanted));
    expect("float", x[i], float(wanted) + std::sin(v) + std::sqrt(v), 1e-5);
    expect("double", d[i], std::pow(double(v), 1.5) + std::fmod(double(v), 0.75), 1e-9);
  }
  std::printf("%d wrong\n", bad);
  std::fflush(stdout);
  std::_Exit(bad != 0);
}
