"""Names for the orders in which the runtime lets work-groups and work-items run. Words in, words out; runs nothing."""

from __future__ import annotations

from schema_patch.model import ToolError
from schema_patch.schemas.cards import find

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


# As a card runs a launch, as near as is known: groups in the order of their numbers, so many as it holds at once; the
# last groups some memory operations behind the first; and, in two random orders of steps, some held up.
OF_CARDS = {
    "": "ascending,lockstep",
    " late": "ascending,lockstep,stagger=16",
    " preempted": "ascending,shuffled,preempt=0.05,seed=1",
    " preempted again": "ascending,shuffled,preempt=0.3,seed=2",
}


def chosen(asked: tuple[str, ...], cards: tuple[str, ...]) -> dict[str, str]:
    """Name -> words: the schedules asked for, and those of the cards; all named ones where neither is said.

    Raises ToolError for a schedule or card that is none.
    """
    of_card = _of_cards([name for part in cards for name in part.replace(",", " ").split()])
    return {**of_card, **(_resolve(asked) if asked or not of_card else {})}


def _of_cards(names: list[str]) -> dict[str, str]:
    """Schedules that run every kernel with the residency of these cards."""
    for name in names:
        find(name)
    return {
        f"{name}{suffix}": f"{words},card={name}" for name in dict.fromkeys(names) for suffix, words in OF_CARDS.items()
    }


def _resolve(asked: tuple[str, ...]) -> dict[str, str]:
    """Name -> words: those named, or words of one's own; all where none is asked for."""
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
