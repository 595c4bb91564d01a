"""What happens to tensors and to what pointers lead to: writes, reads, and what goes out of sight. No syntax."""

from __future__ import annotations

from tree_sitter import Node

from schema_patch.inference.domain.state import Variable
from schema_patch.inference.domain.summary import LOST, WRITE
from schema_patch.inference.domain.values import (
    DATA,
    DEREF,
    NOTHING,
    TENSOR,
    Local,
    Parameter,
    Value,
    in_data,
    pointers,
    rooted,
    select,
    union,
)

from .frame import FunctionReader


class TensorMemory(FunctionReader):
    """Effects on what values stand for; a node is where they are caused."""

    def tensors(self, value: Value) -> Value:
        """The tensors among these places."""
        return frozenset(o for o in value if self.frame.is_tensor(o))

    def write_data(self, value: Value, node: Node) -> None:
        """The data of these tensors is written, or of those in a list; what a made tensor stands on is that data."""
        state, here = self.state, self.frame.here(node)
        made = rooted(value, Local)
        if made:
            state.store(select(state.select(made, DATA) - select(made, DATA), DEREF), NOTHING, here)
            value |= state.select(made, DEREF)
        for root, path, const in value:
            if isinstance(root, Parameter) and not in_data(path):
                state.effect(WRITE, (root, (*path, DATA, DEREF), const), here)

    def write_through(self, value: Value, node: Node) -> None:
        """What these pointers lead to is written, or the data of these tensors."""
        tensors = self.tensors(value)
        self.write_data(tensors, node)
        self.state.store(select(value - tensors, DEREF), NOTHING, self.frame.here(node))

    def write_some(self, values: list[Value], written: set[int], node: Node) -> None:
        """What the arguments at some positions lead to is written, the others are read."""
        for number, value in enumerate(values):
            if number in written:
                self.write_through(value, node)
            else:
                self.state.read_data(value)

    def write_in_place(self, variable: Variable, node: Node) -> None:
        """`x += y` writes the data of a tensor x, and moves a pointer x."""
        for root, path, const in self.state.load([(variable.root, (), False)]):
            if isinstance(root, Parameter) and "Tensor" in variable.kind and DATA not in path:
                self.state.effect(WRITE, (root, (*path, DATA, DEREF), const), self.frame.here(node))

    def lose(self, value: Value, node: Node) -> None:
        """Pointers in an object of which a method that is not seen may write through them."""
        for origin in rooted(pointers(self.state.reachable(value), to_write=True), Parameter):
            self.state.effect(LOST, origin, self.frame.here(node))

    def new_tensor(self, values: list[Value]) -> Value:
        """A tensor that the function makes: a place of its own, so that pointers kept in it are found again."""
        self.state.read_data(pointers(union(values)))
        return self.state.make(TENSOR)
