#include "runtime.h"

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <list>
#include <mutex>
#include <sycl/sycl.hpp>
#include <unordered_map>

#ifdef ESIMD_OPS_AHEAD_OF_TIME
#include "aot.h"
#else
#include "kernel_sources.h"
#endif

namespace esimd_ops {

namespace syclex = sycl::ext::oneapi::experimental;

namespace {

// A kernel as it runs in one context: the CPU device's, or that of a card's queue.
struct Built {
  sycl::context context;
  sycl::kernel sycl_kernel;
  size_t arguments;
  double seconds;
};

sycl::device find_cpu_device() {
  for (const sycl::device& device : sycl::device::get_devices(sycl::info::device_type::cpu)) {
    if (device.has(sycl::aspect::usm_system_allocations) && device.has(sycl::aspect::fp16)) return device;
  }
  TORCH_CHECK(false,
              "esimd_ops: no SYCL CPU device with fp16 and shared system memory was found. CPU tensors are worked on by "
              "the device of the PyPI package intel-opencl-rt: install it, or point OCL_ICD_FILENAMES at its "
              "libintelocl.so before the first operator runs (esimd_ops.native.load() does).");
}

// SYCL objects are never destroyed: libsycl's own state may be gone by the time static destructors run, and the process
// would end with a crash after all its work is done.
sycl::queue& cpu_queue() {
  static auto& queue = *new sycl::queue(find_cpu_device());
  return queue;
}

#ifdef ESIMD_OPS_AHEAD_OF_TIME

std::map<std::string, sycl::kernel_id, std::less<>>& aot_kernels() {
  static auto& kernels = *new std::map<std::string, sycl::kernel_id, std::less<>>;
  return kernels;
}

// Machine code of the library where it has some for the device, else its SPIR-V, as on the CPU device.
sycl::kernel build_kernel(std::string_view name, const sycl::queue& queue) {
  const auto found = aot_kernels().find(name);
  TORCH_CHECK(found != aot_kernels().end(), "esimd_ops: kernel ", std::string(name),
              " was not built into this library");
  return sycl::get_kernel_bundle<sycl::bundle_state::executable>(queue.get_context(), {queue.get_device()},
                                                                 {found->second})
      .get_kernel(found->second);
}

#else

std::string_view source_of(std::string_view family) {
  const std::string path = std::string(family) + "/" + std::string(family) + ".sycl";
  for (const KernelSource& source : kernel_sources()) {
    if (source.path == path) return source.text;
  }
  TORCH_CHECK(false, "esimd_ops: no kernel family '", std::string(family), "' was built into this library");
}

sycl::kernel build_kernel(std::string_view name, const sycl::queue& queue) {
  const size_t slash = name.find('/');
  TORCH_INTERNAL_ASSERT(slash != std::string_view::npos, "kernel names are family/function, found ", std::string(name));
  const std::string function(name.substr(slash + 1));

  syclex::include_files headers;
  for (const KernelSource& source : kernel_sources()) {
    if (source.path.substr(source.path.size() - 2) == ".h") {
      headers.add(std::string(source.path), std::string(source.text));
    }
  }
  try {
    auto source = syclex::create_kernel_bundle_from_source(
        queue.get_context(), syclex::source_language::sycl, std::string(source_of(name.substr(0, slash))),
        syclex::properties{headers});
    // The runtime wheels carry no libsycl-crt.bc, which would be linked by default.
    const std::vector<std::string> options{"-fno-sycl-device-lib=all"};
    auto bundle = syclex::build(
        source, syclex::properties{syclex::build_options{options}, syclex::registered_names{function}});
    return bundle.ext_oneapi_get_kernel(function);
  } catch (const sycl::exception& error) {
    TORCH_CHECK(false, "esimd_ops: kernel ", std::string(name), " could not be built: ", error.what());
  }
}

#endif

// A fork copies the runtime's locks as they are. Between launches they are free and the child may go on; where another
// thread was inside the runtime, the child would wait for ever for a thread that it does not have.
std::atomic<int> calls_in_flight{0};
std::atomic<bool> forked_in_flight{false};

class InFlight {
 public:
  InFlight() {
    static const int registered = pthread_atfork(nullptr, nullptr, [] { forked_in_flight = calls_in_flight > 0; });
    TORCH_CHECK(registered == 0, "esimd_ops: no fork handler could be installed");
    TORCH_CHECK(!forked_in_flight,
                "esimd_ops: this process was forked while another thread of its parent was running an operator, so "
                "the device cannot be used here. Fork before operators run in threads, or start workers with the "
                "'spawn' or 'forkserver' method.");
    ++calls_in_flight;
  }
  ~InFlight() { --calls_in_flight; }
  InFlight(const InFlight&) = delete;
};

struct KernelTable {
  std::mutex mutex;
  std::map<std::string, std::list<Built>, std::less<>> kernels;  // a list: what is found stays where it is
};

KernelTable& kernel_table() {
  static auto& table = *new KernelTable;
  return table;
}

const Built& built(const Kernel& wanted, const sycl::queue& queue) {
  const std::string& name = wanted.name;
  KernelTable& table = kernel_table();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const sycl::context context = queue.get_context();
  std::list<Built>& known = table.kernels[name];
  for (const Built& one : known) {
    if (one.context == context) return one;
  }
  const auto start = std::chrono::steady_clock::now();
  sycl::kernel kernel = build_kernel(name, queue);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  if (wanted.lanes > 1) {  // a driver need not tell them of ESIMD
    const auto lanes = kernel.get_info<sycl::info::kernel_device_specific::compile_sub_group_size>(queue.get_device());
    TORCH_CHECK(lanes == wanted.lanes, "esimd_ops: kernel ", name, " was built for sub-groups of ", lanes,
                " work-items, expected ", wanted.lanes);
  }
  const size_t arguments = kernel.get_info<sycl::info::kernel::num_args>();
  return known.emplace_back(Built{context, std::move(kernel), arguments, elapsed.count()});
}

// What torch runs next on a device goes through the queue behind its current stream: torch's XPU build has SYCL queues
// there. Asked through the device's guard, so that neither its headers nor its libraries are needed.
template <typename Stream>
sycl::queue& queue_behind(const Stream& stream) {
  if constexpr (requires { stream.native_handle(); }) {
    auto* const queue = static_cast<sycl::queue*>(stream.native_handle());
    TORCH_CHECK(queue, "esimd_ops: the current stream of ", stream.device(), " has no SYCL queue behind it");
    TORCH_CHECK(queue->is_in_order(), "esimd_ops: expected the queue behind the current stream of ", stream.device(),
                " to run its work in order, found one that does not");
    return *queue;
  } else {
    TORCH_CHECK(false, "esimd_ops: this torch does not tell the queue behind a stream: tensors on ", stream.device(),
                " need torch 2.11 or newer");
  }
}

c10::Stream current_stream(const at::Tensor& tensor) {
  const c10::Device device = tensor.device();
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

#ifdef ESIMD_OPS_AHEAD_OF_TIME
bool register_aot_kernel(std::string_view name, sycl::kernel_id id) {
  return aot_kernels().emplace(std::string(name), std::move(id)).second;
}
#endif

Queue queue(const at::Tensor& tensor) {
  if (tensor.is_meta()) return {nullptr, false};
  const InFlight call;
  if (tensor.is_cpu()) return {&cpu_queue(), true};
  return {&queue_behind(current_stream(tensor)), false};
}

at::Tensor temporary(const at::Tensor& like, at::IntArrayRef sizes, at::ScalarType dtype) {
  const at::Tensor made = like.new_empty(sizes, like.options().dtype(dtype));
  if (!like.is_meta() && !like.is_cpu()) made.record_stream(current_stream(like));
  return made;
}

bool has_matrix_engines(Queue queue) {
  if (!queue.sycl_queue || queue.waits) return false;  // none, or the CPU's
  const InFlight call;
  static std::mutex mutex;
  static auto& known = *new std::unordered_map<sycl::device, bool>;  // an operator asks up to four times
  const sycl::device device = static_cast<sycl::queue*>(queue.sycl_queue)->get_device();
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [entry, is_new] = known.emplace(device, false);
  if (is_new && device.has(sycl::aspect::ext_intel_esimd) && device.has(sycl::aspect::ext_intel_matrix)) {
    // Alchemist has sub-groups of 8, engines of 8 lanes, and no messages of two dimensions: a compiler writes the kernel
    // for it all the same.
    const auto lanes = device.get_info<sycl::info::device::sub_group_sizes>();
    entry->second = std::find(lanes.begin(), lanes.end(), 8) == lanes.end();
  }
  return entry->second;
}

void launch(Queue queue, Range range, const Kernel& kernel, std::initializer_list<KernelArgument> arguments) {
  if (!queue.sycl_queue || range.groups == 0) return;
  const InFlight call;
  auto& sycl_queue = *static_cast<sycl::queue*>(queue.sycl_queue);
  const Built& ready = built(kernel, sycl_queue);
  TORCH_INTERNAL_ASSERT(arguments.size() == ready.arguments, "kernel ", kernel.name, " takes ", ready.arguments,
                        " arguments, found ", arguments.size());
  try {
    sycl::event done = sycl_queue.submit([&](sycl::handler& handler) {
      int index = 0;
      for (const KernelArgument& argument : arguments) {
        // A backend must know which arguments are addresses; bytes alone are refused.
        if (argument.is_pointer) {
          handler.set_arg(index++, *static_cast<void* const*>(argument.data));
        } else {
          handler.set_arg(index++, syclex::raw_kernel_arg(argument.data, argument.size));
        }
      }
      handler.parallel_for(sycl::nd_range<1>(range.groups * range.group_size, range.group_size), ready.sycl_kernel);
    });
    // On a card what goes wrong later is told where torch waits for the queue, as with its own kernels.
    if (queue.waits) done.wait_and_throw();
  } catch (const sycl::exception& error) {
    TORCH_CHECK(false, "esimd_ops: kernel ", kernel.name, " could not be run: ", error.what());
  }
}

DeviceFacts device_facts() {
  const InFlight call;
  const sycl::device device = cpu_queue().get_device();
  return {
      device.get_info<sycl::info::device::name>(),
      device.get_info<sycl::info::device::driver_version>(),
      device.get_platform().get_info<sycl::info::platform::name>(),
      device.get_info<sycl::info::device::sub_group_sizes>(),
      device.get_info<sycl::info::device::local_mem_size>(),
  };
}

std::map<std::string, double> kernel_facts() {
  KernelTable& table = kernel_table();
  const std::lock_guard<std::mutex> lock(table.mutex);
  std::map<std::string, double> facts;
  for (const auto& [name, contexts] : table.kernels) {
    for (const Built& one : contexts) facts[name] += one.seconds;
  }
  return facts;
}

const char* build_mode() {
#ifdef ESIMD_OPS_AHEAD_OF_TIME
  return "xpu";
#else
  return "host";
#endif
}

}  // namespace esimd_ops
