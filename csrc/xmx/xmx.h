// Which products go to the kernels for a card (xmx.sycl).
#pragma once

#include "runtime.h"

namespace esimd_ops::xmx {

// A matrix, or several of one width behind one another: rows of the tensor's last dimension.
struct Rows {
  const at::Tensor& tensor;
  int64_t count;
};

// Whether the queue's device has matrix engines and its messages of two dimensions can read all of these.
bool fits(Queue queue, std::initializer_list<Rows> matrices);

}  // namespace esimd_ops::xmx
