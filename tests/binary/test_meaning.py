"""What `Tensor!` without a name means to torch: what docs/installed.md says of it."""

from __future__ import annotations

import pytest
import torch

TEXTS = {
    "bare": "f(Tensor x, Tensor! out)->Tensor!",
    "named": "f(Tensor x, Tensor(a!) out) -> Tensor(a!)",
    "bare_void": "f(Tensor x, Tensor! out)->()",
    "named_void": "f(Tensor x, Tensor(a!) out) -> ()",
}


@pytest.fixture(params=TEXTS)
def operator(request: pytest.FixtureRequest):
    """An operator that writes `out`, and its name here."""
    name = request.param
    library = torch.library.Library(f"meaning_{name}", "DEF")
    library.define(TEXTS[name])

    def real(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor | None:
        out.copy_(x * 2)
        return None if "void" in name else out

    def fake(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor | None:
        return None if "void" in name else out

    library.impl("f", real, "CPU")
    torch.library.register_fake(f"meaning_{name}::f", fake, lib=library)
    yield name, getattr(torch.ops, f"meaning_{name}").f
    library._destroy()


def test_eager_compile_and_opcheck(operator) -> None:
    name, op = operator

    def program(x: torch.Tensor) -> torch.Tensor:
        out = torch.full_like(x, torch.nan)
        op(x, out)
        return out + 1

    x = torch.randn(5)
    assert torch.equal(program(x), x * 2 + 1)
    assert op.default._schema.is_mutable
    torch._dynamo.reset()
    compiled = torch.compile(program, fullgraph=True, backend="aot_eager")
    told = torch.library.opcheck(op.default, (torch.randn(5), torch.zeros(5)), raise_exception=False)
    told = {test: str(result) for test, result in told.items()}
    if "void" in name:
        assert torch.equal(compiled(x), x * 2 + 1)
        assert set(told.values()) == {"SUCCESS"}
        return
    with pytest.raises(RuntimeError, match="output has alias annotations"):
        compiled(x)
    assert "output has alias annotations" in told["test_aot_dispatch_dynamic"]
    tied = "SUCCESS" if name == "named" else "Argument out is not defined to alias output but was aliasing"
    assert told["test_schema"] == tied
