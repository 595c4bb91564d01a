// Argument checks whose messages name the operator and the argument, what was expected and what was found.
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <initializer_list>

namespace esimd_ops {

// One argument under check. It is dense (row-major, no gaps) and on the device of the operator's first tensor from the
// start: kernels take bare addresses.
class Argument {
 public:
  Argument(const char* op, const char* name, const at::Tensor& tensor, const at::Tensor& first)
      : op_(op), name_(name), tensor_(tensor) {
    expect(tensor.device() == first.device(), "a tensor on ", first.device(), ", found one on ", tensor.device());
    expect(tensor.is_contiguous(), "a contiguous tensor, found strides ", tensor.strides(), " for shape ",
           tensor.sizes());
  }

  const Argument& dtype(at::ScalarType type) const {
    return expect(tensor_.scalar_type() == type, "dtype ", type, ", found ", tensor_.scalar_type());
  }

  const Argument& shape(at::IntArrayRef sizes) const {
    return expect(tensor_.sizes() == sizes, "shape ", sizes, ", found ", tensor_.sizes());
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

  // A written argument shares no memory with the others, which were found dense before.
  const Argument& apart_from(std::initializer_list<std::pair<const char*, const at::Tensor&>> others) const {
    for (const auto& [name, other] : others) {
      const auto overlap = at::get_overlap_status(tensor_, other);
      expect(overlap == at::MemOverlapStatus::No || tensor_.numel() == 0, "memory of its own, found it overlapping '",
             name, "'");
    }
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
  const char* op_;
  const char* name_;
  const at::Tensor& tensor_;
};

// check("weight", weight).dtype(at::kHalf).shape({K});
class Checks {
 public:
  Checks(const char* op, const at::Tensor& first) : op_(op), first_(first) {}

  Argument operator()(const char* name, const at::Tensor& tensor) const { return {op_, name, tensor, first_}; }

 private:
  const char* op_;
  const at::Tensor& first_;
};

}  // namespace esimd_ops
