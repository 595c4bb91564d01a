#include "trampoline.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <memory>

namespace esimd_ops {
namespace {

class Trampoline final : public c10::OperatorKernel {
 public:
  Trampoline(c10::OperatorHandle op, Results results) : op_(std::move(op)), results_(results) {}

  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) {
    op_.callBoxed(stack);
    const size_t count = op_.schema().returns().size();
    if (results_ == Results::kDrop) {
      torch::jit::drop(*stack, count);
      return;
    }
    for (size_t i = stack->size() - count; i < stack->size(); ++i) (*stack)[i] = (*stack)[i].toTensor().clone();
  }

 private:
  c10::OperatorHandle op_;
  Results results_;
};

}  // namespace

void implement_twin(const std::string& twin, const std::string& op, const std::string& overload, Results results) {
  const size_t colons = twin.find("::");
  TORCH_CHECK(colons != std::string::npos, "expected namespace::name, found ", twin);
  const c10::OperatorHandle handle = c10::Dispatcher::singleton().findSchemaOrThrow(op.c_str(), overload.c_str());
  auto* library = new torch::Library(torch::Library::FRAGMENT, twin.substr(0, colons), std::nullopt, __FILE__, __LINE__);
  auto kernel = std::make_unique<Trampoline>(handle, results);
  library->impl(twin.substr(colons + 2).c_str(),
                torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd,
                                torch::CppFunction::makeFromBoxedFunctor(std::move(kernel))));
}

}  // namespace esimd_ops
