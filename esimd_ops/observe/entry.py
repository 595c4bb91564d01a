"""The way by which Python calls operators: what stands in it, and out of it again. Watches nothing itself.

`torch.ops.mylib.op(...)`, its overloads, `torch.library.custom_op` and compiled code all call `_op` of a packet or an
overload. Another callable is put there, in every thread; where it is taken out nothing is left. Not seen: what C++
calls of itself (TorchScript, a backward in C++, functions of an extension module) and replays of captured graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import torch
from torch._ops import OpOverload, OpOverloadPacket, _OpNamespace

Callee: TypeAlias = "OpOverload[..., Any] | OpOverloadPacket[..., Any]"  # as text: torch 2.7 has no parameters there
Replace: TypeAlias = "Callable[[Callee, Callable[..., Any]], Instead | None]"

# Namespaces of torch itself, with those that its own packages add when they are imported.
TORCHS_OWN = frozenset(
    "_c10d_functional _c10d_functional_autograd _dtensor _inductor_test _native _quantized _test aten aten_test c10d "
    "c10d_functional cuda debug_mode_ops debugprims export flex_lib fsdp inductor inductor_prims mkl mkldnn "
    "mkldnn_prepacked nvprims onednn onnx onnx_symbolic prepacked prim prims profiler quantization quantized "
    "quantized_decomposed rngprims schema_kit_guard sparse static_runtime streams symm_mem tensorexpr torchgen "
    "xnnpack".split()
)


class Instead:
    """Stands in the place of an operator's function. Equal calls, and the same hash, which torch's tables rely on."""

    def __init__(self, original: Callable[..., Any], callee: Callee) -> None:
        self.original, self.callee = original, callee
        self._hash = hash(original)
        self._closed = False

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.original(*args, **kwargs)

    def __hash__(self) -> int:
        return self._hash

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)

    def put(self) -> None:
        above = self._above(self.original)
        if self._closed or (above is None and self.callee._op is not self.original):
            return
        if isinstance(self.callee, OpOverloadPacket):  # torch.jit.script knows operators by their functions
            torch.jit._builtins._register_builtin(self, name_of(self.callee))
        if above:
            above.original = self
        else:
            self.callee._op = self

    def close(self) -> None:
        self._closed = True
        self.take()

    def take(self) -> None:
        torch.jit._builtins._get_builtin_table().pop(id(self), None)
        if self.callee._op is self:
            self.callee._op = self.original
        elif above := self._above(self):
            above.original = self.original

    def _above(self, function: Any) -> Instead | None:
        """Of several that stand in one place, as of two who observe, the one that calls this function."""
        each = self.callee._op
        while isinstance(each, Instead) and each is not self:
            if each.original is function:
                return each
            each = each.original
        return None


class Interception:
    """Puts what `replace` makes (None: nothing) in the place of all operators, now and when they are first used."""

    def __init__(self, replace: Replace) -> None:
        self._replace = replace
        self._placed: list[Instead] = []
        self._undo: list[Callable[[], None]] = []

    def open(self) -> None:
        self._follow(OpOverload)
        self._follow(OpOverloadPacket)
        refresh: Callable[[OpOverloadPacket[..., Any]], None] = torch._ops._refresh_packet

        def refreshed(packet: OpOverloadPacket[..., Any]) -> None:
            """A new overload was defined: the packet has another function."""
            refresh(packet)
            self._place(packet)

        torch._ops._refresh_packet = refreshed
        self._undo.append(lambda: setattr(torch._ops, "_refresh_packet", refresh))
        for callee in list(bound()):
            self._place(callee)

    def close(self) -> None:
        for undo in self._undo:
            undo()
        for placed in self._placed:
            placed.close()
        self._undo, self._placed = [], []

    def _follow(self, kind: type[Any]) -> None:
        """What is made from now on is placed too."""
        made = kind.__init__

        def init(callee: Any, *args: Any, **kwargs: Any) -> None:
            made(callee, *args, **kwargs)
            self._place(callee)

        kind.__init__ = init
        self._undo.append(lambda: setattr(kind, "__init__", made))

    def _place(self, callee: Callee) -> None:
        instead = self._replace(callee, callee._op)
        if instead is not None:
            instead.put()
            self._placed.append(instead)


def hide_from_dynamo(function: Any) -> None:
    """torch.compile tries to compile what a frame calls that it does not compile: not this, nor what this calls."""
    dynamo: Any = torch._C._dynamo.eval_frame
    skip = dynamo._FrameAction.SKIP
    dynamo.set_code_exec_strategy(function.__code__, dynamo._FrameExecStrategy(skip, skip))


def bound() -> Iterator[Callee]:
    """Every packet that Python has used, and its overloads."""
    for space in list(vars(torch.ops).values()):
        if isinstance(space, _OpNamespace):
            for packet in list(vars(space).values()):
                if isinstance(packet, OpOverloadPacket):
                    yield packet
                    yield from (each for each in list(vars(packet).values()) if isinstance(each, OpOverload))


def name_of(callee: Callee) -> str:
    """As namespace::name, without the overload."""
    return callee._schema.name if isinstance(callee, OpOverload) else callee._qualified_op_name


def overload_of(callee: Callee, args: Any, kwargs: Any) -> str:
    """The overload that a call comes to, "" for the default one."""
    if isinstance(callee, OpOverload):
        return callee._schema.overload_name
    names = callee._overload_names
    if len(names) == 1:
        return names[0]
    found: str = torch._C._jit_resolve_packet(callee._qualified_op_name, *args, **kwargs)
    return "" if found == "default" else found
