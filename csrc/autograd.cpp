#include "autograd.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <string_view>
#include <utility>

namespace esimd_ops {
namespace {

thread_local const c10::OperatorHandle* called_by_twin = nullptr;

// The tensors of one argument: none, one, or those of a list.
template <class F>
void each_tensor(const c10::IValue& value, F visit) {
  if (value.isTensor() && value.toTensor().defined()) visit(value.toTensor());
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      if (tensor.defined()) visit(tensor);
    }
  }
}

void refuse_grad(const c10::OperatorHandle& op, const c10::IValue* values) {
  if (!at::GradMode::is_enabled()) return;
  const auto& arguments = op.schema().arguments();
  const std::string& whole = op.schema().name();
  const std::string_view name = std::string_view(whole).substr(whole.find("::") + 2);
  for (size_t i = 0; i < arguments.size(); ++i) {
    each_tensor(values[i], [&](const at::Tensor& tensor) {
      TORCH_CHECK(!tensor.requires_grad(), name, ": argument '", arguments[i].name(), "': expected a tensor that does "
                  "not require grad, found one that does. The operator has no derivative: call it under "
                  "torch.no_grad(), or with the tensor's detach().");
    });
  }
}

// What was written and has a version, with the version before the call.
class Versions {
 public:
  void add(const c10::IValue& value) {
    each_tensor(value, [this](const at::Tensor& tensor) {
      if (!tensor.is_inference()) tensors_.emplace_back(tensor, tensor._version());
    });
  }

  // Of a tensor that is written twice, or whose version the operator itself has raised, it rises once.
  void rise() const {
    for (const auto& [tensor, before] : tensors_) {
      if (tensor._version() == before) tensor.unsafeGetTensorImpl()->bump_version();
    }
  }

 private:
  std::vector<std::pair<at::Tensor, int64_t>> tensors_;
};

void call_below(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below;
  op.redispatchBoxed(keys & c10::after_ADInplaceOrView_keyset, stack);
}

class GiveVersions final : public c10::OperatorKernel {
 public:
  GiveVersions(std::vector<size_t> written, bool composite) : written_(std::move(written)), composite_(composite) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    if (keys.has(c10::DispatchKey::Python)) {  // traced: no values, and the twin has the true schema
      op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
      return;
    }
    const c10::IValue* values = stack->data() + stack->size() - op.schema().arguments().size();
    const bool by_twin = called_by_twin && *called_by_twin == op;
    called_by_twin = nullptr;
    if (!composite_ && !by_twin) refuse_grad(op, values);
    Versions versions;
    for (const size_t at : written_) versions.add(values[at]);
    if (composite_ || by_twin) {
      op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
    } else {
      call_below(op, keys, stack);
    }
    versions.rise();
  }

 private:
  std::vector<size_t> written_;
  bool composite_;
};

}  // namespace

void without_derivative(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const c10::IValue* values = stack->data() + stack->size() - arguments.size();
  refuse_grad(op, values);
  Versions versions;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].alias_info() && arguments[i].alias_info()->isWrite()) versions.add(values[i]);
  }
  call_below(op, keys, stack);
  versions.rise();
}

CalledByTwin::CalledByTwin(const c10::OperatorHandle& op) : before_(std::exchange(called_by_twin, &op)) {}

CalledByTwin::~CalledByTwin() { called_by_twin = before_; }

Registration give_versions(const std::string& op, std::vector<size_t> written, bool composite) {
  const size_t colons = op.find("::");
  TORCH_CHECK(colons != std::string::npos, "expected namespace::name, found ", op);
  auto library = std::make_unique<torch::Library>(torch::Library::IMPL, op.substr(0, colons), std::nullopt, __FILE__,
                                                  __LINE__);
  // Device by device: a kernel for the alias Autograd would come after one that stands for all keys.
  for (const c10::DispatchKey key : {c10::DispatchKey::AutogradCPU, c10::DispatchKey::AutogradCUDA,
                                     c10::DispatchKey::AutogradXPU, c10::DispatchKey::AutogradPrivateUse1}) {
    auto kernel = std::make_unique<GiveVersions>(written, composite);
    library->impl(op.substr(colons + 2).c_str(),
                  torch::dispatch(key, torch::CppFunction::makeFromBoxedFunctor(std::move(kernel))));
  }
  return {std::move(library)};
}

}  // namespace esimd_ops
