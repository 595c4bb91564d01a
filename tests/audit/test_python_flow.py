"""Python that moves a tensor about and writes it in the end: torch runs each line, and the audit may never say otherwise.

A line that writes is told as a write, or as unknown; one that does not is never told as a write.
"""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest
import torch

from schema_patch.python import flow
from schema_patch.python.modules import Modules

HELPERS = """
import asyncio, collections, copy, ctypes, dataclasses, functools, itertools, operator, types
import numpy as np
import torch
import torch.nn.functional as F
def helper(t): t.add_(1)
def second(a, b): b.add_(1)
def keyword(a, *, out): out.add_(1)
def rest(a, *more): more[0].add_(1)
def options(a, **more): more["out"].add_(1)
def same(t): return t
def listed(t): return [t]
def gen(t): yield t
def flagged(t, put=False):
    if not put: return t + 1
    t.add_(1)
def flagged_on(t, put=True):
    return t.add_(1) if put else t
def flagged_changed(t, put=False):
    for put in (put, True): t.sum()
    if put: t.add_(1)
def default(a, out=None):
    if out is not None: out.add_(1)
@dataclasses.dataclass
class Box:
    t: object
    def run(self): self.t.add_(1)
    def take(self, t): t.add_(1)
"""
# `\n` in a line is a new one.
WRITES = r"""
d = {"k": x}; d["k"].add_(1)
d = {}; d["k"] = x; d["k"].add_(1)
d = dict(k=x); d["k"].add_(1)
d = {}; d.update(k=x); d["k"].add_(1)
d = {}; d.update({"k": x}); d["k"].add_(1)
d = {}; d.setdefault("k", x); d["k"].add_(1)
d = {"k": x} | {"m": y}; d["k"].add_(1)
d = {k: v for k, v in [("k", x)]}; d["k"].add_(1)
d = {**{"k": x}}; d["k"].add_(1)
d = dict(zip(["k"], [x])); d["k"].add_(1)
for k, v in {"k": x}.items(): v.add_(1)
for v in {"k": x}.values(): v.add_(1)
d = {"a": {"b": x}}; d["a"]["b"].add_(1)
l = [x]; l[0].add_(1)
l = []; l.append(x); l[0].add_(1)
l = []; l.extend([x]); l[-1].add_(1)
l = []; l.insert(0, x); l[0].add_(1)
l = []; l += [x]; l[0].add_(1)
l = [y] + [x]; l[1].add_(1)
l = [x] * 2; l[1].add_(1)
l = [None]; l[0] = x; l[0].add_(1)
l = [y, x]; m = l[1:]; m[0].add_(1)
l = [t for t in (x,)]; l[0].add_(1)
l = list((x,)); l[0].add_(1)
l = tuple([x]); l[0].add_(1)
l = sorted([x], key=id); l[0].add_(1)
l = list(reversed([x])); l[0].add_(1)
l = list(enumerate([x])); l[0][1].add_(1)
l = list(zip([x], [y])); l[0][0].add_(1)
l = list(itertools.chain([x], [y])); l[0].add_(1)
l = list(map(same, [x])); l[0].add_(1)
l = list(filter(None.__class__, [])) or [x]; l[0].add_(1)
l = copy.copy([x]); l[0].add_(1)
t = next(iter([x])); t.add_(1)
t = [x].pop(); t.add_(1)
t = {"k": x}.pop("k"); t.add_(1)
t = {"k": x}.get("k"); t.add_(1)
a, *b = y, x; b[0].add_(1)
a, (b, c) = y, (y, x); c.add_(1)
(a, b), c = [(y, x), y]; b.add_(1)
a = b = x; a.add_(1)
t = x if n else y; t.add_(1)
t = x or y if n < 0 else x; t.add_(1)
if (t := x) is not None: t.add_(1)
for t in (y, x): t.add_(1)
for t in [x, y][:1]: t.add_(1)
while n: t = x; t.add_(1); n = 0
with torch.no_grad(): t = x; t.add_(1)
try: raise ValueError\nexcept ValueError: x.add_(1)
try: pass\nfinally: x.add_(1)
match n:\n  case 1: x.add_(1)
o = types.SimpleNamespace(t=x); o.t.add_(1)
o = types.SimpleNamespace(); o.t = x; o.t.add_(1)
o = types.SimpleNamespace(); setattr(o, "t", x); o.t.add_(1)
o = Box(x); o.run()
o = Box(y); o.t = x; o.run()
o = Box(y); o.take(x)
Box(x).run()
helper(x)
helper(t=x)
second(y, x)
second(b=x, a=y)
keyword(y, out=x)
rest(y, x)
rest(*[y, x])
rest(y, *[x])
second(*(y, x))
helper(*[x])
options(y, out=x)
options(y, **{"out": x})
keyword(y, **dict(out=x))
default(y, x)
default(y, out=x)
same(x).add_(1)
listed(x)[0].add_(1)
for t in gen(x): t.add_(1)
t = next(gen(x)); t.add_(1)
f = lambda t: t.add_(1); f(x)
f = lambda: x.add_(1); f()
f = lambda t=x: t.add_(1); f()
(lambda t: t.add_(1))(x)
def g(t): t.add_(1)\ng(x)
def g(): x.add_(1)\ng()
torch.nn.functional.batch_norm(torch.rand(2, len(x.view(-1))), x.view(-1), y.view(-1).clone().abs(), training=True)
F.batch_norm(torch.rand(2, len(x.view(-1))), running_mean=x.view(-1), running_var=y.view(-1).abs() + 1, training=True)
torch.batch_norm(torch.rand(2, len(x.view(-1))), None, None, x.view(-1), y.view(-1).abs() + 1, True, 0.1, 1e-5, False)
torch.ops.aten.native_batch_norm(torch.rand(2, len(x.view(-1))), None, None, x.view(-1), y.view(-1).abs() + 1, True, 0.1, 1e-5)
F.embedding(torch.zeros(1, dtype=torch.long), x.view(1, -1), max_norm=0.1)
F.embedding(torch.zeros(1, dtype=torch.long), x.view(1, -1), None, 0.1)
F.dropout(x, 0.9999, True, True)
F.threshold(x, 1e9, 5.0, True)
def g(t, put=True): F.threshold(t, 1e9, 5.0, inplace=put)\ng(x)
np.add(y.numpy(), y.numpy(), x.numpy())
np.sqrt(y.abs().numpy() + 3, x.numpy())
x.set_(y + 1)
g = getattr(x, "fill_"); g(7)
v = [x]; v[-1] += 1
class C:\n  t = x\nC.t.add_(1)
torch.frombuffer(x.numpy(), dtype=x.dtype).add_(1)
torch.nn.Parameter(x, requires_grad=False).add_(1)
torch.autograd.Variable(x).add_(1)
exec("x.add_(1)")
eval("x.add_(1)")
locals()["x"].add_(1)
vars()["x"].add_(1)
max([x], key=id).add_(1)
def g(t=x): t.add_(1)\ng()
def g(): return x\ng().add_(1)
class K:\n  def run(self): x.add_(1)\nK().run()
f = functools.partial(helper, x); f()
f = functools.partial(second, y); f(x)
f = x.add_; f(1)
f = helper; f(x)
f = {"k": helper}["k"]; f(x)
f = [helper][0]; f(x)
[helper][0](x)
getattr(x, "add_")(1)
getattr(types.SimpleNamespace(t=x), "t").add_(1)
operator.iadd(x, 1)
operator.setitem(x, 0, 5)
x.__iadd__(1)
x.__setitem__(0, 5)
torch.Tensor.add_(x, 1)
torch.Tensor.__setitem__(x, 0, 5)
torch.add(x, 1, out=x)
torch.relu_(x.neg_())
torch.ops.aten.add_(x, 1)
torch.ops.aten.add_.Tensor(x, y)
torch.ops.aten.add.out(x, y, out=x)
torch.ops.aten.copy_(self=x, src=y)
torch._foreach_add_([x], 1)
F.relu(x.sub_(9), inplace=True)
x.copy_(y)
x[0] = 5
x[:] = 5
x[x > -99] = 5
x[0] += 5
x += 1
x.data.add_(1)
x.view(-1)[0] = 5
x.numpy()[0] = 5
x.untyped_storage().fill_(1)
torch.as_tensor(x).add_(1)
torch.atleast_2d(x).add_(1)
torch.broadcast_to(x, x.shape).add_(1)
torch.narrow(x, 0, 0, 1).add_(1)
torch.unbind(x)[0].add_(1)
x.unbind()[0].add_(1)
x.split(1)[0].add_(1)
x.chunk(2)[0].add_(1)
x.swapdims(0, 0).add_(1)
x.moveaxis(0, 0).add_(1)
x.narrow_copy(0, 0, 1).add_(1); x.add_(1)
x.unsqueeze(0).squeeze(0).add_(1)
x.expand_as(x).add_(1)
x.detach().add_(1)
x.contiguous().add_(1)
x.reshape(-1).add_(1)
x.to(x.dtype).add_(1)
x.ravel().add_(1)
torch.stack([x]).add_(1); x.add_(1)
t = torch.empty(3); t[0] = x[0]; x.add_(1)
t = x.__getitem__(0); t.add_(1)
t = x[None][0]; t.add_(1)
t = x[...]; t.add_(1)
t = x[torch.arange(1).item()]; t.add_(1)
s = slice(None); x[s].add_(1)
i = (0,); x[i].add_(1)
def g(*a, **k): k["t"].add_(1)\ng(t=x)
def g(*a): a[0].add_(1)\ng(x)
def g(f, t): f(t)\ng(helper, x)
functools.reduce(lambda a, b: a.add_(b), [x, y])
any(t.add_(1) is None for t in (x,))
list(map(helper, [x]))
[helper(t) for t in (x,)]
{t.add_(1) for t in (x,)}
assert x.add_(1) is not None
x.add_(1) if n else None
n and x.add_(1)
f"{x.add_(1)}"
d = {"f": x.add_}; d["f"](1)
torch.vmap(lambda t: t)(x); x.add_(1)
torch.func.vmap(lambda t: t.add_(1))(x)
torch.cond(torch.tensor(True), lambda t: t.clone(), lambda t: t.clone(), (x,)); x.add_(1)
del y; x.add_(1)
global G\nG = x\nG.add_(1)
torch.relu_(input=x.neg_())
torch.swapaxes(x, 0, 0).add_(1)
match [x]:\n  case [t]: t.add_(1)
match [y, x]:\n  case [_, *more]: more[0].add_(1)
async def g(): x.add_(1)\nasyncio.run(g())
d = {}; d['a'] = {}; d['a']['b'] = x; d['a']['b'].add_(1)
l = [[y], [x]]; l[1][0].add_(1)
torch.ops.aten.view.default(x, [3]).add_(1)
torch.ops.aten.detach(x).add_(1)
l = []; l.append((y, x)); l[0][1].add_(1)
q = collections.deque([y]); q.appendleft(x); q.popleft().add_(1)
d = collections.defaultdict(list); d['k'].append(x); d['k'][0].add_(1)
x.numpy().fill(7)
x.numpy()[...] = 7
x.numpy()[::-1].sort()
a = x.numpy(); a.put([0], [7])
a = [x.numpy()]; a[0].sort(); a[0].fill(7)
a = x.numpy()[0:2]; a.fill(7)
a = np.asarray(x); a.fill(7)
a = np.asarray(x, dtype="float32"); a[0] = 7
a = x.__array__(); a[0] = 7
x.numpy().flat[0] = 7
x.detach().numpy().reshape(-1)[0] = 7
np.copyto(x.numpy(), 7)
np.add.at(x.numpy(), [0], 7)
np.multiply(x.numpy(), 2, out=x.numpy())
np.put(x.numpy(), [0], [7])
np.nan_to_num(x.mul_(0).div_(0).numpy(), copy=False)
a = x.numpy(); a.partition(1); a[0] = 7
a = x.numpy().view("int32"); a |= 7
def f(t): return t.numpy()\nf(x).fill(7)
memoryview(x.numpy())[0] = 7
torch.frombuffer(memoryview(x.numpy()), dtype=torch.float32).add_(1)
ctypes.memset(x.data_ptr(), 0, 4)
ctypes.memset(x.data_ptr() + 4, 0, 4)
p = x.data_ptr(); p += 4; ctypes.memset(p, 0, 4)
ctypes.memset(int(f"{x.data_ptr()}"), 0, 4)
ctypes.memset(int(hex(x.data_ptr()), 16), 0, 4)
p = int(x.data_ptr()); ctypes.memset(p | 4, 0, 4)
p = x.numpy().__array_interface__["data"][0]; ctypes.memset(p, 0, 4)
(ctypes.c_float * 3).from_address(x.data_ptr())[0] = 7
ctypes.cast(x.data_ptr(), ctypes.POINTER(ctypes.c_float))[0] = 7
p = ctypes.c_void_p(x.data_ptr()); ctypes.memset(p, 0, 4)
f = ctypes.memset; f(x.data_ptr(), 0, 4)
getattr(ctypes, "memset")(x.data_ptr(), 0, 4)
p = (x.data_ptr(), 4); ctypes.memset(p[0], 0, p[1])
p = max(x.data_ptr(), 0); ctypes.memset(p, 0, 4)
x.untyped_storage()[0] = 7
x.untyped_storage().fill_(7)
torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)).add_(1)
np.from_dlpack(x)[0] if False else x.numpy().fill(7)
flagged(x, True)
flagged(x, put=True)
flagged(x, n == 1)
flagged(x, not False)
flagged(x, *[True])
flagged(x, **{"put": True})
flagged(x, put=False or True)
flagged_on(x)
flagged_changed(x, False)
flagged_changed(x)
def g(t, put):\n  flagged(t, put)\ng(x, True)
def g(t, put=False):\n  flagged(t, not put)\ng(x)
def g(t, put):\n  def h(): flagged(t, put)\n  put = True\n  h()\ng(x, False)
(lambda put: flagged(x, put))(True)
(lambda: x.add_(1))()
(lambda t: t.add_(1))(x)
{"f": lambda: x.add_(1)}["f"]()
functools.partial(flagged, put=True)(x)
""".strip().split("\n")
SURE = 162
READS = r"""
t = x.clone(); t.add_(1)
t = x + y; t.add_(1)
d = {"k": x}; d["k"] = y; z = d["k"].sum()
l = [x, y]; z = torch.stack(l); z.add_(1)
t = torch.empty(3); t.copy_(x); t.add_(1)
t = torch.empty(3); t[0] = x[0]; t.add_(1)
z = x.sum().item()
z = F.relu(x); z.add_(1)
z = same(x).sum()
z = sorted([x], key=id)[0].sum()
z = dict(zip(["k"], [x]))["k"].mean()
x = x.float() * 2; x.add_(1)
z = torch.zeros_like(x); z.add_(x)
z = helper(x.clone())
o = types.SimpleNamespace(t=x); z = o.t.sum()
a = x.numpy() + 1; a[0] = 3; a.sort()
a = x.numpy().copy(); a.sort()
z = np.sort(x.numpy()).sum()
z = x.numpy().sum()
t = x.sort(descending=True)[0]; t.add_(1)
a = np.array(x.numpy()); a.fill(3)
flagged(x)
flagged(x, False)
flagged(x, put=False)
flagged(x, put=not True)
flagged_on(x, False)
def g(t, put):\n  flagged(t, put)\ng(x, False)
def g(t, put):\n  flagged(t, put and n == 1)\ng(x, False)
def g(t, put=False):\n  if put or False: t.add_(1)\n  else: t.sum()\ng(x)
""".strip().split("\n")


