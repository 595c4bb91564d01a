"""C++ text in which comments and literals are blank and conditionals are decided; every offset and line stays.

Knows the preprocessor's lines, nothing of the language behind them. A character is a byte (latin-1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NOISE = re.compile(
    r"""//(?:[^\n\\]|\\\r?\n|\\.)*|/\*.*?\*/|\bR"([^(\s]{0,16})\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'""",
    re.DOTALL,
)
ATTRIBUTE = re.compile(r"\[\[[\w:]+(?:\([^()]*\))?(?:\s*,\s*[\w:]+(?:\([^()]*\))?)*\s*\]\]")
NOT_BLANK = re.compile(r"[^\n]")
DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w*)((?:[^\n\\]|\\\r?\n|\\.)*)", re.MULTILINE)
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
    return NOT_BLANK.sub(" ", text)


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
    for match in DIRECTIVE.finditer(text):
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
            dropped += _dropped(text, open_groups.pop(), match.start())
        pieces += [text[at : match.start()], blank(match.group())]
        at = match.end()
    pieces.append(text[at:])
    text = "".join(pieces)
    for start, end in dropped:
        text = text[:start] + blank(text[start:end]) + text[end:]
    return text, tuple(macros)


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


def _dropped(text: str, branches: list[tuple[int, int, str]], end: int) -> list[tuple[int, int]]:
    """The branches of one #if that are blanked: `#if 0`, and all but one where they are no whole statements."""
    starts = [start for start, _, _ in branches[1:]] + [end]
    bodies = [(opening, stop) for (_, opening, _), stop in zip(branches, starts, strict=True)]
    found = [body for body, (_, _, condition) in zip(bodies, branches, strict=True) if condition == "0"]
    live = [body for body in bodies if body not in found]
    if all(_whole(text[start:stop]) for start, stop in live):
        return found
    kept = next((body for body in live if _balanced(text[slice(*body)])), None) if len(branches) == 1 else live[:1]
    return found + [body for body in live if body != kept and [body] != kept]


def _whole(text: str) -> bool:
    return _balanced(text) and (not text.strip() or text.rstrip()[-1] in ";}:>")


def _balanced(text: str) -> bool:
    """Braces and parentheses close within the text and in order."""
    text = DIRECTIVE.sub("", text)
    for opening, closing in ("{}", "()"):
        depth = 0
        for char in re.findall(rf"[{re.escape(opening + closing)}]", text):
            depth += 1 if char == opening else -1
            if depth < 0:
                return False
        if depth:
            return False
    return True
