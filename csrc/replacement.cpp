#include "replacement.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>
#include <mutex>
#include <string_view>
#include <utility>

namespace esimd_ops {

struct Replacement::State {
  State(c10::OperatorHandle ours_, int64_t returned_)
      : ours(std::move(ours_)), refusal(name_of(ours) + ": argument '"), returned(returned_) {}

  static std::string name_of(const c10::OperatorHandle& op) {
    const std::string& whole = op.schema().name();
    return whole.substr(whole.find("::") + 2);
  }

  const c10::OperatorHandle ours;
  const std::string refusal;  // how every refusal of ours begins
  const int64_t returned;
  std::once_flag compared;
  std::string differs;  // why no call of this operator can be ours
  std::atomic<int64_t> replaced = 0;
  std::atomic<int64_t> passed = 0;
  std::mutex mutex;
  std::string why;
};

namespace {

constexpr c10::DispatchKeySet kBehind(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::BackendSelect);

// Why another library's operator of the same name is not the one that ours stands for; "" where it is.
std::string difference(const c10::FunctionSchema& theirs, const c10::FunctionSchema& ours, int64_t returned) {
  bool same = theirs.arguments().size() == ours.arguments().size();
  for (size_t i = 0; same && i < ours.arguments().size(); ++i) {
    same = theirs.arguments()[i].name() == ours.arguments()[i].name();
  }
  if (!same) {
    std::string names;
    for (const auto& argument : theirs.arguments()) names += (names.empty() ? "" : ", ") + argument.name();
    return "it has other arguments than ours: " + names;
  }
  if (theirs.returns().size() > (returned < 0 ? 0 : 1)) return "it returns something else than ours";
  return "";
}

class Kernel final : public c10::OperatorKernel {
 public:
  explicit Kernel(std::shared_ptr<Replacement::State> state) : state_(std::move(state)) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const c10::DispatchKeySet behind = keys & kBehind;
    const c10::DispatchKey device = behind.highestPriorityTypeId();
    if (device != c10::DispatchKey::Meta) {  // there torch asks for shapes; nothing is computed
      std::string why = answer(op, device, stack);
      if (why.empty()) return;
      ++state_->passed;
      const std::lock_guard lock(state_->mutex);
      state_->why = std::move(why);
    }
    op.redispatchBoxed(behind, stack);
  }

 private:
  // Calls ours; "", or why the original has to be called, with the arguments still on the stack.
  std::string answer(const c10::OperatorHandle& op, c10::DispatchKey device, torch::jit::Stack* stack) {
    State& state = *state_;
    std::call_once(state.compared, [&] { state.differs = difference(op.schema(), state.ours.schema(), state.returned); });
    if (!state.differs.empty()) return state.differs;
    if (!state.ours.hasKernelForDispatchKey(device)) return std::string("no kernel of ours for ") + c10::toString(device);
    const size_t first = stack->size() - op.schema().arguments().size();
    torch::jit::Stack given(stack->begin() + static_cast<std::ptrdiff_t>(first), stack->end());
    try {
      state.ours.callBoxed(given);
    } catch (const c10::Error& error) {
      std::string words = error.what_without_backtrace();
      if (words.rfind(state.refusal, 0) != 0) throw;
      return words.substr(0, words.find('\n'));
    }
    ++state.replaced;
    if (op.schema().returns().empty()) {
      stack->resize(first);
    } else {
      c10::IValue result = std::move((*stack)[first + static_cast<size_t>(state.returned)]);
      stack->resize(first);
      stack->push_back(std::move(result));
    }
    return "";
  }

  using State = Replacement::State;
  std::shared_ptr<State> state_;
};

}  // namespace

Replacement::Replacement(const std::string& op, const std::string& ours, int64_t returned) {
  const size_t colons = op.find("::");
  TORCH_CHECK(colons != std::string::npos, "expected namespace::name, found ", op);
  state_ = std::make_shared<State>(c10::Dispatcher::singleton().findSchemaOrThrow(ours.c_str(), ""), returned);
  library_ = std::make_unique<torch::Library>(torch::Library::IMPL, op.substr(0, colons),
                                              c10::DispatchKey::BackendSelect, __FILE__, __LINE__);
  library_->impl(op.substr(colons + 2).c_str(),
                 torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(state_)));
}

int64_t Replacement::replaced() const { return state_->replaced; }
int64_t Replacement::passed() const { return state_->passed; }

std::string Replacement::why() const {
  const std::lock_guard lock(state_->mutex);
  return state_->why;
}

}  // namespace esimd_ops