def told(folder: Path, line: str) -> tuple[bool, str]:
    """Whether the line changes x, and what the audit says of x."""
    body = textwrap.indent(line.replace(r"\n", "\n"), "    ")
    source = f"{HELPERS}\ndef op(x: torch.Tensor, y: torch.Tensor, n: int) -> None:\n{body}\n"
    path = str(folder / "op.py")
    functions = Modules().at(path, ast.parse(source)).functions
    modules = Modules([path])
    modules.at(path, ast.parse(source))
    answers, _ = flow.read(functions["op"], path, functions, {}, modules)
    x, before = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0, 3.0])
    names: dict[str, object] = {}
    exec(compile(source, "op", "exec"), names)
    names["op"](x, torch.tensor([4.0, 5.0, 6.0]), 1)  # type: ignore[operator]
    return not torch.equal(x, before), answers["x"].kind.value


def test_a_write_is_never_called_a_read(tmp_path: Path) -> None:
    found = {line: told(tmp_path, line) for line in WRITES}
    assert [line for line, (changed, _) in found.items() if not changed] == []
    assert [line for line, (_, kind) in found.items() if kind == "read only"] == []
    assert sum(kind == "written" for _, kind in found.values()) >= SURE


@pytest.mark.parametrize("line", READS)
def test_a_read_is_never_called_a_write(tmp_path: Path, line: str) -> None:
    changed, kind = told(tmp_path, line)
    assert not changed
    assert kind == ("unknown" if "Namespace" in line else "read only")
