// sycl::queue, handler and event. A command has ended when its submission returns, so that events say nothing new.
#pragma once
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

#include "accessor.hpp"
#include "device.hpp"
#include "nd_item.hpp"

namespace sycl {

class event {
 public:
  void wait() const {}
  void wait_and_throw() const {}
  static void wait(const std::vector<event>&) {}
  static void wait_and_throw(const std::vector<event>&) {}
  template <class Fact>
  uint64_t get_profiling_info() const { return 0; }
};

class handler {
 public:
  void depends_on(const event&) {}
  void depends_on(const std::vector<event>&) {}

  template <class Name = void, int D, class Kernel>
  void parallel_for(nd_range<D> size, Kernel kernel) {
    run<Kernel>(split(size), kernel, [](const void* k) { (*static_cast<const Kernel*>(k))(nd_item<D>()); });
  }
  template <class Name = void, int D, class Properties, class Kernel>
  void parallel_for(nd_range<D> size, Properties, Kernel kernel) { parallel_for<Name>(size, kernel); }

  // Without a group size each work-item is a group of its own: nothing can depend on more.
  template <class Name = void, int D, class Kernel>
  void parallel_for(range<D> size, Kernel kernel) {
    struct Sized {
      Kernel kernel;
      range<D> size;
    };
    const Sized sized{kernel, size};
    esimd_host::Launch launch = whole(size.size());
    run<Kernel>(launch, sized, [](const void* data) ESIMD_HOST_REGISTERS {
      const auto& made = *static_cast<const Sized*>(data);
      id<D> position;
      size_t linear = esimd_host::current->group->linear;
      for (int i = D - 1; i >= 0; --i) {
        position[i] = linear % made.size[i];
        linear /= made.size[i];
      }
      if constexpr (std::is_invocable_v<const Kernel&, id<D>>) made.kernel(position);
      else made.kernel(item<D>(position, made.size));
    });
  }
  template <class Name = void, class Kernel, class = std::enable_if_t<!std::is_base_of_v<range<1>, Kernel>>>
  void parallel_for(size_t size, Kernel kernel) { parallel_for<Name>(range<1>(size), kernel); }

  template <class Name = void, class Kernel>
  void single_task(Kernel kernel) {
    run<Kernel>(whole(1), kernel, [](const void* k) { (*static_cast<const Kernel*>(k))(); });
  }

  void memset(void* data, int value, size_t bytes) { std::memset(data, value, bytes); }
  void memcpy(void* to, const void* from, size_t bytes) { std::memmove(to, from, bytes); }
  template <class T>
  void copy(const T* from, T* to, size_t count) { std::memmove(to, from, count * sizeof(T)); }
  template <class T>
  void fill(void* data, const T& value, size_t count) {
    for (size_t i = 0; i < count; ++i) static_cast<T*>(data)[i] = value;
  }

  size_t local(size_t bytes) {
    const size_t offset = local_bytes_;
    local_bytes_ += (bytes + 63) / 64 * 64;
    return offset;
  }

 private:
  static esimd_host::Launch whole(size_t groups) { return {{1, 1, groups}, {1, 1, 1}, 0, nullptr, nullptr, 0, ""}; }

  template <int D>
  static esimd_host::Launch split(nd_range<D> size) {
    esimd_host::Launch launch = whole(1);
    for (int i = 0; i < D; ++i) {
      const size_t global = size.get_global_range()[i], local = size.get_local_range()[i];
      if (local == 0 || global % local != 0) {
        throw exception("nd_range: the global size " + std::to_string(global) + " is not a multiple of the local size " +
                        std::to_string(local));
      }
      launch.groups[3 - D + i] = global / local;
      launch.locals[3 - D + i] = local;
    }
    if (launch.locals[0] * launch.locals[1] * launch.locals[2] > 1024) {
      throw exception("nd_range: a work-group of more than 1024 work-items, which no Xe2 device takes");
    }
    return launch;
  }

  template <class Kernel, class Object>
  void run(esimd_host::Launch launch, const Object& object, void (*body)(const void*)) {
    launch.local_bytes = local_bytes_;
    launch.body = body;
    launch.kernel = &object;
    launch.kernel_bytes = sizeof(Object);
    launch.name = typeid(Kernel).name();
    esimd_host::launch(launch);
  }

  size_t local_bytes_ = 0;
};

template <class T, int D>
local_accessor<T, D>::local_accessor(range<D> size, handler& handler)
    : size_(size), offset_(handler.local(size.size() * sizeof(T))) {}

class queue {
 public:
  queue() = default;
  // One device, in order, that reports what goes wrong at once: what else is asked of a queue changes nothing.
  template <class... Asked, class = std::enable_if_t<!(std::is_same_v<std::decay_t<Asked>, queue> || ...)>>
  explicit queue(const Asked&...) {}
  template <class... Asked>
  queue(const context&, const Asked&...) {}

  device get_device() const { return {}; }
  context get_context() const { return {}; }
  backend get_backend() const { return device().get_backend(); }
  bool is_in_order() const { return true; }
  template <class Property>
  bool has_property() const { return std::is_same_v<Property, property::queue::in_order>; }
  void throw_asynchronous() const {}

  template <class Commands>
  event submit(Commands&& commands) {
    handler made;
    commands(made);
    return {};
  }
  template <class Name = void, int D, class Kernel>
  event parallel_for(nd_range<D> size, Kernel kernel) { return submit([&](handler& h) { h.parallel_for<Name>(size, kernel); }); }
  template <class Name = void, int D, class Kernel>
  event parallel_for(range<D> size, Kernel kernel) { return submit([&](handler& h) { h.parallel_for<Name>(size, kernel); }); }
  template <class Name = void, class Kernel, class = std::enable_if_t<!std::is_base_of_v<range<1>, Kernel>>>
  event parallel_for(size_t size, Kernel kernel) { return parallel_for<Name>(range<1>(size), kernel); }
  template <class T>
  event copy(const T* from, T* to, size_t count) { return submit([&](handler& h) { h.copy(from, to, count); }); }
  template <class Name = void, class Kernel>
  event single_task(Kernel kernel) { return submit([&](handler& h) { h.single_task<Name>(kernel); }); }
  event memset(void* data, int value, size_t bytes) { return std::memset(data, value, bytes), event(); }
  event memcpy(void* to, const void* from, size_t bytes) { return std::memmove(to, from, bytes), event(); }
  template <class T>
  event fill(void* data, const T& value, size_t count) { return submit([&](handler& h) { h.fill(data, value, count); }); }
  void wait() const {}
  void wait_and_throw() const {}
  friend bool operator==(const queue&, const queue&) { return true; }
  friend bool operator!=(const queue&, const queue&) { return false; }
};

}  // namespace sycl
