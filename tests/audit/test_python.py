"""Operators that Python registers: what is declared, and what their functions write."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from schema_patch.audit import python as audit_python
from schema_patch.audit.python import CppFacts
from schema_patch.model import Verdict
from schema_patch.python import flow, registrations, tree


def read(tmp_path: Path, code: str) -> tree.Python:
    (tmp_path / "ops.py").write_text(textwrap.dedent(code))
    return tree.gather([str(tmp_path)], lambda _: None)


def judge(tmp_path: Path, code: str, known: dict[str, tuple[int, ...]] | None = None) -> tuple[list[str], list[str]]:
    rows = audit_python.judge(read(tmp_path, code), CppFacts(known or {}))
    findings = [row.finding for row in rows if row.finding]
    return [row.checked.verdict.value for row in rows], [
        f"{f.code} {f.op}: {f.message.split(': ')[0]}" for f in findings
    ]


BODIES = {
    "out.copy_(x)": "out",
    "out[0] = x": "out",
    "out.view(-1).add_(x)": "out",
    "torch.add(x, x, out=out)": "out",
    "alias = out[1:]\n    alias.zero_()": "out",
    "torch.ops.lib.kernel(x, out)": "out",
    "kernel[(1,)](x, out, 4)": "out",
    "helper(x, out)": "out",
    "y = torch.empty_like(x); y.copy_(out)": "",
    "return x + out": "",
    "x = x.clone(); y = x * 2": "",
    "out = out.clone(); out.add_(x)": "",
    "if n:\n        out = out.clone()\n    else:\n        out = x * 2\n    out.zero_()": "",
    "if n:\n        out = out.clone()\n    out.zero_()": "out",
    "out += x": "out",
    "first, second = out.chunk(2)\n    second.zero_()": "out",
    "picked = out[x > 0]; picked.zero_()": "",
    "picked = out[x]; picked.zero_()": "",
    "for i in range(n):\n        row = out[i]\n        row.zero_()": "out",
    "out[x] += 1": "out",
    "outs[0] = x": "",
    "outs[0].copy_(x)": "outs",
    "for one in outs:\n        one.zero_()": "outs",
    "for a, b in zip(outs, [x]):\n        a.copy_(b)": "outs",
    "def inner(out):\n        out.zero_()\n    inner(x.clone())": "",
    "def inner(given):\n        given.zero_()\n    inner(out)": "out",
    "def inner():\n        out.zero_()\n    inner()": "out",
    "made = [out.zero_() for out in [torch.empty(3)]]": "",
    "same(out).zero_()": "out",
    "torch.nn.functional.relu(out, inplace=True)": "out",
    "wrap_triton(kernel)[(1,)](x, out, n)": "out",
    "wrap_triton(optional)[(1,)](x, out, n, False)": "",  # a pointer that takes a place only
    "wrap_triton(optional)[(1,)](x, out, n, SAVE=False)": "",
    "optional[(1,)](x, out, n, SAVE=True)": "out",
    "optional[(1,)](x, out, n, SAVE=n > 1)": "out",
    "sizes[0] = n; n += 1": "",
    "torch.distributed.all_reduce(out)": "",
}


@pytest.mark.parametrize("body", BODIES)
def test_what_a_function_writes(body: str) -> None:
    code = textwrap.dedent("""
        import torch, triton, triton.language as tl
        @triton.jit
        def kernel(x_ptr, out_ptr, n: tl.constexpr):
            offsets = tl.arange(0, n)
            p = out_ptr + offsets
            tl.store(p, tl.load(x_ptr + offsets))
        @triton.jit
        def optional(x_ptr, out_ptr, n: tl.constexpr, SAVE: tl.constexpr):
            if SAVE:
                tl.store(out_ptr + tl.arange(0, n), tl.load(x_ptr + tl.arange(0, n)))
        def helper(a, b):
            b.add_(a)
        def same(a):
            return a[0]
        def op(x, out, outs: list[torch.Tensor], sizes: list[int], n: int):
            BODY
    """).replace("BODY", body)
    source = registrations.read(code.encode(), "ops.py")
    assert source
    found = flow.read(source.functions["op"], "ops.py", source.functions, {"lib::kernel": (1,)})[0]
    assert {name for name, answer in found.items() if answer.kind.value == "written"} == ({BODIES[body]} - {""})


STYLES = {
    "custom_op": '@torch.library.custom_op("lib::op", mutates_args=())\ndef op(x, out):\n    out.copy_(x)\n',
    "triton_op": '@triton_op("lib::op", mutates_args={})\ndef op(x, out):\n    out.copy_(x)\n'.replace("{}", "[]"),
    "wrapper": 'def op(x, out):\n    out.copy_(x)\ndirect_register_custom_op(op_name="op", op_func=op, mutates_args=[], fake_impl=op)\n',
    "define": 'torch.library.define("lib::op", "(Tensor x, Tensor out) -> ()")\n@torch.library.impl("lib::op", "cpu")\ndef op(x, out):\n    out.copy_(x)\n',
    "Library": 'lib = torch.library.Library("lib", "DEF")\nlib.define("op(Tensor x, Tensor out) -> ()")\ndef op(x, out):\n    out.copy_(x)\nlib.impl("op", op, "CPU")\n',
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_an_undeclared_write_is_found_in_each_style(tmp_path: Path, style: str) -> None:
    verdicts, findings = judge(tmp_path, "import torch\n" + STYLES[style])
    assert verdicts == [Verdict.WRONG.value]
    assert findings == ["SP101 op: writes 'out' undeclared"]


UNSURE = ["out.contiguous().zero_()", "out[x].zero_()", "torch.distributed.all_reduce(out)", "out.data = x", "f(out)"]


@pytest.mark.parametrize("body", UNSURE)
def test_what_may_be_a_copy_is_unknown(tmp_path: Path, body: str) -> None:
    code = f'@custom_op("lib::op", mutates_args=())\ndef op(x: Tensor, out: Tensor):\n    {body}\n'
    assert judge(tmp_path, code) == ([Verdict.UNKNOWN.value], [])


def test_a_tensor_that_is_made_here_may_be_written(tmp_path: Path) -> None:
    code = '@custom_op("lib::op", mutates_args=())\ndef op(x: Tensor):\n    return torch.empty_like(x).copy_(x)\n'
    assert judge(tmp_path, code) == ([Verdict.RIGHT.value], [])


def test_a_function_that_is_defined_twice_is_unknown_unless_it_is_decorated(tmp_path: Path) -> None:
    ops = "".join(
        f'@custom_op("lib::{name}", mutates_args=())\ndef _(a: Tensor, b: Tensor):\n    {name}.zero_()\n'
        for name in "ab"
    )
    assert judge(tmp_path, ops)[1] == ["SP101 a: writes 'a' undeclared", "SP101 b: writes 'b' undeclared"]
    helper = "def f(a): a.zero_()\ndef f(a): pass\n"
    code = f'{helper}@custom_op("lib::op", mutates_args=())\ndef op(x: Tensor):\n    f(x)\n'
    assert judge(tmp_path, code) == ([Verdict.UNKNOWN.value], [])


def test_what_is_declared_is_right_and_what_is_computed_is_unknown(tmp_path: Path) -> None:
    code = STYLES["custom_op"].replace("mutates_args=()", 'mutates_args=["out"]')
    assert judge(tmp_path, code) == ([Verdict.RIGHT.value], [])
    code = STYLES["custom_op"].replace("mutates_args=()", "mutates_args=NAMES")
    told = "SP002 op: mutates_args is not written as a constant, and it is seen to write 'out' at"
    verdicts, (finding,) = judge(tmp_path, code)
    assert verdicts == [Verdict.UNKNOWN.value]
    assert finding.startswith(told)


def test_partial(tmp_path: Path) -> None:
    code = '@custom_op("lib::op", mutates_args=("a",))\ndef op(a, b):\n    a.zero_()\n    b.zero_()\n'
    (row,) = audit_python.judge(read(tmp_path, code), CppFacts())
    assert row.finding
    assert row.finding.code == "SP102"
    assert row.declares == ("a", "b")


def test_a_call_that_leaves_the_file_is_unknown(tmp_path: Path) -> None:
    code = '@custom_op("lib::op", mutates_args=())\ndef op(x, out):\n    other.run(x, out)\n'
    assert judge(tmp_path, code) == ([Verdict.UNKNOWN.value], [])


def test_what_is_no_python_is_passed_over(tmp_path: Path) -> None:
    python = read(tmp_path, "custom_op(\n")
    assert (python.sources, python.files) == ([], 1)


@pytest.mark.parametrize("decorator", ["@compile_ops('module')", "@ffi.bind\n@cache"])
def test_a_function_whose_body_a_decorator_makes_is_unknown(tmp_path: Path, decorator: str) -> None:
    code = f"""
import torch
{decorator}
def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
    \"\"\"Made elsewhere.\"\"\"
    ...

@torch.library.custom_op("lib::op", mutates_args=())
def op(x: torch.Tensor, out: torch.Tensor) -> None:
    kernel(x, out)

@torch.library.custom_op("lib::nothing", mutates_args=())
def nothing(x: torch.Tensor) -> None:
    pass
"""
    assert judge(tmp_path, code)[0] == ["unknown", "right"]
