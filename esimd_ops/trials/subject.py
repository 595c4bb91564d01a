"""An operator under trial: what it writes, what to call it with, and what its outputs are held to.

Two kinds: an operator of the table (here), and one that its user describes (`given`). Runs no operator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from esimd_ops import fakes, samples
from esimd_ops.reference import Tensors
from esimd_ops.samples import build, domain, models
from esimd_ops.table import Operator
from schema_patch.model import Effect, ToolError
from schema_patch.schemas import table
from schema_patch.schemas.grammar import Schema

from . import judge
from .judge import Truth


class TrialSubject(ABC):
    """One operator. `overwritten` are those written arguments whose old contents do not matter; `certain`: somebody
    said what it writes, else that is what its schema declares."""

    name: str
    certain: bool = True
    writes: tuple[str, ...]
    overwritten: tuple[str, ...]
    returned: str | None
    over: Mapping[str, str] = {}  # an output and the input that it may be

    @abstractmethod
    def labels(self, shapes: str = "all") -> tuple[str, ...]:
        """The names of the samples of a set, the ordinary one first."""

    @abstractmethod
    def make(self, label: str) -> build.Arguments:
        """The arguments of a sample, new ones each time."""

    def others(self, label: str) -> build.Arguments | None:  # noqa: ARG002  the table knows
        """Other arguments of the same sizes; None where nobody can make them."""
        return None

    @abstractmethod
    def truth(self, arguments: build.Arguments) -> Truth | None:
        """What a call with these arguments should give; None where nobody knows."""

    @abstractmethod
    def effect(self, schema: Schema) -> Effect | None:
        """What it does to its arguments, for this schema; None where nothing is known."""

    @abstractmethod
    def fake(self, schema: Schema) -> Callable[..., Any] | None:
        """What torch.compile may assume where the library says nothing; None where that is not known."""

    def published(self, arguments: build.Arguments) -> bool:  # noqa: ARG002  the table knows
        """The arguments are in the domain that the operator promises to compute."""
        return True

    def comparable(self, outputs: Tensors) -> Tensors:
        """The outputs as they are compared."""
        return outputs

    def chosen(self, shapes: str, *, beyond: bool) -> Iterable[str]:
        """The samples of a set in the operator's domain, or `beyond` it too; of "decode" the first of them."""
        for label in self.labels("all" if shapes == "decode" else shapes):
            if beyond or self.published(self.make(label)):
                yield label
                if shapes == "decode":
                    return


class OfTable(TrialSubject):
    """An operator of the table: its samples, its reference, its tolerances."""

    def __init__(self, operator: Operator) -> None:
        self.name, self.writes, self.returned = operator.name, operator.writes, operator.returned
        self.overwritten, self.over = operator.overwritten, operator.over
        self._operator = operator
        self._sizes = {build.label(sizes): sizes for sizes in operator.samples}

    def labels(self, shapes: str = "all") -> tuple[str, ...]:
        """Sets: "all", "models" (those of served models), or labels separated by commas.

        Raises ToolError for a label that is none of the operator's and no list of its sizes.
        """
        if shapes == "all":
            return tuple(self._sizes)
        asked = models.SIZES.get(self.name, ()) if shapes == "models" else map(self._read, shapes.split(","))
        self._sizes |= (named := {build.label(sizes): sizes for sizes in asked})
        return tuple(named)

    def _read(self, label: str) -> build.Sizes:
        """A label, known or not: numbers, then perhaps a variant."""
        label = label.strip()
        if label in self._sizes:
            return self._sizes[label]
        sizes = build.read(label)
        if list(map(type, sizes)) != [int] * sum(isinstance(n, int) for n in self._operator.samples[0]):
            raise ToolError(f"--shapes: expected sizes such as {next(iter(self._sizes))}, found '{label}'", self.name)
        return sizes

    def make(self, label: str) -> build.Arguments:
        return samples.make(self.name, self._sizes[label]).arguments

    def others(self, label: str) -> build.Arguments:
        return samples.make(self.name, self._sizes[label], turn=1).arguments

    def truth(self, arguments: build.Arguments) -> Truth:
        return judge.ByReference(self._operator, arguments)

    def effect(self, schema: Schema) -> Effect | None:
        return table.load().effect(schema)

    def fake(self, schema: Schema) -> Callable[..., Any]:
        return fakes.fake_of(schema)

    def published(self, arguments: build.Arguments) -> bool:
        return domain.published(self.name, arguments)

    def comparable(self, outputs: Tensors) -> Tensors:
        return self._operator.comparable(outputs)
