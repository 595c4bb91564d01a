// The sizes that host code and kernels agree on.
#pragma once

namespace esimd_ops {

inline constexpr int kSubGroupSize = 16;
inline constexpr int kGroupSize = 256;  // of the kernels that share activations; see device/matvec.h
inline constexpr int kSubGroups = kGroupSize / kSubGroupSize;

// Weight rows of one sub-group, and tokens of one tile.
inline constexpr int kGemvRows = 4;
inline constexpr int kGemmRows = 2;
inline constexpr int kGemmTokens = 8;

inline constexpr int kInt4Group = 128;  // elements that share a scale

}  // namespace esimd_ops
