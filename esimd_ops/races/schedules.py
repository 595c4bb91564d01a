"""Names for the orders in which the runtime lets work-groups and work-items run. Words in, words out; runs nothing."""

from __future__ import annotations

from schema_patch.model import ToolError

# The words are those of the runtime (runtime/schedule.hpp); the first is the one for values.
NAMED = {
    "descending": "descending,lockstep",
    "ascending": "ascending,lockstep",
    "random": "random,lockstep,seed=1",
    "serial": "descending,serial",
    "together": "ascending,lockstep,resident=all",
    "late 2": "ascending,lockstep,resident=all,stagger=2",
    "late 8": "ascending,lockstep,resident=all,stagger=8",
    "late 64": "ascending,lockstep,resident=all,stagger=64",
    "20 resident": "ascending,lockstep,resident=20",
    "preempted": "random,shuffled,resident=8,preempt=0.3,seed=1",
}


def resolve(asked: tuple[str, ...]) -> dict[str, str]:
    """Name -> words: those named, or words of one's own; all where none is asked for. Raises ToolError for others."""
    if not asked:
        return dict(NAMED)
    chosen: dict[str, str] = {}
    for one in (part.strip() for words in asked for part in words.split(";")):
        if one in NAMED:
            chosen[one] = NAMED[one]
        elif "," in one or "=" in one:
            chosen[one] = one
        else:
            raise ToolError(
                f"--schedules: expected one of {', '.join(NAMED)}, or words such as "
                f"'random,lockstep,resident=20,seed=7'; found '{one}'"
            )
    return chosen
