"""The definitions of a whole tree, and which of them a name means at a place. Knows scans, parses nothing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import TypeVar

from schema_patch.schemas.inferred import Answer

from .asked import EVERY_RUN, Asked, Definitions, remembered
from .brackets import arity, split
from .mask import Macro
from .scan import FileIndex, Function
from .texts import SourceTexts, without_words

V = TypeVar("V")
WORD = re.compile(r"[A-Za-z_]\w*")
FLAG_REFERENCE = re.compile(r"(?<!const )\b(?:bool|auto|[A-Z]\w?)\s*&")  # of a template's type too
NUMBER = re.compile(r"[\s\d.()uUlLfxXa-fA-F+*/<-]*")
Scripts = Callable[[tuple[str, ...], str, int], Sequence[Answer] | None]  # a file's path, a kernel, its parameters
PASTES = "##"  # looked up for all names that macros make
PASTED = re.compile(r"\b([A-Za-z]\w{3,})\s*##")
FIELD = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=.*|\{.*)?$", re.DOTALL)


def mentions(file: FileIndex) -> Iterator[tuple[str, str]]:
    """What macros that stand between functions are given, and these; within a class they may be its constructors."""
    outside = (use for use in file.uses if not any(kind == "class" for kind, _ in use.scope))
    return ((word, use.name) for use in outside for word in use.words)


class Index:
    """Lookups by name over the files of one tree."""

    def __init__(self, files: Iterable[FileIndex], scripts: Scripts = lambda *_: None) -> None:
        self.scripts = scripts
        self.asked = Asked()
        own = list(files)
        macros = _by_name((macro.name, (file.path, _plain(macro))) for file in own for macro in file.macros)
        self.macros = Definitions(macros, self.asked)
        # By what they are given, macros where declarations stand.
        self.mentioned = Definitions(_by_name(pair for file in own for pair in mentions(file)), self.asked)
        texts = SourceTexts(macros, self.macros_among, self.macro)
        self.text = texts.of
        with self.asked.apart():
            self.made = list(filter(None, map(texts.define, own)))  # what macros define in files
        every = (*own, *self.made)
        self.by_path = {file.path: file.functions for file in reversed(every)}
        # Of several files that give a name to a type, the first counts.
        self.own_aliases = {(f.path, name): target for f in reversed(every) for name, target in reversed(f.aliases)}
        aliases = {name: target for file in reversed(every) for name, target in reversed(file.aliases)}
        bodies = (macro.body for found in macros.values() for _, macro in found if PASTES in macro.body)
        self.pasted = tuple(sorted({name for body in bodies for name in PASTED.findall(body) if "{" in body}))
        self.functions = Definitions(_by_name((f.name, f) for file in every for f in file.functions), self.asked)
        self.classes = Definitions(_by_name((kind.name, kind) for file in every for kind in file.classes), self.asked)
        self.prototypes = Definitions(_by_name(pair for file in every for pair in file.prototypes), self.asked)
        self.aliases = Definitions(aliases, self.asked)
        # The kernels of a dispatch stub; and by the name that Python calls: where, and which function.
        self.stubs = Definitions(_by_name(pair for file in every for pair in file.stubs), self.asked)
        bound = ((name, (file.path, target)) for file in every for name, target in file.bindings)
        self.bindings = Definitions(_by_name(bound), self.asked)

    def whole(self, path: str) -> str:
        """A file masked, where not only the function at hand is looked at."""
        self.asked.names.add(path)
        return self.text(path).masked

    @lru_cache(maxsize=65536)  # noqa: B019
    def signature(self, function: Function) -> tuple[str, str]:
        """The text before a function's parameter list, and the list: asked for far more often than there are files."""
        masked = self.text(function.path).masked
        return masked[function.head : function.parameters[0] - 1], masked[slice(*function.parameters)]

    @remembered
    def table(self, name: str, path: str) -> tuple[str, ...]:
        """The functions that fill a global array of a file, `kernels[] = {f<1>, f<2>}`, by macros too."""
        text = self.whole(path)
        found = re.search(rf"{name}(?<!\w{name})\s*(?:\[[^\]]*\]\s*)*=[\w\s:<>,&*]*\{{([^{{}}]*)\}}", text)
        names: list[str] = []
        for word in WORD.findall(found[1]) if found else ():
            macro = self.macro(word, path, found.start()) if found else None
            names += WORD.findall(macro.body) if macro else [word]
        return tuple(dict.fromkeys(word for word in names if word in self.functions))

    @remembered
    def written(self, function: Function) -> str:
        """The body of a function, with those of the macros that it names behind it."""
        body = self.text(function.path).masked[slice(*function.body)]
        macros = (self.macro(word, function.path, function.body[0]) for word in sorted(set(WORD.findall(body))))
        return "\n".join([body, *(macro.body for macro in macros if macro)])

    @remembered
    def hands_out_flags(self, function: Function) -> bool:
        """Whether a function names one that may change what is true or false where it is called: `void f(bool& x)`."""
        called = (f for word in set(WORD.findall(self.written(function))) for f in self.functions.get(word, ()))
        return any(FLAG_REFERENCE.search(self.signature(f)[1]) for f in called)

    def macros_among(self, names: set[str]) -> set[str]:
        """Which of these names any file defines as a macro."""
        self.asked.names |= names
        return names & dict.keys(self.macros)

    def macro(self, name: str, path: str, at: int) -> Macro | None:
        """The definition of a macro as this place would see it: the last before it in its file, else the nearest."""
        found = self.macros.get(name)
        if not found:
            return None
        near = [macro for _, macro in nearest(found, path, itemgetter(0))]
        own = [m for where, m in found if where == path and m.at <= at]
        macro = _said(own) if own else next((m for m in near if m.body), near[0])
        if macro.parameters is None and NUMBER.fullmatch(macro.body) and macro.body:
            return None
        return macro

    def resolve(self, name: str, qualifiers: tuple[str, ...], count: int, at: Function) -> list[Function]:
        """The definitions that a call by this name with so many arguments may mean, nearest first; or none."""
        return self.resolved(name, qualifiers, count, at.scope, at.path, at.in_class) if name in self.functions else []

    @remembered
    def resolved(
        self, name: str, qualifiers: tuple[str, ...], count: int, scope: tuple[str, ...], path: str, in_class: bool
    ) -> list[Function]:
        """The same for any function of one scope and file; the list is not to be changed."""
        found = [f for f in self.functions.get(name, ()) if self.takes(f, count)]
        if qualifiers:
            own = self.family(scope[-1:]) if in_class else set()
            members = [f for f in found if f.in_class and f.scope[-1:] and f.scope[-1] in own]  # `Base::f` in a class
            meanings = (self.qualified(found, meant) for meant in self.meanings(qualifiers, path))
            found = next(filter(None, meanings), members)
        else:
            mine = set(scope)
            family = self.family(scope[-1:])
            members = [f for f in found if f.in_class and f.scope and f.scope[-1] in family]
            free = [f for f in found if not f.in_class]
            within = [f for f in free if set(f.scope) <= mine] or free
            found = members or within
            deepest = max((len(f.scope) for f in found), default=0)
            same = [f for f in found if len(f.scope) == deepest and f.path == path]
            found = same or found
        return nearest(found, path)

    def meanings(self, qualifiers: tuple[str, ...], path: str) -> list[tuple[str, ...]]:
        """Qualifiers as an alias of their file has them, as written, and as an alias of any other file has them."""
        last = qualifiers[-1]
        if last not in self.aliases or last in self.classes:
            return [qualifiers]
        own, other = self.own_aliases.get((path, last)), self.aliases[last]
        named = [(target.rpartition("::")[2],) for target in (own, other) if target]
        return [named[0], qualifiers] if own else [qualifiers, named[0]]

    def qualified(self, found: list[Function], qualifiers: tuple[str, ...]) -> list[Function]:
        """Those that stand in what the qualifiers name."""
        whole = [f for f in found if self.within(f.scope[-len(qualifiers) :], qualifiers)]
        inner = [f for f in found if qualifiers[-1] in f.scope and not f.in_class]
        return whole or inner or self.inherited(found, qualifiers[-1])

    def within(self, scope: tuple[str, ...], qualifiers: tuple[str, ...]) -> bool:
        """Whether a scope is what these qualifiers name; a namespace may be called by a macro."""
        return len(scope) == len(qualifiers) and all(
            part == name or any(macro.body == name for _, macro in self.macros.get(part, ()))
            for part, name in zip(scope, qualifiers, strict=True)
        )

    @remembered
    def methods(self, kind: str, name: str, count: int, path: str) -> list[Function]:
        """The definitions of a method of a class or of its bases."""
        if name not in self.functions:
            return []
        every = [f for f in self.functions[name] if f.scope and self.takes(f, count)]
        found = [f for f in every if f.scope[-1] == kind]
        if not found and every:
            family = self.family((kind,)) - {kind}
            found = [f for f in every if f.scope[-1] in family]
        return nearest(found, path)

    def takes(self, function: Function, count: int) -> bool:
        """Whether a call with so many arguments fits, given the defaults of the function's own declaration."""
        if takes(function, count) or not 0 <= count < function.arity[0]:
            return takes(function, count)
        return any(most == function.arity[1] and least <= count for least, most in self.declared(function.name))

    @remembered
    def declared(self, name: str) -> tuple[tuple[int, int], ...]:
        """How many arguments each declaration of this name takes."""
        return tuple({arity(parameters) for parameters in self.prototypes.get(name, ())})

    def script(self, file: tuple[str, ...], name: str, count: int) -> Sequence[Answer] | None:
        """What a kernel in a Python file does to its parameters."""
        self.asked.names.add(EVERY_RUN)
        return self.scripts(file, name, count)

    def knows(self, name: str) -> bool:
        """Whether any file gives a name a meaning of its own, or has a macro that pastes names which begin so."""
        self.asked.names.add(PASTES)
        return name.startswith(self.pasted) or any(
            name in known for known in (self.functions, self.stubs, self.classes, self.aliases, self.macros)
        )

    def where(self, name: str, *, declared: bool = False) -> str:
        """Why nothing is known of a function: it stands nowhere here, or its definitions do not fit a call."""
        if self.knows(name):
            return "not followed"
        if name in self.mentioned:
            return f"perhaps defined by {self.mentioned[name][0]}, which is not followed"
        return "declared, but not defined in this tree" if declared else "not in this tree"

    def class_named(self, name: str) -> str:
        """The class that a name stands for, through aliases; empty where it is none."""
        for _ in range(5):
            if name in self.classes:
                return name
            name = self.aliases.get(name, "").rpartition("::")[2]
        return ""

    def family(self, kinds: tuple[str, ...]) -> set[str]:
        """A class and its bases."""
        seen: set[str] = set()
        todo = list(kinds)
        while todo:
            kind = todo.pop()
            if kind not in seen:
                seen |= {kind, self.class_named(kind)}
                todo += [base for found in self.classes.get(kind, ()) for base in found.bases]
        return seen

    def inherited(self, found: list[Function], kind: str) -> list[Function]:
        family = self.family((kind,)) - {kind}
        return [f for f in found if f.scope and f.scope[-1] in family]

    @remembered
    def fields(self, kind: str, path: str) -> tuple[str, ...]:
        """The names of a class's fields, bases first, in order."""
        found = nearest(self.classes.get(kind, []), path)
        if not found:
            return ()
        names: list[str] = []
        for base in found[0].bases:
            if base != kind:
                names += self.fields(base, path)
        for text in found[0].fields:
            for part in split(text):
                match = FIELD.search(part.strip())
                if match:
                    names.append(match[1])
        return tuple(names)


