#include "autograd.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <string_view>
#include <vector>

namespace esimd_ops {

void without_derivative(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const size_t first = stack->size() - arguments.size();
  const std::string& whole = op.schema().name();
  const std::string_view name = std::string_view(whole).substr(whole.find("::") + 2);
  std::vector<at::Tensor> written;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = (*stack)[first + i];
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    TORCH_CHECK(!at::GradMode::is_enabled() || !value.toTensor().requires_grad(), name, ": argument '", arguments[i].name(), "': expected a tensor that does not require grad, found one that "
                "does. The operator has no derivative: call it under torch.no_grad(), or with the tensor's detach().");
    if (arguments[i].alias_info() && arguments[i].alias_info()->isWrite()) written.push_back(value.toTensor());
  }
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    op.redispatchBoxed(keys & c10::after_ADInplaceOrView_keyset, stack);
  }
  for (const at::Tensor& tensor : written) {
    if (!tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
  }
}

}  // namespace esimd_ops
