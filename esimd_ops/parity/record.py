"""The bits of one build, kept in a file, to hold another build against: where only schemas changed, they are equal."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from esimd_ops.trials import files
from esimd_ops.trials.messages import Observation
from schema_patch.model import Severity

from .supervise import CheckRun

VERSION = 1


class BitsRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """operator -> sample -> output -> SHA-256 of its bits."""

    version: int
    device: str
    digests: dict[str, dict[str, dict[str, str]]]


def of(outcome: CheckRun, device: str) -> BitsRecord:
    """What can be relied on: operators whose results repeat."""
    steady = {op: done for op, done in outcome.done.items() if not any(t.code == "PA107" for t in done.told)}
    return BitsRecord(VERSION, device, {op: done.digests for op, done in steady.items() if done.digests})


def read(path: str) -> BitsRecord:
    """Raises ToolError for a file that is not a record of this version."""
    return files.read(path, BitsRecord, "record of this check", version=VERSION)


def compare(now: BitsRecord, then: BitsRecord) -> Iterator[tuple[str, Observation]]:
    """Operators whose bits are not those of the record, and what differs. What only one of both has is a warning."""
    for op in dict.fromkeys((*now.digests, *then.digests)):
        ours, theirs = now.digests.get(op, {}), then.digests.get(op, {})
        shared = [label for label in ours if label in theirs]
        differing = [
            (label, name) for label in shared for name in ours[label] if ours[label][name] != theirs[label].get(name)
        ]
        words, severity = "no sample in common with the record", Severity.WARNING
        if not ours or not theirs:
            words = f"not in {'the record' if ours else 'this build'}, so not compared"
        elif differing:
            label, name = differing[0]
            more = f" (and {len(differing) - 1} more outputs)" if len(differing) > 1 else ""
            words, severity = f"{label}: '{name}' has other bits than in the record{more}", Severity.ERROR
        if differing or not shared:
            yield op, Observation("PA113", words, severity.value)
