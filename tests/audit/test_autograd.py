"""`T::apply(…)` of a torch::autograd::Function runs `T::forward(context, …)`: what that writes, the operator writes."""

import pytest
import trees

SOURCE = """
class Scatter : public torch::autograd::Function<Scatter> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, at::Tensor src, at::Tensor out) {
    ctx->save_for_backward({src});
    out.add_(src);
    return out;
  }
};
class Sum : public torch::autograd::Function<Sum> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, at::Tensor src, at::Tensor out) { return src + out; }
};
"""


@pytest.mark.parametrize(
    ("called", "expected"),
    [
        ("Scatter", {"a": "read only", "b": "written"}),
        ("Sum", {"a": "read only", "b": "read only"}),
        ("Elsewhere", {"a": "unknown", "b": "unknown"}),
    ],
)
def test_forward_is_followed_behind_its_context(tmp_path, called, expected):
    body = f"void op(at::Tensor a, at::Tensor b) {{ {called}::apply(a, b); }}"
    assert trees.answers(tmp_path, f"{SOURCE}\n{body}") == expected
