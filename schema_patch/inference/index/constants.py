"""Template arguments that are written `true` or `false`, and what they decide: `if constexpr (PUT && !FAST)`.

A kernel that serves two operators often writes in one of them only. Knows text, no syntax tree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .scan import split, template_list

Constants = tuple[tuple[str, bool], ...]
NAME = re.compile(r"\w+")


def parameters(head: str) -> list[str]:
    """The names of a template's parameters, in order, from the text before a function's parameter list."""
    names = []
    for part in split(template_list(head)):
        found = NAME.findall(part.split("=")[0])
        names.append(found[-1] if found else "")
    return names


def given(head: str, arguments: Sequence[str], known: Mapping[str, bool]) -> Constants:
    """What is known of a function's template parameters where it is named with these arguments."""
    if not arguments:
        return ()
    pairs = zip(parameters(head), arguments, strict=False)
    values = ((name, decide(text, known)) for name, text in pairs if name)
    return tuple(sorted((name, value) for name, value in values if value is not None))


def decide(text: str, known: Mapping[str, bool]) -> bool | None:
    """A condition of `!`, `&&`, `||` and names; None where it is not decided."""
    text = text.strip()
    while text.startswith("(") and text.endswith(")") and _whole(text):
        text = text[1:-1].strip()
    if not re.fullmatch(r"[\w\s!&|]+", text):
        return None
    for operator, stops in (("||", True), ("&&", False)):
        if operator in text:
            parts = [decide(part, known) for part in text.split(operator)]
            return stops if stops in parts else None if None in parts else not stops
    if text.startswith("!"):
        value = decide(text[1:], known)
        return None if value is None else not value
    return {"true": True, "false": False}.get(text, known.get(text))


def _whole(text: str) -> bool:
    """Whether the first parenthesis closes at the end."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if not depth:
            return at == len(text) - 1
    return False