def _by_name(pairs: Iterable[tuple[str, V]]) -> dict[str, list[V]]:
    found: dict[str, list[V]] = defaultdict(list)
    for name, what in pairs:
        found[name].append(what)
    return found


def _plain(macro: Macro) -> Macro:
    return replace(macro, body=without_words(macro.body)) if "_" in macro.body else macro


def _said(macros: list[Macro]) -> Macro:
    """The last definition; where it leaves all its arguments out, as that of a platform without the feature does, the
    last of the same parameters that takes them."""
    last = macros[-1]
    names = [name.replace("...", "__VA_ARGS__") for name in last.parameters or ()]

    def uses(macro: Macro) -> bool:
        return any(re.search(rf"\b{name}\b", macro.body) for name in names)

    if (not names and last.body) or uses(last):
        return last
    return next((m for m in reversed(macros) if m.parameters == last.parameters and m.body and uses(m)), last)


def takes(function: Function, count: int) -> bool:
    """Whether a call with so many arguments fits; -1 stands for any number."""
    least, most = function.arity
    return count < 0 or (least <= count and (most < 0 or count <= most))


def nearest(items: list, path: str, where=attrgetter("path")) -> list:  # type: ignore[no-untyped-def, type-arg]
    """Those of the same file, else those that share the longest folder path."""
    if len(items) < 2:
        return list(items)
    parts = path.split("/")

    def shared(other: str) -> int:
        if other == path:
            return 1000
        count = 0
        for a, b in zip(parts, other.split("/"), strict=False):
            if a != b:
                break
            count += 1
        return count

    ranked = [(shared(where(item)), item) for item in items]
    best = max(rank for rank, _ in ranked)
    return [item for rank, item in ranked if rank == best]
