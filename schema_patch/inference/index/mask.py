"""C++ text in which comments and literals are blank and conditionals are decided; every offset and line stays.

Knows the preprocessor's lines, nothing of the language behind them. A character is a byte (latin-1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Each branch begins with a plain character: the search then skips to the next of these without trying at every place.
NOISE = re.compile(
    r"""//[^\n\\]*(?:\\(?:\r?\n|.)[^\n\\]*)*|/\*.*?\*/|R(?<!\wR)"([^(\s]{0,16})\(.*?\)\1"|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|"""
    r"""'(?<![0-9a-fA-F]')(?:[^'\\\n]|\\.)+'""",
    re.DOTALL,
)
ATTRIBUTE = re.compile(r"\[\[[\w:]+(?:\([^()]*\))?(?:\s*,\s*[\w:]+(?:\([^()]*\))?)*\s*\]\]")
DIRECTIVE = re.compile(r"#[ \t]*(\w*)([^\n\\]*(?:\\(?:\r?\n|.)[^\n\\]*)*)")
MACRO = re.compile(r"\s*(\w+)(?:\(([^)]*)\))?(.*)", re.DOTALL)
SPLICE = re.compile(r"\\\r?\n")


@dataclass(frozen=True, slots=True)
class Macro:
    """A `#define`: its parameters (None for an object-like one), its body, and where in its file it stands."""

    name: str
    parameters: tuple[str, ...] | None
    body: str
    at: int = 0


def blank(text: str) -> str:
    """As long as the text, with its line breaks and nothing else."""
    if "\n" not in text:
        return " " * len(text)
    return "\n".join([" " * len(line) for line in text.split("\n")])


def mask(source: bytes) -> tuple[str, tuple[Macro, ...]]:
    """The text without comments, literals, directives and branches that cannot stand beside each other; its macros."""
    text = NOISE.sub(_hidden, source.decode("latin-1"))
    if "[[" in text:
        text = ATTRIBUTE.sub(lambda match: blank(match.group()), text)
    if "#" not in text:
        return text, ()
    macros: list[Macro] = []
    pieces: list[str] = []
    at = 0
    open_groups: list[list[tuple[int, int, str]]] = []  # of each #if: where its branches begin
    dropped: list[tuple[int, int]] = []
    halves: set[str] = set()  # conditions under which a brace was opened or closed alone
    for match in directives(text):
        word = match[1]
        if word == "define":
            macro = _macro(match[2], match.start())
            if macro:
                macros.append(macro)
        elif word in ("if", "ifdef", "ifndef"):
            open_groups.append([(match.start(), match.end(), match[2].strip())])
        elif word in ("else", "elif", "elifdef") and open_groups:
            open_groups[-1].append((match.start(), match.end(), match[2].strip()))
        elif word == "endif" and open_groups:
            dropped += _dropped(text, open_groups.pop(), match.start(), halves)
        pieces += [text[at : match.start()], blank(match.group())]
        at = match.end()
    pieces.append(text[at:])
    text = "".join(pieces)
    for start, end in dropped:
        text = text[:start] + blank(text[start:end]) + text[end:]
    return text, tuple(macros)


def directives(text: str) -> Iterator[re.Match[str]]:
    """The preprocessor's lines: a `#` that is the first thing on its line, and what continues it."""
    at = text.find("#")
    while at >= 0:
        end = at + 1
        if not text[text.rfind("\n", 0, at) + 1 : at].strip(" \t"):
            match = DIRECTIVE.match(text, at)
            if match:
                yield match
                end = match.end()
        at = text.find("#", end)


def _hidden(match: re.Match[str]) -> str:
    """A literal keeps its quotes, so that it still is an argument."""
    text = match.group()
    if text[0] in "\"'" and len(text) > 1:
        return text[0] + blank(text[1:-1]) + text[-1]
    if text[0] == "R":
        return ' "' + blank(text[2:-1]) + '"'
    return blank(text)


def _macro(text: str, at: int) -> Macro | None:
    match = MACRO.match(SPLICE.sub(" ", text))
    if not match:
        return None
    parameters = None if match[2] is None else tuple(p.strip() for p in match[2].split(",") if p.strip())
    return Macro(match[1], parameters, match[3].strip(), at)


def _dropped(text: str, branches: list[tuple[int, int, str]], end: int, halves: set[str]) -> list[tuple[int, int]]:
    """The branches of one #if that are blanked: `#if 0`, and all but one where they are no whole statements."""
    condition = branches[0][2]
    if len(branches) == 1 and condition in halves:  # the other half of what was kept before
        return []
    starts = [start for start, _, _ in branches[1:]] + [end]
    bodies = [(opening, stop) for (_, opening, _), stop in zip(branches, starts, strict=True)]
    found = [body for body, (_, _, condition) in zip(bodies, branches, strict=True) if condition == "0"]
    live = [body for body in bodies if body not in found]
    if all(_whole(text[start:stop]) for start, stop in live):
        return found
    if len(branches) > 1 and not balanced(text[slice(*live[0])]):
        halves.add(condition)
    if len(branches) == 1:
        kept = next((body for body in live if balanced(text[slice(*body)])), None)
    else:  # the longest says most: the others are often stubs
        kept = max(live, key=lambda body: len("".join(text[slice(*body)].split())), default=None)
    return found + [body for body in live if body != kept]


def _whole(text: str) -> bool:
    return balanced(text) and _plain(text).rstrip()[-1:] in ("", *";}:>")


def _plain(text: str) -> str:
    """Without directives."""
    if "#" in text:
        for match in reversed(list(directives(text))):
            text = text[: match.start()] + text[match.end() :]
    return text


def balanced(text: str) -> bool:
    """Braces and parentheses close within the text and in order."""
    text = _plain(text)
    for opening, closing in ("{}", "()"):
        if text.count(opening) != text.count(closing):
            return False
        depth = 0
        for part in text.split(closing)[:-1]:
            depth += part.count(opening) - 1
            if depth < 0:
                return False
    return True
