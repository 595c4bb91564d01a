// Compiles one kernel source to SPIR-V with the DPC++ front end that is inside libsycl, and prints what it says.
//
//     front_end SOURCE [OPTION]... [-- REGISTERED_NAME]...
//
// With SYCL_DUMP_IMAGES=1 the SPIR-V is written to the current directory.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <sycl/sycl.hpp>
#include <vector>

namespace syclex = sycl::ext::oneapi::experimental;

int main(int count, char** words) {
  std::ifstream file(words[1]);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> options, names;
  std::vector<std::string>* into = &options;
  for (int index = 2; index < count; ++index) {
    const std::string word = words[index];
    if (word == "--") {
      into = &names;
    } else {
      into->push_back(word);
    }
  }
  int code = 0;
  std::string log;
  try {
    const sycl::context context(sycl::device::get_devices(sycl::info::device_type::cpu).at(0));
    auto source = syclex::create_kernel_bundle_from_source(context, syclex::source_language::sycl, text);
    if (names.empty()) {
      syclex::compile(source, syclex::properties{syclex::build_options{options}, syclex::save_log{&log}});
    } else {
      syclex::compile(source, syclex::properties{syclex::build_options{options}, syclex::save_log{&log},
                                                 syclex::registered_names{names}});
    }
  } catch (const sycl::exception& error) {
    log += error.what();
    code = 1;
  }
  std::cout << log << std::flush;
  std::_Exit(code);  // SYCL objects must not be destroyed by a process that ends
}
