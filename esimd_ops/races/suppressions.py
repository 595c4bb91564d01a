"""Races that somebody has looked at and found harmless, with the reason, from a TOML file.

[[suppress]]
operator = "esimd_moe_scatter"      # or "*"
tensor = "expert_start"
lines = ["moe_ops.h:120"]            # of one side or both, by the end of the path
reason = "all groups store the same constant"
same_value = true                    # only while each such write stores what was there; the default
"""

from __future__ import annotations

import msgspec

from esimd_ops.trials import files
from schema_patch.model import Location, ToolError


class RaceSuppression(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One race, for a reason."""

    operator: str
    tensor: str
    lines: tuple[str, ...]
    reason: str
    same_value: bool = True


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    suppress: tuple[RaceSuppression, ...] = ()


class Suppressions:
    """Remembers which were used: one that no longer meets anything is told."""

    def __init__(self, entries: tuple[RaceSuppression, ...] = (), path: str = "") -> None:
        self.path = path
        self._entries = entries
        self._used: set[RaceSuppression] = set()

    @classmethod
    def read(cls, path: str) -> Suppressions:
        """Raises ToolError for a file that cannot be read, a key that is not known, or an empty reason."""
        entries = files.read(path, _File, "file of suppressions", toml=True).suppress
        for entry in entries:
            if not entry.reason.strip() or not entry.lines:
                raise ToolError(f"the suppression of {entry.operator}, '{entry.tensor}' needs lines and a reason", path)
        return cls(entries, path)

    def covers(self, op: str, tensor: str, now: Location, before: Location, *, same_value: bool) -> bool:
        for entry in self._entries:
            if entry.operator not in ("*", op) or entry.tensor != tensor or (entry.same_value and not same_value):
                continue
            places = [f"{place.path}:{place.line}" for place in (now, before)]
            if all(any(place.endswith(line) for place in places) for line in entry.lines):
                self._used.add(entry)
                return True
        return False

    def unused(self) -> list[str]:
        return [f"{e.operator}, '{e.tensor}', {', '.join(e.lines)}" for e in self._entries if e not in self._used]
