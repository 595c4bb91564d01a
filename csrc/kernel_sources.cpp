#include "kernel_sources.h"

// The assembler finds the files relative to csrc/ (setup.py passes -Wa,-I). The compiler's dependency files do not list
// them, so setup.py passes their digest as a macro: a changed kernel changes the command line and is embedded again.
#define FOR_EACH_SOURCE(DO)                        \
  DO(device_tile_h, "device/tile.h")               \
  DO(device_kernel_h, "device/kernel.h")           \
  DO(device_row_h, "device/row.h")                 \
  DO(device_activations_h, "device/activations.h") \
  DO(device_weights_h, "device/weights.h")         \
  DO(device_fp8_h, "device/fp8.h")                 \
  DO(device_sums_h, "device/sums.h")               \
  DO(device_matvec_h, "device/matvec.h")           \
  DO(device_matmul_h, "device/matmul.h")           \
  DO(xmx_rows_h, "xmx/rows.h")                     \
  DO(xmx_product_h, "xmx/product.h")               \
  DO(xmx_matvec_h, "xmx/matvec.h")                 \
  DO(norm_norm_sycl, "norm/norm.sycl")             \
  DO(gemv_gemv_sycl, "gemv/gemv.sycl")             \
  DO(gemm_gemm_sycl, "gemm/gemm.sycl")             \
  DO(xmx_xmx_sycl, "xmx/xmx.sycl")                 \
  DO(moe_moe_sycl, "moe/moe.sycl")                 \
  DO(rope_rope_sycl, "rope/rope.sycl")             \
  DO(gdn_gdn_sycl, "gdn/gdn.sycl")                 \
  DO(quant_quant_sycl, "quant/quant.sycl")

#define EMBED(name, path)                    \
  asm(".pushsection .rodata\n"               \
      "esimd_ops_" #name "_begin:\n"         \
      ".incbin \"" path "\"\n"               \
      "esimd_ops_" #name "_end:\n"           \
      ".byte 0\n"                            \
      ".popsection\n");                      \
  extern "C" __attribute__((visibility("hidden"))) const char esimd_ops_##name##_begin[], esimd_ops_##name##_end[];

#define ENTRY(name, path) \
  {path, {esimd_ops_##name##_begin, static_cast<size_t>(esimd_ops_##name##_end - esimd_ops_##name##_begin)}},

FOR_EACH_SOURCE(EMBED)

namespace esimd_ops {

const std::vector<KernelSource>& kernel_sources() {
  static const auto& sources = *new std::vector<KernelSource>{FOR_EACH_SOURCE(ENTRY)};
  return sources;
}

}  // namespace esimd_ops
