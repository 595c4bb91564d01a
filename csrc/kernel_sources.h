// The text of every device source file, kept inside the shared object so that an installed wheel needs no source tree.
#pragma once

#include <string_view>
#include <vector>

namespace esimd_ops {

struct KernelSource {
  std::string_view path;  // relative to csrc/, as written in #include
  std::string_view text;
};

const std::vector<KernelSource>& kernel_sources();

}  // namespace esimd_ops
