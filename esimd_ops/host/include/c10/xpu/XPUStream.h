// Stands in for torch's XPU streams: one queue, whose commands have ended when they were submitted.
#pragma once
#include <cstdint>
#include <sycl/sycl.hpp>

namespace c10::xpu {

class XPUStream {
 public:
  sycl::queue& queue() const {
    static sycl::queue only;
    return only;
  }
  void synchronize() const {}
  operator sycl::queue&() const { return queue(); }
};

inline XPUStream getCurrentXPUStream(int = -1) { return {}; }
inline XPUStream getDefaultXPUStream(int = -1) { return {}; }
inline XPUStream getStreamFromPool(bool = false, int = -1) { return {}; }

}  // namespace c10::xpu

namespace at::xpu {
using c10::xpu::getCurrentXPUStream;
using c10::xpu::XPUStream;
}  // namespace at::xpu
