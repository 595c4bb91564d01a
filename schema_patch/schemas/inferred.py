"""What was inferred of an operator, for C++ and Python alike: values, with the chain of places that is the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

Place = tuple[str, int]  # file, line
Chain = tuple[Place, ...]


class Kind(str, Enum):
    """The three answers."""

    WRITTEN = "written"
    READ = "read only"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Answer:
    """What happens to one argument. The reason tells why it is unknown, or on which condition it is written."""

    name: str
    kind: Kind
    chain: Chain = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Native:
    """What a C++ function that Python calls does: an answer for each parameter, and whether all it returns is new."""

    answers: tuple[Answer, ...]
    fresh: bool


@dataclass(frozen=True, slots=True)
class Inferred:
    """What can be said of one operator. `returns` has, for each returned value, the argument handed back, "private
    buffer", "fresh" or "unknown"."""

    answers: tuple[Answer, ...]
    returns: tuple[str, ...]
    functions: tuple[str, ...]  # where the implementations stand
    reason: str = ""

    def of(self, name: str) -> Answer | None:
        return next((answer for answer in self.answers if answer.name == name), None)
