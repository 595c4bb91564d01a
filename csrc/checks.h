// Argument checks whose messages name the operator and the argument, what was expected and what was found.
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <initializer_list>
#include <iterator>
#include <unordered_map>
#include <utility>
#include <vector>

#include "size.h"

namespace esimd_ops {

using Named = std::pair<const char*, const at::Tensor&>;

// The bytes from a tensor's first element to its last, gaps included.
struct Span {
  explicit Span(const at::Tensor& tensor)
      : begin(reinterpret_cast<uintptr_t>(tensor.const_data_ptr())), end(begin + bytes(tensor)) {}

  static size_t bytes(const at::Tensor& tensor) {
    if (tensor.numel() == 0) return 0;
    int64_t last = 0;
    for (int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
    return (last + 1) * tensor.element_size();
  }

  // A tensor without data, on the device meta, meets none.
  bool meets(const Span& other) const { return begin && other.begin && begin < other.end && other.begin < end; }

  uintptr_t begin;
  uintptr_t end;
};

enum class Gaps { kNone, kBetweenRows };

// One argument under check. It is on the device of the operator's first tensor and dense (row-major, no gaps) from the
// start, for kernels take bare addresses; with gaps between rows, each tensor[i] is dense and they don't overlap.
class Argument {
 public:
  Argument(const char* op, const char* name, const at::Tensor& tensor, const at::Tensor& first, Gaps gaps = Gaps::kNone)
      : op_(op), name_(name), tensor_(tensor) {
    expect(tensor.defined(), "a tensor, found None");
    // Where the first is None, its own check says so.
    if (first.defined())
      expect(tensor.device() == first.device(), "a tensor on ", first.device(), ", found one on ", tensor.device());
    const size_t needed = Span::bytes(tensor) + tensor.storage_offset() * tensor.element_size();
    expect(tensor.storage().nbytes() >= needed, needed, " bytes of memory, found ", tensor.storage().nbytes());
    if (gaps == Gaps::kNone || tensor.dim() == 0 || tensor.size(0) == 0) {
      expect(tensor.is_contiguous(), "a contiguous tensor, found strides ", tensor.strides(), " for shape ",
             tensor.sizes());
    } else {
      const bool apart = tensor.size(0) == 1 || tensor.stride(0) >= tensor.numel() / tensor.size(0);
      expect(apart && tensor.select(0, 0).is_contiguous(), "contiguous rows, found strides ", tensor.strides(),
             " for shape ", tensor.sizes());
    }
  }

  const Argument& dtype(at::ScalarType type) const {
    return expect(tensor_.scalar_type() == type, "dtype ", type, ", found ", tensor_.scalar_type());
  }

  // Weights of 8 bits. Bytes without a format of their own are E4M3, as all but E5M2 are to the original library.
  const Argument& fp8() const {
    const auto type = tensor_.scalar_type();
    return expect(type == at::kFloat8_e4m3fn || type == at::kFloat8_e5m2 || type == at::kByte,
                  "dtype Float8_e4m3fn, Float8_e5m2 or Byte, found ", type);
  }

  // Counts and row numbers, which kernels read as 32 bits and which are never negative.
  const Argument& int32() const {
    const auto type = tensor_.scalar_type();
    return expect(type == at::kInt || type == at::kUInt32, "dtype Int or UInt32, found ", type);
  }

  const Argument& shape(at::IntArrayRef sizes) const {
    return expect(tensor_.sizes() == sizes, "shape ", sizes, ", found ", tensor_.sizes());
  }

  // Of any shape.
  const Argument& elements(Size count) const {
    return expect(tensor_.numel() == count, count, " elements, found shape ", tensor_.sizes());
  }

  // Flat and of at least rows * width elements, or at least that many rows which hold `width` elements each.
  const Argument& rows_of(Size rows, Size width) const {
    const bool flat = tensor_.dim() == 1 && tensor_.numel() >= rows * width;
    const bool wide = tensor_.dim() > 1 && tensor_.size(0) >= rows && tensor_.numel() == tensor_.size(0) * width;
    return expect(flat || wide, rows, " rows or more of ", width, " elements, found shape ", tensor_.sizes());
  }

  // At least one dimension, the last one not empty.
  const Argument& rows() const {
    return expect(tensor_.dim() > 0 && tensor_.size(-1) > 0, "rows of at least one element, found shape ",
                  tensor_.sizes());
  }

  // One row of `size` elements, [size] or [1, size].
  const Argument& one_row(int64_t size) const {
    return expect(tensor_.dim() > 0 && tensor_.size(-1) == size && tensor_.numel() == size, "one row of ", size,
                  " elements, found shape ", tensor_.sizes());
  }

