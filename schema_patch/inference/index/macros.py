"""Expands macros that the tree defines, and remembers on which line of the file each character stands.

Knows macros and text. Which definition a name has is asked of a `lookup`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .brackets import closing, split
from .mask import Macro

NAME = re.compile(r"[A-Za-z_]\w*")
OPTIONAL = re.compile(r"__VA_OPT__\s*\(([^()]*)\)")
DEEPEST = 12
LARGEST = 1_000_000  # characters that the macros of one function may come to
TOO_MUCH = "a_macro_that_grows_too_large"
Lookup = Callable[[str, int], Macro | None]  # a name, and where in the file it is used
Among = Callable[[set[str]], set[str]]  # which of these names are macros somewhere


@dataclass(frozen=True, slots=True)
class Expanded:
    """Text, and the offset in the file of what begins at each mark."""

    text: str
    marks: tuple[int, ...]
    origins: tuple[tuple[int, bool], ...]  # offset in the file; whether offsets go on from there

    def offset(self, at: int) -> int:
        """Where in the file the character at this place comes from."""
        index = bisect_right(self.marks, at) - 1
        start, runs = self.origins[index]
        return start + (at - self.marks[index]) if runs else start


class Expander:
    """Puts pieces of a file together, with their macros expanded."""

    def __init__(self, among: Among, lookup: Lookup) -> None:
        self.among = among
        self.lookup = lookup
        self.pieces: list[str] = []
        self.marks: list[int] = []
        self.origins: list[tuple[int, bool]] = []
        self.length = self.spent = 0
        self.place = 0  # in the file, of the use at hand

    def add(self, text: str, origin: int, runs: bool = False) -> None:
        if text:
            self.marks.append(self.length)
            self.origins.append((origin, runs))
            self.pieces.append(text)
            self.length += len(text)

    def add_expanded(self, text: str, origin: int) -> None:
        """A piece of the file that begins at `origin`."""
        done = 0
        for match in self.names(text):
            macro = self.lookup(match.group(), origin + match.start()) if match.start() >= done else None
            if macro is None:
                continue
            self.place = origin + match.start()
            found = self.use(macro, text, match.end(), ())
            if found is not None:
                self.add(text[done : match.start()], origin + done, runs=True)
                self.add(found[0], origin + match.start())
                done = found[1]
        self.add(text[done:], origin + done, runs=True)

    def names(self, text: str) -> Iterator[re.Match[str]]:
        """The names in a text that are macros somewhere: most are not, and are not looked at one by one."""
        known = self.among(set(NAME.findall(text)))
        return (match for match in NAME.finditer(text) if match.group() in known) if known else iter(())

    def use(self, macro: Macro, text: str, at: int, within: tuple[str, ...]) -> tuple[str, int] | None:
        """What a use of the macro becomes and where it ends; None where it is no use, or grows without end."""
        arguments: list[str] = []
        if macro.parameters is not None:
            call = re.compile(r"\s*\(").match(text, at)
            end = closing(text, call.end() - 1) if call else -1
            if not call or end < 0:
                return None
            arguments = [part.strip() for part in split(text[call.end() : end])]
            at = end + 1
        if self.spent > LARGEST or len(within) > DEEPEST:  # a call of what stands in no tree: it ends in `unknown`
            return f" {TOO_MUCH}({', '.join(arguments)}) ", at
        body = substitute(macro, arguments)
        self.spent += len(body)
        return f" {self.again(body, (*within, macro.name))} ", at

    def again(self, text: str, within: tuple[str, ...]) -> str:
        """The text with the macros in it expanded, without those it comes from."""
        parts: list[str] = []
        done = 0
        for match in self.names(text):
            skipped = match.start() < done or match.group() in within
            macro = None if skipped else self.lookup(match.group(), self.place)
            found = self.use(macro, text, match.end(), within) if macro else None
            if found is not None:
                parts += [text[done : match.start()], found[0]]
                done = found[1]
        parts.append(text[done:])
        return "".join(parts)

    def result(self) -> Expanded:
        return Expanded("".join(self.pieces), tuple(self.marks), tuple(self.origins))


def substitute(macro: Macro, arguments: list[str]) -> str:
    """The body with the arguments in place of the parameters."""
    if macro.parameters is None:
        return macro.body
    names = list(macro.parameters)
    text = macro.body
    if "__VA_OPT__" in text:
        text = OPTIONAL.sub(r"\1" if len(arguments) >= len(names) else "", text)
    values = dict(zip(names, arguments, strict=False))
    if names and names[-1].endswith("..."):
        rest = ", ".join(arguments[len(names) - 1 :])
        values[names[-1].removesuffix("...").strip() or "__VA_ARGS__"] = rest
        values.pop("...", None)

    def replaced(match: re.Match[str]) -> str:
        name = match["name"]
        if match["hash"]:
            return '""' if name in values else match.group()
        if name not in values and name not in names:
            return match.group()
        return values.get(name, "")

    body = re.sub(r"(?P<hash>(?<!#)#\s*(?!#))?\b(?P<name>[A-Za-z_]\w*)", replaced, text)
    first, *pasted = body.split("##")
    return "".join([first.rstrip(), *(part.strip() for part in pasted[:-1]), pasted[-1].lstrip()]) if pasted else body
