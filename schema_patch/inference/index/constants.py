"""Arguments of templates and calls that are `true` or `false`, and what they decide: `if constexpr (PUT && !FAST)`;
and those of templates that are functions, by their names.

A kernel that serves two operators often writes in one of them only. Knows text, no syntax tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from .brackets import closing, split, template_list

Constants = tuple[tuple[str, bool | str], ...]
POINTER = re.compile(r"\(\s*[*&]\s*(\w+)\s*\)")
NAME = re.compile(r"\w+")


@lru_cache(maxsize=65536)
def parameters(head: str) -> tuple[str, ...]:
    """The names of a template's parameters, in order, from the text before a function's parameter list."""
    names = []
    for part in split(template_list(head)):
        pointer = POINTER.search(part)  # `void (*f)(float*)`
        found = [pointer[1]] if pointer else NAME.findall(part.split("=")[0])
        names.append(found[-1] if found else "")
    return tuple(names)


def given(
    head: str, arguments: Sequence[str], known: Mapping[str, bool | str], is_function: Callable[[str], bool]
) -> Constants:
    """What is known of a function's template parameters where it is named with these arguments."""
    found: dict[str, bool | str] = {}
    for name, text in zip(parameters(head), arguments, strict=False):
        value = known[text.strip()] if text.strip() in known else decide(text, known)
        if name and (value is not None or is_function(text)):
            found[name] = text if value is None else value
    return tuple(sorted(found.items()))


def decide(text: str, known: Mapping[str, bool | str]) -> bool | None:
    """A condition of `!`, `&&`, `||`, names and what is not known; None where it is not decided."""
    text = text.strip()
    while text.startswith("(") and closing(text, 0) == len(text) - 1:
        text = text[1:-1].strip()
    if len(_parts(text, "?")) > 1:  # which binds less than any of these
        return None
    for operator, stops in (("||", True), ("&&", False)):
        parts = _parts(text, operator) if operator in text else []
        if len(parts) > 1:
            found = [decide(part, known) for part in parts]
            return stops if stops in found else None if None in found else not stops
    if text.startswith("!"):
        value = decide(text[1:], known)
        return None if value is None else not value
    meant = known.get(text, {"true": True, "false": False}.get(text))
    return meant if isinstance(meant, bool) else None


def _parts(text: str, operator: str) -> list[str]:
    """What stands between the operators that are in no brackets."""
    parts, depth, start = [], 0, 0
    for match in re.finditer(r"[(\[{]|[)\]}]|&&|\|\||\?", text):
        depth += (match.group() in "([{") - (match.group() in ")]}")
        if match.group() == operator and not depth:
            parts.append(text[start : match.start()])
            start = match.end()
    return [*parts, text[start:]]
