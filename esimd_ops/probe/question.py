"""What to probe, and what was seen: values that travel between the processes. Imports no torch."""

from __future__ import annotations

import msgspec


class ProgramSeen(msgspec.Struct, frozen=True):
    """What became of one program: "right", "wrong", "deleted" (wrong, and no call is left), or "refused"."""

    program: str
    stage: str  # "functionalized", "inductor" or "replay"
    outcome: str
    detail: str = ""
    text: str = ""  # the graph or code, where something is wrong with it

    @property
    def silent(self) -> bool:
        """Wrong, and torch said nothing."""
        return self.outcome not in ("right", "refused", "not comparable")


class Question(msgspec.Struct, frozen=True):
    """What to probe. samples: a Python file with SAMPLES (operator -> arguments, a second set for replay optional) and
    WRITES (operator -> names), RETURNS (operator -> what it returns), for operators that the table does not know."""

    namespace: str
    op: str
    device: str
    libraries: tuple[str, ...] = ()
    samples: str = ""
    guard: bool = False


class ProbeAnswer(msgspec.Struct, frozen=True, tag="answer"):
    """What was seen; `failed` where the operator could not be tried. `no_fake`: it was tried with a stand-in."""

    schema: str = ""
    seen: tuple[ProgramSeen, ...] = ()
    failed: str = ""
    no_fake: bool = False
