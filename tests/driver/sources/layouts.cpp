// Kernel objects of which the two sides see the same, and others of which they do not: of each its size is the same.
#include <array>
#include <sycl/sycl.hpp>
#ifdef __SYCL_DEVICE_ONLY__
#define SEEN(by_device, by_host) by_device
#else
#define SEEN(by_device, by_host) by_host
#endif

struct Wrong { SEEN(int a; float b;, float b; int a;) };
struct Same { int a; float b; };
struct Outer { char c; Wrong in; };
struct Sized { unsigned a : SEEN(4, 5); int : 0; int b; };
struct Inside { unsigned a : 4; SEEN(unsigned, int) b : 4; };
struct Packed { unsigned a : 4, : 2, b : 9; int : 0; bool c : 1; };
union Other { SEEN(int i; float f;, int i; unsigned f;) };
union Either { SEEN(float f; int i[1];, float f; int i[1];) };
enum class Mode : int { fast, slow };
using Number = SEEN(float, decltype(1.0f));

template <class T> struct Fill {
  float* x;
  SEEN(T v; int w;, int w; T v;)
  void operator()() const { x[0] = v + w; }
};
template <class T> struct Right {
  float* x;
  T v;
  void operator()() const { x[0] = v; }
};

template <class T> void launch(sycl::queue& q, float* x, T v) {
  q.single_task([=] { x[0] = v; });  // SAME launch, of two types at one place
}

void differ(sycl::queue& q, float* x, Wrong w, Outer o, SEEN(unsigned, int) n, SEEN(long, float*) p,
            std::array<SEEN(float, int), 4> a, Sized z, Inside i, Other u) {
  q.single_task([=] { x[0] = w.a + w.b; });  // DIFFERS a struct's members
  q.single_task([=] { x[0] = o.in.a; });  // DIFFERS a nested struct's
  q.single_task([=] { x[0] = n; });  // DIFFERS a sign
  q.single_task([=] { x[0] = long(p); });  // DIFFERS an address
  q.single_task([=] { x[0] = a[1]; });  // DIFFERS an array's elements
  q.single_task<class Named>([=] { x[0] = w.a; });  // DIFFERS a kernel with a name
  q.parallel_for(sycl::range<1>(8), [=](sycl::item<1>) { x[0] = w.a; });  // DIFFERS a range
  q.single_task(Fill<float>{x, 1, 1});
  q.single_task([=] { x[0] = z.a + z.b; });  // DIFFERS how many bits a field has
  q.single_task([=] { x[0] = i.a + i.b; });  // DIFFERS the sign of a field that does not begin a byte
  q.single_task([=] { x[0] = u.f; });  // DIFFERS not the first member of a union
}

void same(sycl::queue& q, float* x, Same s, Either e, Mode m, Number n, sycl::half h, sycl::ext::oneapi::bfloat16 b,
          sycl::float4 f, std::array<float, 4> a, Packed p) {
  launch(q, x, 1.0f);
  launch(q, x, 1);
  q.single_task([=] { x[0] = s.a + s.b + e.f + n + (m == Mode::fast); });  // SAME
  q.single_task([=] { x[0] = h + b + f[0] + a[1]; });  // SAME
  q.single_task([=] { x[0] = p.a + p.b + p.c; });  // SAME
  q.single_task(Right<float>{x, 1});
  q.submit([&](sycl::handler& handler) {
    sycl::local_accessor<float, 1> local(64, handler);
    handler.parallel_for(sycl::nd_range<1>(64, 64), [=](sycl::nd_item<1>) { local[0] = x[0] = s.a; });  // SAME
  });
}
