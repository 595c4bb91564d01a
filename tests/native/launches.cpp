// Records what kernels are launched with: preloaded, it stands between a library and SYCL's runtime, and between a host
// build and its own. A line of JSON for each launch goes to $LAUNCHES: the work-groups and their size, and the arguments.
//
// The functions are those of libsycl.so.8 that SYCL's headers call for a launch (sycl/handler.hpp), by their symbols; no
// header of SYCL is read, so that both kinds of library can be watched by one. With LAUNCHES_ONLY in the environment the
// runtime is told of an empty command in the place of each kernel: of kernels that no device here runs.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

template <int D>
struct Sizes {
  size_t value[D];
};
struct Parameter {
  int kind, info, offset;
};
enum { kAccessor, kValue, kSampler, kPointer };  // kernel_param_kind_t

struct Launch {
  int dimensions = 0;
  bool complete = false;
  Sizes<3> global{}, local{};
  std::string arguments;
};
thread_local Launch now;

// The function that this one stands before; its library may have been loaded for itself alone.
template <typename Function>
Function* next(const char* name, const char* library = "libsycl.so.8") {
  void* found = dlsym(dlopen(library, RTLD_LAZY | RTLD_NOLOAD), name);
  if (!found) std::fprintf(stderr, "launches: %s has no %s\n", library, name), std::abort();
  return reinterpret_cast<Function*>(found);
}

void add(int kind, const void* data, size_t size) {
  char hex[3];
  if (!now.arguments.empty()) now.arguments += ", ";
  now.arguments += kind == kPointer ? "[\"address\", \"" : kind == kValue ? "[\"value\", \"" : "[\"other\", \"";
  for (size_t i = 0; (kind == kPointer || kind == kValue) && i < size; ++i) {
    std::snprintf(hex, sizeof hex, "%02x", static_cast<const unsigned char*>(data)[i]);
    now.arguments += hex;
  }
  now.arguments += "\"]";
}

void write(const char* line) {
  static FILE* file = std::fopen(std::getenv("LAUNCHES"), "a");
  std::fprintf(file, "%s\n", line);
  std::fflush(file);
}

// Range and arguments come in either order; a launch is known when both have.
void launched() {
  if (!now.dimensions || !now.complete) return;
  size_t groups[3] = {1, 1, 1}, locals[3] = {1, 1, 1};
  for (int i = 0; i < now.dimensions; ++i) {  // the last dimension last, as everywhere in SYCL
    locals[3 - now.dimensions + i] = now.local.value[i];
    groups[3 - now.dimensions + i] = now.global.value[i] / now.local.value[i];
  }
  char sizes[160];
  std::snprintf(sizes, sizeof sizes, "{\"groups\": [%zu, %zu, %zu], \"locals\": [%zu, %zu, %zu], \"arguments\": [", groups[0],
                groups[1], groups[2], locals[0], locals[1], locals[2]);
  write((sizes + now.arguments + "]}").c_str());
  now = {};
}

void range(int dimensions, const size_t* global, const size_t* local) {
  now.dimensions = dimensions;
  for (int i = 0; i < dimensions; ++i) now.global.value[i] = global[i], now.local.value[i] = local ? local[i] : 1;
  launched();
}

void all_arguments() {
  now.complete = true;
  launched();
}

}  // namespace

extern "C" {

// What follows belongs to this call of an operator.
void launches_of(const char* label) { write(("{\"of\": \"" + std::string(label) + "\"}").c_str()); }

// Of one, two and three dimensions: a range or an id of D is D numbers.
#define SETTER "_ZN4sycl3_V17handler20setNDRangeDescriptorENS0_5rangeILi"
#define OF(D, Sizes)                                                                      \
  void split##D(void* self, Sizes global, Sizes local, Sizes offset) asm(SETTER #D "EEES3_NS0_2idILi" #D "EEE"); \
  void split##D(void* self, Sizes global, Sizes local, Sizes offset) {                    \
    range(D, global.value, local.value);                                                  \
    next<decltype(split##D)>(SETTER #D "EEES3_NS0_2idILi" #D "EEE")(self, global, local, offset); \
  }                                                                                       \
  void whole##D(void* self, Sizes global, bool groups) asm(SETTER #D "EEEb");             \
  void whole##D(void* self, Sizes global, bool groups) {                                  \
    range(D, global.value, nullptr);                                                      \
    next<decltype(whole##D)>(SETTER #D "EEEb")(self, global, groups);                     \
  }
OF(1, Sizes<1>)
OF(2, Sizes<2>)
OF(3, Sizes<3>)

// A kernel that is given its arguments one by one.
void argument(void* self, int kind, void* data, int size, int index)
    asm("_ZN4sycl3_V17handler6addArgENS0_6detail19kernel_param_kind_tEPvii");
void argument(void* self, int kind, void* data, int size, int index) {
  add(kind, data, size);
  next<decltype(argument)>("_ZN4sycl3_V17handler6addArgENS0_6detail19kernel_param_kind_tEPvii")(self, kind, data, size,
                                                                                               index);
}

void last_argument(void* self) asm("_ZN4sycl3_V17handler18extractArgsAndReqsEv");
void last_argument(void* self) {
  all_arguments();
  next<decltype(last_argument)>("_ZN4sycl3_V17handler18extractArgsAndReqsEv")(self);
}

// A kernel that is an object: its arguments lie in it where the integration header says.
void object(void* self, void* data, int count, Parameter (*parameter)(int), bool esimd, bool special)
    asm("_ZN4sycl3_V17handler13setKernelInfoEPviPFNS0_6detail19kernel_param_desc_tEiEbb");
void object(void* self, void* data, int count, Parameter (*parameter)(int), bool esimd, bool special) {
  for (int i = 0; i < count; ++i) {
    const Parameter found = parameter(i);
    add(found.kind, static_cast<char*>(data) + found.offset, found.info);
  }
  all_arguments();
  next<decltype(object)>("_ZN4sycl3_V17handler13setKernelInfoEPviPFNS0_6detail19kernel_param_desc_tEiEbb")(
      self, data, count, parameter, esimd, special);
}

void type(void* self, int kind) asm("_ZN4sycl3_V17handler7setTypeENS0_6detail6CGTypeE");
void type(void* self, int kind) {
  constexpr int kNone = 0, kKernel = 1;
  if (kind == kKernel && std::getenv("LAUNCHES_ONLY")) kind = kNone;
  next<decltype(type)>("_ZN4sycl3_V17handler7setTypeENS0_6detail6CGTypeE")(self, kind);
}

}  // extern "C"

// The same of a host build: esimd_ops/host/include/esimd_host/runtime.hpp.
namespace esimd_host {
struct Launch {
  size_t groups[3], locals[3];
  size_t local_bytes;
  void (*body)(const void*);
  const void* kernel;
  size_t kernel_bytes;
  const char* name;
};
void launch(const Launch& launch) {
  for (int i = 0; i < 3; ++i) now.local.value[i] = launch.locals[i], now.global.value[i] = launch.groups[i] * launch.locals[i];
  now.dimensions = 3;
  add(kValue, launch.kernel, launch.kernel_bytes);
  all_arguments();
  if (!std::getenv("LAUNCHES_ONLY"))
    next<void(const Launch&)>("_ZN10esimd_host6launchERKNS_6LaunchE", "libesimd_host.so")(launch);
}
}  // namespace esimd_host
