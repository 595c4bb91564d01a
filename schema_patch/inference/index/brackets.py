"""What stands between brackets, as text: arguments, parameters, what `template <…>` lists. Knows no language else."""

from __future__ import annotations

import re
from collections.abc import Iterator

BRACKETS = re.compile(r"[(\[{}\])<>,]")
PARENTHESES = re.compile(r"[()]")
TEMPLATE = re.compile(r"\s*template\s*<")


def split(text: str) -> list[str]:
    """The parts between the commas of an argument or parameter list, brackets of every kind respected."""
    pairs = angles(text) if "<" in text else {}
    parts, depth, start = [], 0, 0
    for match in BRACKETS.finditer(text):
        char = match.group()
        if char in "([{" or (char == "<" and match.start() in pairs):
            depth += 1
        elif char in ")]}" or (char == ">" and match.start() in pairs):
            depth -= 1
        elif char == "," and not depth:
            parts.append(text[start : match.start()])
            start = match.end()
    parts.append(text[start:])
    return parts if len(parts) > 1 or parts[0].strip() else []


def angles(text: str) -> dict[int, int]:
    """Where each template bracket's partner is, both ways; `<` counts where a name is before it and a `>` behind."""
    pairs: dict[int, int] = {}
    stack: list[tuple[int, int]] = []
    depth = 0
    for match in BRACKETS.finditer(text):
        token, at = match.group(), match.start()
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
            while stack and stack[-1][1] > depth:
                stack.pop()
        elif token == "<" and text[at + 1 : at + 2] not in ("<", "=") and text[at - 1 : at] != "<":
            if text[:at].rstrip()[-1:].isalnum() or text[at - 1 : at] == "_":
                stack.append((at, depth))
        elif token == ">" and text[at - 1 : at] != "-" and stack and stack[-1][1] == depth:
            opening = stack.pop()[0]
            pairs[opening], pairs[at] = at, opening
    return pairs


def arity(parameters: str) -> tuple[int, int]:
    """Fewest and most arguments of a parameter list; -1 for any number."""
    parts = [part.strip() for part in split(parameters)]
    if parts in ([], ["void"]):
        return 0, 0
    needed = sum("=" not in part and "..." not in part for part in parts)
    return needed, -1 if any("..." in part for part in parts) else len(parts)


def template_lists(head: str) -> Iterator[tuple[int, int]]:
    """What stands between the brackets of each `template <…>` before a declaration."""
    pairs, at = angles(head) if "<" in head else {}, 0
    while (match := TEMPLATE.match(head, at)) and match.end() - 1 in pairs:
        at = pairs[match.end() - 1] + 1
        yield match.end(), at - 1


def template_list(head: str) -> str:
    """The last of them."""
    return next((head[start:end] for start, end in reversed(list(template_lists(head)))), "")


def after_template(head: str) -> int:
    """Where the declaration begins behind them."""
    return max((end + 1 for _, end in template_lists(head)), default=0)


def closing(text: str, at: int) -> int:
    """The parenthesis that closes the one at `at`; -1 where none does."""
    depth = 0
    for match in PARENTHESES.finditer(text, at):
        depth += 1 if match.group() == "(" else -1
        if not depth:
            return match.start()
    return -1
