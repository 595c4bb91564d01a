"""The text of each file as it is read, and behind it what macros make where declarations stand: `DEFINE_KERNEL(name)`.

Knows files, macros and scopes; what a text means is read elsewhere.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import itemgetter
from pathlib import Path

from .macros import Among, Expanded, Expander
from .mask import Macro, balanced, blank, mask
from .scan import DeclaredScope, FileIndex, MacroUse, Scanner, line_starts

WORDS = re.compile(  # behind no other letter: `\b` in front would be tried at every place
    r"(?:__shared__|extern|__global__|__device__|__host__|__forceinline__|__constant__|__restrict__|__restrict|"
    r"RESTRICT|volatile|SYCL_EXTERNAL|ESIMD_INLINE|__inline__|typename|__align__\s*\(\w+\)|alignas\s*\([^()]*\))(?!\w)"
)
NAMED = re.compile(
    r"([A-Za-z_]\w*)\s*(?=\()|[(,]\s*([A-Za-z_]\w*)\s*(?=[,)])"
)  # in a macro: called, or given to another
Macros = Mapping[str, Sequence[tuple[str, Macro]]]  # by name, with the files that define them
MacroAt = Callable[[str, str, int], Macro | None]  # a name, the file and the place where it is used


@dataclass(frozen=True, slots=True)
class FileText:
    """A source file, and behind it what macros make of it."""

    masked: str
    data: bytes
    lines: tuple[int, ...]
    made: tuple[tuple[int, Expanded], ...] = ()  # each with where it begins in `masked`

    def line(self, at: int) -> int:
        """The line of the file that the character at this place comes from."""
        number = bisect_right(self.made, at, key=itemgetter(0))
        if number:
            start, expanded = self.made[number - 1]
            at = expanded.offset(at - start)
        return bisect_right(self.lines, at)

    def before(self, made: Sequence[Expanded]) -> FileText:
        """With these texts behind it."""
        pieces, places = [self.masked], []
        for expanded in made:
            places.append((sum(map(len, pieces)) + 1, expanded))
            pieces += ["\n", expanded.text]
        return replace(self, masked="".join(pieces), made=tuple(places))


def read(path: str) -> FileText:
    """A file of the disk."""
    data = Path(path).read_bytes()
    return FileText(without_words(mask(data)[0]), data, line_starts(data))


def without_words(text: str) -> str:
    """The text with the words blanked that the grammar stumbles over and that say nothing of flow."""
    return WORDS.sub(_blanked, text)


def _blanked(match: re.Match[str]) -> str:
    before = match.string[match.start() - 1 : match.start()]
    return match.group() if before.isalnum() or before == "_" else blank(match.group())


class SourceTexts:
    """The files of one tree."""

    def __init__(self, macros: Macros, among: Among, macro: MacroAt) -> None:
        self.macros = macros
        self.among = among
        self.macro = macro
        self.behind: dict[str, list[Expanded]] = {}
        self.known: dict[str, bool] = {}

    @lru_cache(maxsize=2048)  # noqa: B019  lives as long as the process
    def of(self, path: str) -> FileText:
        """A file, masked and as it stands, with what macros make of it."""
        return read(path).before(self.behind.get(path, ()))

    def define(self, file: FileIndex) -> FileIndex | None:
        """What macros define in a file, whose text stands behind it from now on."""
        uses = list(filter(self.defines, file.uses))
        if not uses:
            return None
        text, made = read(file.path), list[tuple[MacroUse, Expanded]]()
        for use in uses:
            expander = Expander(self.among, lambda name, at: self.macro(name, file.path, at))
            expander.add_expanded(text.masked[use.start : use.end], use.start)
            expanded = expander.result()
            if "{" in expanded.text and balanced(expanded.text):  # not what one macro opens and another closes
                made.append((use, expanded))
        self.behind[file.path] = [expanded for _, expanded in made]
        text = text.before(self.behind[file.path])
        scanner = Scanner(text.masked, file.path, text.line)
        for (use, expanded), (start, _) in zip(made, text.made, strict=True):
            scanner.scopes = [DeclaredScope(kind, name) for kind, name in use.scope]
            scanner.run(start, start + len(expanded.text))
        return FileIndex(file.path, tuple(scanner.functions), tuple(scanner.classes))

    def defines(self, use: MacroUse) -> bool:
        """Whether a use may define something: braces stand behind it, in the macro, or in one that it names or gets."""
        given = [word for word in use.words if word in self.macros]
        return use.name in self.macros and (use.braces or any(map(self.braces, (use.name, *given))))

    def braces(self, name: str) -> bool:
        """Whether a macro, or one that it names, has braces in it."""
        if name not in self.known:
            self.known[name] = any("{" in macro.body for macro in self.reached(name))
        return self.known[name]

    def reached(self, name: str) -> Iterator[Macro]:
        """A macro, and all that bodies name."""
        seen, todo = {name}, [name]
        while todo:
            for _, macro in self.macros[todo.pop()]:
                yield macro
                named = {called or given for called, given in NAMED.findall(macro.body)} - set(macro.parameters or ())
                further = named & self.macros.keys() - seen
                seen |= further
                todo += further
