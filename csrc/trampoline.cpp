#include "trampoline.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <memory>
#include <utility>

#include "autograd.h"

namespace esimd_ops {
namespace {

class Trampoline final : public c10::OperatorKernel {
 public:
  Trampoline(c10::OperatorHandle op, std::vector<Result> results) : op_(std::move(op)), results_(std::move(results)) {}

  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) {
    call(stack);
    const size_t first = stack->size() - results_.size();
    size_t next = first;
    for (size_t i = 0; i < results_.size(); ++i) {
      if (results_[i] == Result::kDrop) continue;
      c10::IValue& value = (*stack)[first + i];
      (*stack)[next++] = results_[i] == Result::kClone ? c10::IValue(value.toTensor().clone()) : std::move(value);
    }
    stack->resize(next);
  }

 private:
  void call(torch::jit::Stack* stack) const {
    const CalledByTwin by_twin(op_);
    op_.callBoxed(stack);
  }

  c10::OperatorHandle op_;
  std::vector<Result> results_;
};

}  // namespace

void implement_twin(const std::string& twin, const std::string& op, const std::string& overload,
                    std::vector<Result> results) {
  const size_t colons = twin.find("::");
  TORCH_CHECK(colons != std::string::npos, "expected namespace::name, found ", twin);
  const c10::OperatorHandle handle = c10::Dispatcher::singleton().findSchemaOrThrow(op.c_str(), overload.c_str());
  TORCH_CHECK(handle.schema().returns().size() == results.size(), op, " returns ", handle.schema().returns().size(),
              " values, ", results.size(), " are described");
  auto* library = new torch::Library(torch::Library::FRAGMENT, twin.substr(0, colons), std::nullopt, __FILE__, __LINE__);
  auto kernel = std::make_unique<Trampoline>(handle, std::move(results));
  library->impl(twin.substr(colons + 2).c_str(),
                torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd,
                                torch::CppFunction::makeFromBoxedFunctor(std::move(kernel))));
}

}  // namespace esimd_ops
