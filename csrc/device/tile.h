// The sizes that host code and kernels agree on.
#pragma once

namespace esimd_ops {

inline constexpr int kSubGroupSize = 16;
inline constexpr int kGroupSize = 256;  // of the kernels that share activations; see device/matvec.h
inline constexpr int kSubGroups = kGroupSize / kSubGroupSize;
inline constexpr int kStep = 8 * kSubGroupSize;  // elements that a sub-group decodes at a time

// Tokens of a work-group, and weight rows of each of its sub-groups. kTogether of them share an activation's load.
struct OneToken {
  static constexpr int kTokens = 1;
  static constexpr int kRows = kSubGroupSize;
  static constexpr int kTogether = 4;
};

// More sums than these have no registers on a CPU.
struct FewTokens {
  static constexpr int kTokens = 8;
  static constexpr int kRows = 3;
};

// Of an expert, which mostly has fewer.
struct ExpertTokens {
  static constexpr int kTokens = 8;
  static constexpr int kRows = 2;
  static constexpr int kTogether = kRows;
};

// Where each lane has tokens of its own: so many of them.
template <int kEach>
struct ManyTokens {
  static constexpr int kPerLane = kEach;
  static constexpr int kTokens = kEach * kSubGroupSize;
  static constexpr int kRows = kEach == 4 ? 6 : 8;
  static constexpr int kDepth = 4096;  // elements of each token that one launch goes through: what a cache can hold
};

// On a card's matrix engines: tokens and weight rows of one instruction, threads of a work-group; see xmx/product.h.
inline constexpr int kXmxTokens = 8;
inline constexpr int kXmxRows = 16;
inline constexpr int kXmxThreads = 8;

inline constexpr int kSideBySide = 8;      // halves that a work-item of a card loads at once, where they lie so
inline constexpr int kElementwise = 1024;  // elements of one work-group where each stands alone
inline constexpr int kMostExperts = 512;   // that a token chooses from

inline constexpr int kInt4Group = 128;  // elements that share a scale
inline constexpr int kFp8Block = 128;   // rows and columns of a block that share a scale

inline constexpr int kHeadDim = 128;      // of the gated norms and of the delta rule
inline constexpr int kGdnParts = 2;       // work-groups that share the value rows of a head
inline constexpr int kRopeHeadDim = 256;  // of the attention heads

}  // namespace esimd_ops