  const Argument& aligned(size_t bytes) const {
    return expect(reinterpret_cast<uintptr_t>(tensor_.const_data_ptr()) % bytes == 0,
                  "data that starts at a multiple of ", bytes, " bytes, found a view with storage offset ",
                  tensor_.storage_offset());
  }

  // Numbers of `what`, below `end`; negative ones mean none.
  const Argument& below(const char* what, int64_t end) const {
    return each([&](int64_t value, int64_t place) {
      expect(value < end, what, " up to ", end - 1, ", found ", value, " at ", at::IntArrayRef(indices(place)));
    });
  }

  // Numbers of `what`, from `least` to below `end`.
  const Argument& within(const char* what, int64_t least, int64_t end) const {
    return each([&](int64_t value, int64_t place) {
      expect(value >= least && value < end, what, " from ", least, " to ", end - 1, ", found ", value, " at ", at::IntArrayRef(indices(place)));
    });
  }

  // Of the first `count` numbers those above 0 differ: each names what one row alone may write. 0 is nobody's.
  const Argument& different(const char* what, int64_t count) const {
    std::unordered_map<int64_t, int64_t> seen;
    return each([&](int64_t value, int64_t place) {
      if (place >= count || value <= 0) return;
      const auto [before, added] = seen.emplace(value, place);
      if (added) return;
      expect(false, what, " that differ, found ", value, " at ", at::IntArrayRef(indices(before->second)), " and ",
             at::IntArrayRef(indices(place)));
    });
  }

  // Where each of several intervals starts, and the last ends: none before the one in front, all up to `end`.
  const Argument& starts(const char* what, int64_t end) const {
    int64_t least = 0;
    return each([&](int64_t value, int64_t place) {
      expect(value >= least && value <= end, what, " that do not fall, from 0 to ", end, ", found ", value, " at ",
             at::IntArrayRef(indices(place)));
      least = value;
    });
  }

  // A written argument shares no memory with the others. Their gaps count as theirs.
  const Argument& apart_from(std::initializer_list<Named> others) const {
    for (const auto& [name, other] : others)
      expect(!Span(tensor_).meets(Span(other)), "memory of its own, found it overlapping '", name, "'");
    return *this;
  }

  // As apart_from, but the very same elements are fine: each is read before it is written.
  const Argument& same_or_apart_from(const char* name, const at::Tensor& other) const {
    return at::get_overlap_status(tensor_, other) == at::MemOverlapStatus::Full ? *this : apart_from({{name, other}});
  }

  template <typename... Message>
  const Argument& expect(bool condition, const Message&... message) const {
    TORCH_CHECK(condition, op_, ": argument '", name_, "': expected ", message...);
    return *this;
  }

 private:
  // Each 32-bit number in order. On the CPU alone: for what an asynchronous device holds the host would have to wait, so
  // kernels pass over what lies out of range.
  template <typename Look>
  const Argument& each(const Look& look) const {
    if (!tensor_.is_cpu()) return *this;
    const void* data = tensor_.const_data_ptr();
    for (int64_t i = 0; i < tensor_.numel(); ++i) {
      look(tensor_.scalar_type() == at::kUInt32 ? static_cast<int64_t>(static_cast<const uint32_t*>(data)[i])
                                                : static_cast<int64_t>(static_cast<const int32_t*>(data)[i]),
           i);
    }
    return *this;
  }

  // The indices of an element, by its number in order.
  std::vector<int64_t> indices(int64_t place) const {
    std::vector<int64_t> found(tensor_.dim());
    for (int64_t d = tensor_.dim() - 1; d >= 0; --d) {
      found[d] = place % tensor_.size(d);
      place /= tensor_.size(d);
    }
    return found;
  }

  const char* op_;
  const char* name_;
  const at::Tensor& tensor_;
};

// check("weight", weight).dtype(at::kHalf).shape({K});
class Checks {
 public:
  Checks(const char* op, const at::Tensor& first) : op_(op), first_(first) {}

  Argument operator()(const char* name, const at::Tensor& tensor) const { return {op_, name, tensor, first_}; }

  // As above where rows may lie apart.
  Argument rows(const char* name, const at::Tensor& tensor) const {
    return {op_, name, tensor, first_, Gaps::kBetweenRows};
  }

  // No written argument shares memory with any other argument.
  void apart(std::initializer_list<Named> written, std::initializer_list<Named> read) const {
    for (auto one = written.begin(); one != written.end(); ++one) {
      const Argument argument = (*this)(one->first, one->second);
      argument.apart_from(read);
      for (auto other = std::next(one); other != written.end(); ++other) argument.apart_from({*other});
    }
  }

  template <typename... Message>
  void expect(bool condition, const char* name, const Message&... message) const {
    TORCH_CHECK(condition, op_, ": argument '", name, "': expected ", message...);
  }

 private:
  const char* op_;
  const at::Tensor& first_;
};

}  // namespace esimd_ops
