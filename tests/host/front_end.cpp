// Compiles a SYCL source with the real DPC++ front end that the SYCL runtime brings: front_end SOURCE [HEADER…].
#include <fstream>
#include <iostream>
#include <sstream>
#include <sycl/sycl.hpp>

namespace syclex = sycl::ext::oneapi::experimental;

namespace {
std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}
}  // namespace

int main(int count, char** arguments) {
  // Never destroyed: libsycl's own state may be gone by then.
  auto& queue = *new sycl::queue(sycl::cpu_selector_v);
  syclex::include_files headers;
  for (int i = 2; i < count; ++i) {
    const std::string path = arguments[i];
    headers.add(path.substr(path.rfind('/') + 1), contents(path));
  }
  std::string log;
  try {
    auto source = syclex::create_kernel_bundle_from_source(queue.get_context(), syclex::source_language::sycl,
                                                           contents(arguments[1]), syclex::properties{headers});
    const std::vector<std::string> options{"-fno-sycl-device-lib=all", "-Wno-deprecated-declarations"};
    auto built = syclex::build(source, syclex::properties{syclex::build_options{options}, syclex::save_log{&log}});
  } catch (const sycl::exception& error) {
    // The front end is through when the CPU device says that it runs no ESIMD code.
    const std::string words = std::string(error.what()) + log;
    if (words.find("Unrecognized build options: -vc-codegen") != std::string::npos) return 0;
    std::cerr << error.what() << "\n" << log << "\n";
    return 1;
  }
  std::cout << log;
  return 0;
}
