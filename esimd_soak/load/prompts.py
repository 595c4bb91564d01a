"""Request number -> prompt, by seed: a resumed run sends what the first would have sent. Reads prompt files only."""

from __future__ import annotations

import random
import re

import msgspec

from esimd_soak.model import ToolError, contents
from esimd_soak.plan import Plan

WORDS = (
    "a the of to in and is that for it as was with be by on not he his but at are this have from or had an they which "
    "one you were her all she there would their we him been has when who will more no if out so said what up its about "
    "into than them can only other new some could time these two may then do first any my now such like our over man "
    "me even most made after also did many before must through back years where much your way well down should because "
    "each just those people mister how too little state good very make world still own see men work long get here "
    "between both life being under never day same another know while last might us great old year off come since "
    "against go came right used take three list explain compare write describe number water house light sound paper"
).split()
Prompt = str | list[int]


class Prompts:
    """`prompts[n]`: the prompt of request `n`. Lengths are swept in turn, so each gets its share at any moment."""

    def __init__(self, plan: Plan) -> None:
        self._seed = plan.prompt_seed
        self._ids = plan.vocabulary if plan.prompts == "ids" else 0
        self._lengths = lengths(plan.prompt_lengths)
        self._given = [] if plan.prompts in ("words", "ids") else read(plan.prompts)

    def __getitem__(self, n: int) -> Prompt:
        if self._given:
            return self._given[n % len(self._given)]
        source = random.Random(f"{self._seed}:{n}")
        length = self._lengths[n % len(self._lengths)]
        if self._ids:
            return source.choices(range(1, self._ids), k=length)
        return " ".join(source.choices(WORDS, k=length))


def lengths(text: str) -> list[int]:
    """`1-4,64` -> [1, 2, 3, 4, 64]."""
    found: list[int] = []
    for part in text.replace(" ", "").split(","):
        first, _, last = part.partition("-")
        if not re.fullmatch(r"\d+(-\d+)?", part) or not 0 < int(first) <= int(last or first):
            raise ToolError(f"prompt_lengths: expected lengths and ranges such as 1-16,64, found {part or text!r}")
        found += range(int(first), int(last or first) + 1)
    return found


def read(path: str) -> list[Prompt]:
    """A file with a prompt a line: a JSON string, a list of token ids, or an object with the key `prompt`."""
    found: list[Prompt] = []
    try:
        for line in contents(path, "prompts").splitlines():
            value = msgspec.json.decode(line)
            found.append(msgspec.convert(value["prompt"] if isinstance(value, dict) else value, str | list[int]))
    except (msgspec.DecodeError, KeyError):
        expected = "expected a JSON string, token ids, or an object with `prompt`"
        raise ToolError(f"line {len(found) + 1}: {expected}", path) from None
    if not found:
        raise ToolError("expected at least one prompt, found none", path)
    return found
