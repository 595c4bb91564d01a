"""What to check, as a value that travels to the child process, and the messages that come back. Imports no torch."""

from __future__ import annotations

import msgspec


class TrialRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What every request for trials says.

    namespace  the operators are torch.ops.<namespace>.*
    device     "cpu" or "xpu"
    operators  names; empty for all of which somebody said what to try them with
    skip       names not to run, since an earlier process has done them or died of them
    libraries  shared libraries, Python files or modules that register the operators; empty to import what belongs to
               the namespace
    beyond     also arguments outside the domain of the published library
    shapes     "decode" (the ordinary one), "all", "models", or sizes such as "8x4x8"
    samples    a file or function that describes operators (`given`); "" for none
    """

    namespace: str = "esimd_ops"
    device: str = "cpu"
    operators: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    beyond: bool = False
    shapes: str = "all"
    samples: str = ""


class Request(TrialRequest, frozen=True, kw_only=True):
    """One run of the check.

    repeat     how often the same inputs are run
    effort     "quick": the first sample of each operator and no more; "usual"; "severe": everything for each sample
    """

    repeat: int = 20
    effort: str = "usual"


class Observation(msgspec.Struct, frozen=True):
    """What was found of an operator: a finding without its place."""

    code: str
    message: str
    severity: str = "error"


class Roster(msgspec.Struct, frozen=True, tag="roster"):
    """The operators that the libraries registered, by name, with their schemas, and which of them will be run."""

    schemas: dict[str, str]
    run: tuple[str, ...]


class OperatorDone(msgspec.Struct, frozen=True, tag="done"):
    """One operator is through. `digests`: sample -> output -> SHA-256 of its bits."""

    op: str
    verdict: str
    samples: int
    told: tuple[Observation, ...]
    refused: tuple[str, ...] = ()
    digests: dict[str, dict[str, str]] = {}


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The work could not be started: a library is not there, a device is missing."""

    message: str


CheckMessage = Roster | OperatorDone | Failed
