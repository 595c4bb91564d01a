"""Python callers and fakes of operators that return nothing: what is rewritten, byte for byte, and what is only said."""

from __future__ import annotations

import pytest

from schema_patch.model import ToolError
from schema_patch.python import calls, fakes, names, wrap
from schema_patch.schemas.gone import VoidedOperator
from schema_patch.text import edits

NORM = VoidedOperator("ns", "norm", ("input", "output", "weight", "eps"), "output")
TOPK = VoidedOperator("ns", "topk", ("x", "values", "indices"), None)  # whose result was two tensors
GONE = [
    NORM,
    VoidedOperator("ns", "add_", ("hidden", "residual"), "hidden"),
    VoidedOperator(None, "gemv", ("x", "out"), "out", "wide"),
    TOPK,
]
HEAD = "import torch\n_ops = torch.ops.ns\n"

REWRITTEN = {
    "returned": ("def f(x, o, w):\n    return _ops.norm(x, o, w, 1e-6)\n",
                 "def f(x, o, w):\n    _ops.norm(x, o, w, 1e-6)\n    return o\n"),
    "full path, overload, keyword": ("def f(x, o):\n\treturn torch.ops.ns.norm.default(x, weight=x, output=o)  # noqa\n",
                                     "def f(x, o):\n\ttorch.ops.ns.norm.default(x, weight=x, output=o)  # noqa\n\treturn o\n"),
    "named overload in any namespace": ("def f(x, o):\n  return torch.ops.other.gemv.wide(x, o)\n",
                                        "def f(x, o):\n  torch.ops.other.gemv.wide(x, o)\n  return o\n"),
    "several lines": ("def f(x, o):\n    return (\n        _ops.norm(\n            x, o,  # both\n            x, 1)\n    )\n",
                      "def f(x, o):\n    (\n        _ops.norm(\n            x, o,  # both\n            x, 1)\n    )\n    return o\n"),
    "assigned": ("def f(x, o):\n    out = _ops.norm(x, o, x, 1)\n    return out\n",
                 "def f(x, o):\n    _ops.norm(x, o, x, 1)\n    out = o\n    return out\n"),
    "assigned to itself": ("output = _ops.norm(x, output, w, 1)\n", "_ops.norm(x, output, w, 1)\n"),
    "targets and annotation": ("a = self.b[0] = _ops.norm(x, o, w, 1)\nc: 'T' = \\\n    _ops.add_(h, r)\n",
                               "_ops.norm(x, o, w, 1)\na = self.b[0] = o\n_ops.add_(h, r)\nc: 'T' = h\n"),
    "on one line": ("def f(x, o): return _ops.norm(x, o, x, 1)  # c\nif a: b = _ops.norm(x, o, x, 1); print(b)\n",
                    "def f(x, o): _ops.norm(x, o, x, 1); return o  # c\nif a: _ops.norm(x, o, x, 1); b = o; print(b)\n"),
    "continued": ("if a: \\\n    b = _ops.norm(x, o, x, 1)\n", "if a: \\\n    _ops.norm(x, o, x, 1); b = o\n"),
    "a buffer without a name": ("def f(x):\n    return _ops.norm(x, torch.empty_like(x), x, 1)",
                                "def f(x):\n    _ops.norm(x, (output := torch.empty_like(x)), x, 1)\n    return output"),
    "a name that is taken": ("def f(x, output):\n    return _ops.norm(x, output.view(-1), weight=x)\n",
                             "def f(x, output):\n    _ops.norm(x, (output_ := output.view(-1)), weight=x)\n    return output_\n"),
    "carriage returns": ("def f(x, o):\r\n    return _ops.norm(x, o, x, 1)\r\n", "def f(x, o):\r\n    _ops.norm(x, o, x, 1)\r\n    return o\r\n"),
    "a name for the operator": ("norm = getattr(_ops, 'norm')\nclass A:\n    def f(self, x, o):\n        r = norm(x, o, x, 1)\n        return r\n",
                                "norm = getattr(_ops, 'norm')\nclass A:\n    def f(self, x, o):\n        norm(x, o, x, 1)\n        r = o\n        return r\n"),
    "where torch may lack it": ("try:\n    n = torch.ops.ns.norm\nexcept AttributeError:\n    n = None\ndef f(x, o): return n(x, o, x, 1)\n",
                                "try:\n    n = torch.ops.ns.norm\nexcept AttributeError:\n    n = None\ndef f(x, o): n(x, o, x, 1); return o\n"),
    "other imports": ("from torch import ops as o\nimport torch as t\na = o.ns.norm(x, b, w, 1)\na = t.ops.ns.norm(x, b, w, 1)\n",
                      "from torch import ops as o\nimport torch as t\no.ns.norm(x, b, w, 1)\na = b\nt.ops.ns.norm(x, b, w, 1)\na = b\n"),
    "of an instance": ("class A:\n    def __init__(self):\n        self.op = _ops.norm\n    def f(self, x, o):\n        return self.op(x, o, x, 1)\n",
                       "class A:\n    def __init__(self):\n        self.op = _ops.norm\n    def f(self, x, o):\n        self.op(x, o, x, 1)\n        return o\n"),
    "a loop over operators": ("for op in (torch.ops.ns.norm, torch.ops.ns.norm.default):\n    y = op(x, o, x, 1)\n",
                              "for op in (torch.ops.ns.norm, torch.ops.ns.norm.default):\n    op(x, o, x, 1)\n    y = o\n"),
    # fakes
    "decorated fake": ("@torch.library.register_fake('ns::norm')\ndef _(input, output, weight, eps) -> torch.Tensor:\n    def inner(): return 1\n    if eps:\n        return torch.empty_like(output)\n    return (output)\n",
                       "@torch.library.register_fake('ns::norm')\ndef _(input, output, weight, eps) -> None:\n    def inner(): return 1\n    if eps:\n        return None\n    return (None)\n"),
    "older name, name from parts": ("from torch.library import impl_abstract\nNS = 'ns'\n@impl_abstract(f'{NS}::norm')\ndef _(i, o, w, e):\n    return o.new_empty(\n        3)\n",
                                    "from torch.library import impl_abstract\nNS = 'ns'\n@impl_abstract(f'{NS}::norm')\ndef _(i, o, w, e):\n    return None\n"),
    "called with a function": ("def fake(h, r):\n    return h\ntorch.library.register_fake('ns::add_', fake)\ntorch.library.register_fake('ns::' + 'add_.default')(lambda h, r: h)\n",
                               "def fake(h, r):\n    return None\ntorch.library.register_fake('ns::add_', fake)\ntorch.library.register_fake('ns::' + 'add_.default')(lambda h, r: None)\n"),
    "by the operator itself": ("torch.library.register_fake(_ops.norm.default, lambda i, o, w, e: o)\n",
                               "torch.library.register_fake(_ops.norm.default, lambda i, o, w, e: None)\n"),
    "through a helper": ("def reg(name, fn, *, quiet=0):\n    torch.library.register_fake(name, fn)\nreg('ns::norm', lambda i, o, w, e: o)\nreg(fn=lambda x: x, name='ns::other')\n",
                         "def reg(name, fn, *, quiet=0):\n    torch.library.register_fake(name, fn)\nreg('ns::norm', lambda i, o, w, e: None)\nreg(fn=lambda x: x, name='ns::other')\n"),
    "in a loop": ("FAKES = {'norm': lambda i, o, w, e: o, 'other': lambda x: x}\nfor name, fn in FAKES.items():\n    torch.library.register_fake(f'ns::{name}', fn)\n",
                  "FAKES = {'norm': lambda i, o, w, e: None, 'other': lambda x: x}\nfor name, fn in FAKES.items():\n    torch.library.register_fake(f'ns::{name}', fn)\n"),
    "in a loop, one for all": ("def fake(x, *rest):\n    return x\nfor name in ['norm', 'add_']:\n    torch.library.register_fake('ns::' + name)(fake)\n",
                               "def fake(x, *rest):\n    return None\nfor name in ['norm', 'add_']:\n    torch.library.register_fake('ns::' + name)(fake)\n"),
    "kernels for Meta": ("lib = torch.library.Library('ns', 'FRAGMENT')\nlib.impl('norm', lambda i, o, w, e: o, 'Meta')\nlib.impl('norm', lambda i, o, w, e: o, 'CPU')\n@torch.library.impl(lib, 'add_', 'Meta')\ndef _(h, r): return h\n@torch.library.impl('ns::add_', 'Meta')\ndef _(h, r): return r\nlib._register_fake('norm', lambda *a: a)\n",
                         "lib = torch.library.Library('ns', 'FRAGMENT')\nlib.impl('norm', lambda i, o, w, e: None, 'Meta')\nlib.impl('norm', lambda i, o, w, e: o, 'CPU')\n@torch.library.impl(lib, 'add_', 'Meta')\ndef _(h, r): return None\n@torch.library.impl('ns::add_', 'Meta')\ndef _(h, r): return None\nlib._register_fake('norm', lambda *a: None)\n"),
    "a fake that calls": ("@torch.library.register_fake('ns::norm')\ndef _(i, o, w, e):\n    return _ops.norm(i, o, w, e)\n",
                          "@torch.library.register_fake('ns::norm')\ndef _(i, o, w, e):\n    return None\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    before, after = ((HEAD + text).encode() for text in REWRITTEN[case])
    new, made, found = wrap.rewrite(before, "a.py", GONE)
    assert new.decode() == after.decode()
    assert edits.apply(new, edits.inverse(before, made)) == before
    assert {finding.code for finding in found} <= {"SP005", "SP006"}
    assert all(finding.fixable for finding in found)
    assert wrap.rewrite(new, "a.py", GONE) == (new, (), ())


SAID = {
    "y = 1 + _ops.norm(x, o, w, 1)": "SP005",
    "f(_ops.norm(x, o, w, 1))": "SP005",
    "y = _ops.norm(x, o, w, 1).view(-1)": "SP005",
    "a, b = _ops.norm(x, o, w, 1)": "SP005",
    "y += _ops.norm(x, o, w, 1)": "SP005",
    "y = _ops.norm(x, o, w, 1) if c else None": "SP005",
    "y = [_ops.norm(x, o, w, 1) for o in os]": "SP005",
    "def f(*args):\n    return _ops.norm(*args)": "SP005",
    "def f(**k):\n    return _ops.norm(x, **k)": "SP005",
    "def f(x):\n    return _ops.norm(x, (y := x), x, 1)": "SP005",
    "def f(x, v, i):\n    return _ops.topk(x, v, i)": "SP005",
    "op = _ops.norm if c else other\ny = op(x, o, w, 1)": "SP005",
    "op = _ops.norm if c else _ops.add_\ny = op(x, o)": "SP005",
    "run(lambda: _ops.norm(x, o, w, 1))": "SP007",
    "bench(_ops.norm, x)": "SP007",
    "table['norm'] = _ops.norm": "SP007",
    "def f(x, op=_ops.norm): ...": "SP007",
    "bench(namespace=_ops)": "SP007",
    "y = getattr(_ops, name)(x, o)": "SP007",
    "y = getattr(getattr(torch.ops, space), name).default(x, o)": "SP007",
    "torch.library.register_fake(name, lambda *a: a[0])": "SP007",
    "torch.library.register_fake('ns::norm', functools.partial(fake, 1))": "SP007",
    "for name, fn in TABLE.items():\n    torch.library.register_fake(f'ns::{name}', fn)": "SP007",
    "def fake(x, *r):\n    return x\nfor name in 'norm', 'other':\n    torch.library.register_fake(f'ns::{name}', fake)": "SP006",
    "def fake(x, *r):\n    return x\ntorch.library.register_fake('ns::norm', fake)\nfake(1)": "SP006",
}


@pytest.mark.parametrize("text", SAID)
def test_said_and_left(text: str) -> None:
    data = f"{HEAD}{text}\n".encode()
    found = wrap.judge(data, "a.py", GONE)
    assert [finding.code for finding in found] == [SAID[text]]
    assert not found[0].fixable
    assert wrap.rewrite(data, "a.py", GONE)[0] == data


FINE = [
    "_ops.norm(x, o, w, 1)",
    "c and _ops.norm(x, o, w, 1)",
    "_ops.norm(x, o, w, 1) if c else _ops.add_(x, o)",
    "[_ops.norm(x, o, w, 1) for o in os]",
    "_ = _ops.norm(x, o, w, 1)",
    "def f(x, o) -> None:\n    return _ops.norm(x, o, x, 1)",
    "y = _ops.other(x, o)",
    "y = torch.ops.elsewhere.norm(x, o, x, 1)",
    "y = package.norm(x, o, x, 1)",
    "y = torch.ops.other.gemv.narrow(x, o)",
    "if hasattr(_ops, 'norm') and _ops.norm is not None: ...",
    "schema = _ops.norm.default._schema",
    "def f(_ops):\n    return _ops.norm(x, o, w, 1)",
    "text = 'y = _ops.norm(x, o, w, 1)'  # y = _ops.norm(x, o, w, 1)",
    "torch.library.register_fake('ns::norm', lambda *a: None)",
    "@torch.library.register_fake('ns::norm')\ndef _(*a):\n    torch._check(a)\n    return",
    "torch.library.register_fake('ns::other', lambda x: x)",
    "for name in ('other', 'more'):\n    torch.library.register_fake(f'ns::{name}', lambda x: x)",
]


@pytest.mark.parametrize("text", FINE)
def test_nothing_to_say(text: str) -> None:
    assert wrap.judge(f"{HEAD}{text}\n".encode(), "a.py", GONE) == []


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"# -*- coding: latin-1 -*-\n"])
def test_columns_are_bytes_of_the_file(start: bytes) -> None:
    encoding = "latin-1" if b"latin" in start else "utf-8"
    line = 'naïve = "é"; out = torch.ops.ns.norm(x, f("é"), "ü", 1)  # ö'
    new, _, found = wrap.rewrite(start + line.encode(encoding), "a.py", GONE)
    expected = 'naïve = "é"; torch.ops.ns.norm(x, (output := f("é")), "ü", 1); out = output  # ö'
    assert new == start + expected.encode(encoding)
    (finding,) = found
    offset = len(start) if b"\n" not in start else 0
    assert finding.location.column == offset + len('naïve = "é"; out = '.encode(encoding)) + 1


@pytest.mark.parametrize("data", [b"def f(:\n", b"x = '\xff'\n", b"# coding: nonsense\n", b"(" * 5000 + b")" * 5000])
def test_what_is_no_python(data: bytes) -> None:
    with pytest.raises(ToolError, match="expected Python, cannot parse it"):
        wrap.judge(data + b"norm", "a.py", GONE)


def test_names_that_go_in_circles_end() -> None:
    text = "\n".join(f"x = x.a{i} or x.b{i} or y\ny = x.c{i} if y else x" for i in range(60))
    assert wrap.judge(f"{HEAD}{text}\nz = x.norm(1)\n".encode(), "a.py", GONE) == []


def test_a_cheap_look_lets_nothing_by() -> None:
    for before, _ in REWRITTEN.values():
        assert calls.may_matter((HEAD + before).encode(), GONE)
    for text in SAID:
        assert calls.may_matter((HEAD + text).encode(), GONE) or "namespace=" in text
    assert not calls.may_matter(b"import torch\nx = torch.ops.aten.add(1, 2)\n", GONE)
    assert fakes.OTHER != names.ANY
