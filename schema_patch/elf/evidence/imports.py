"""What torch's functions do with text, of which some register operators; C's and std::string's are in texts.py.

Of a function that is not here, nothing is believed: what it was given may be other afterwards.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from . import traced
from .effects import EFFECTS, TWICE
from .image import BESIDE
from .machine import FOREIGN, IMAGE, Foreign, Item, Value, tags
from .program import Unknown
from .run import GIVEN, Follower, never_returns
from .texts import COMPARE, Do, known, quiet, string

TORCH = re.compile(r"_ZN[KRO]*(2at|3c10|5torch|6caffe2)|aoti_torch_")
CALLS_BACK = re.compile(r"St8function|PF")  # takes a function of ours, perhaps to call it
INTELS = re.compile(r"^_intel_fast_|^__intel_(sse2|ssse3|sse4|avx)_(rep_)?")
TYPES = (
    "Tensor|SymInt|Scalar|ScalarType|Layout|MemoryFormat|QScheme|Dimname|Stream|Storage|int|float|complex|bool|str|number|"
    r"Device|Generator|PyObject|Dict|RRef|Future|Await|Any\w*|t\d?|__torch__[\w.]+"
)
SCHEMA_TEXT = re.compile(rf"\s*[\w:.]+\(\s*(?:\*\s*,\s*)?\(?(?:{TYPES})\W.*->", re.DOTALL)
# Bytes of torch's objects, of 2.4 to 2.14. A schema alone, one of a schema and a name, a library, a function.
SCHEMA, EITHER, LIBRARY, FUNCTION = 0x78, 0x80, 0x78, 0x68

PARSES = ("_ZN5torch3jit11parseSchemaERK", "_ZN5torch3jit17parseSchemaOrNameERK")
OPENS = ("_ZN5torch7LibraryC1E", "_ZN5torch7LibraryC2E")
DEFINES = ("_ZNR5torch7Library4_defE", "_ZN5torch7Library4_defE")
OLD_STYLE = "_ZN3c1017RegisterOperators25checkSchemaAndRegisterOp_E"
UNTOLD = ("_ZN3c1010Dispatcher11registerDefE", "_ZN5torch3jit16registerOperatorE")
QUIET = (
    "_ZN5torch11CppFunctionD", "_ZN5torch7LibraryD", "_ZN3c1014FunctionSchemaD", "aoti_torch_library_impl",
    "aoti_torch_library_init_impl", "aoti_torch_delete_", "torch_library_impl",
)  # fmt: skip
STABLE_OPENS = {"aoti_torch_library_init_def": 3, "aoti_torch_library_init_fragment": 3}
STABLE_DEFINES = ("aoti_torch_library_def", "torch_library_def_with_tags")


@dataclass(frozen=True, slots=True)
class Text:
    """The tag of what torch parsed: the text if all of it is known, its beginning, and where each byte stands."""

    text: str | None
    known: str
    places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Space:
    """The tag of a library that registers operators."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Record:
    """One registration. `chain`: where the calls that led to it return, the outermost first; `entries`: of what."""

    chain: tuple[int, ...]
    entries: tuple[int, ...]
    text: Text
    space: str | None


@dataclass(slots=True)
class Imports:
    """Does what others' functions do, and keeps what was registered, and which namespaces were opened.

    `shown`: where bytes stand that a function was given which is none of a registration, and its name, if it `traces`.
    `effects`: of calls by which the library may become another than its file, what each does; empty where nothing.
    """

    traces: bool = False
    records: list[Record] = field(default_factory=list)
    opened: list[str | None] = field(default_factory=list)
    entries: set[int] = field(default_factory=set)
    libraries: dict[int, str | None] = field(default_factory=dict)
    shown: dict[int, str] = field(default_factory=dict)
    effects: dict[int, set[str]] = field(default_factory=dict)

    def __call__(self, f: Follower, name: str, site: int) -> bool:
        if never_returns(name):
            return False
        if name in TWICE:
            raise Unknown(f"{name}, which may come back a second time")
        if name in BESIDE:
            f.memory.shared = True
        if name in EFFECTS:
            self.effects.setdefault(site, set()).add(EFFECTS[name](f))
        do = self._known(name)
        if self.traces and (name in COMPARE or not (do or TORCH.match(name))):
            self._show(f, name)
        if do:
            f.registers.general[0] = do(f, site)
            return True
        self._hands_over(f, site)
        self._tells(f, name, site)
        if TORCH.match(name) and not CALLS_BACK.search(name):
            f.others_write(size=0x100, keeps=False)
        else:
            f.others_write()
        f.registers.general[0] = None
        return True

    def _known(self, name: str) -> Do | None:
        name = INTELS.sub("", name)
        do = known(name)
        if do:
            return do
        if name.startswith(PARSES):
            return _parses(SCHEMA if name.startswith(PARSES[0]) else EITHER)
        if name.startswith(DEFINES):
            return lambda f, site: self._defines(f, site, f.argument(0), f.argument(1))
        if name.startswith(OLD_STYLE):
            return lambda f, site: self._defines(f, site, None, f.argument(1))
        if name.startswith(UNTOLD):
            return lambda f, site: self._defines(f, site, None, None)
        if name.startswith(OPENS):
            return self._opens
        if name in STABLE_OPENS:
            return self._opens_stable
        if name in STABLE_DEFINES:
            return self._defines_stable
        if name.startswith(("_ZNR5torch7Library5_implE", "_ZNR5torch7Library9_fallbackE", "_ZN5torch7Library5resetE")):
            return _gives_first
        if name.startswith("_ZN5torch11CppFunctionC"):
            return _makes_foreign
        if name.startswith(QUIET):
            return quiet
        return None

    def _opens(self, f: Follower, site: int) -> Value:
        """torch::Library(kind, std::string ns, key, file, line)"""
        parts = string(f, f.argument(2))
        space = _whole(parts)
        self._open(f, space)
        this = f.argument(0)
        if isinstance(this, int):
            self.libraries[this] = space
        _fill(f, this, LIBRARY, Foreign(Space(space)))
        return this

    def _opens_stable(self, f: Follower, site: int) -> Value:
        """int f(const char* ns, const char* file, uint32_t line, TorchLibraryHandle* library)"""
        space = _whole(f.memory.text(f.argument(0)))
        self._open(f, space)
        f.memory.store(f.argument(3), 8, Foreign(Space(space)))
        return 0

    def _defines(self, f: Follower, site: int, library: Value, schema: Value) -> Value:
        found = [tag for tag in tags(f.memory, schema, EITHER) if isinstance(tag, Text)]
        spaces = [tag.name for tag in tags(f.memory, library, LIBRARY) if isinstance(tag, Space)]
        if isinstance(library, int) and library in self.libraries:
            spaces = [self.libraries[library]]
        self._record(f, site, found[0] if found else Text(None, ""), spaces[0] if spaces else None)
        return f.argument(0)

    def _defines_stable(self, f: Follower, site: int) -> Value:
        library = f.argument(0)
        parts = f.memory.text(f.argument(1))
        space = library.tag if isinstance(library, Foreign) else None
        text = _text(parts)
        self._record(f, site, text, space.name if isinstance(space, Space) else None)
        return 0

    def _hands_over(self, f: Follower, site: int) -> None:
        """Notes that a function which nobody knows is given a library: it may register there."""
        for given in map(f.argument, range(len(GIVEN))):
            if isinstance(given, int) and given in self.libraries:
                self._record(f, site, Text(None, ""), self.libraries[given])
            elif isinstance(given, Foreign) and isinstance(given.tag, Space):
                self._record(f, site, Text(None, ""), given.tag.name)

    def _tells(self, f: Follower, name: str, site: int) -> None:
        """Notes that a function which nobody knows is given a schema: it may register that. C's and C++'s own
        do not."""
        for given in map(f.argument, range(len(GIVEN))):
            if not isinstance(given, int) or given < IMAGE:
                continue
            for parts in (f.memory.text(given), string(f, given)):
                known = _beginning(parts or [])
                if SCHEMA_TEXT.match(known) and not f.program.image.is_of_c(name):
                    self._record(f, site, Text(None, known), None)

    def _open(self, f: Follower, space: str | None) -> None:
        self.opened.append(space)
        self.entries |= {frame.entry for frame in f.frames}

    def _show(self, f: Follower, name: str) -> None:
        """Notes the texts that an import is given, as characters or as a string."""
        for n in range(len(GIVEN)):
            for parts in (f.memory.text(f.argument(n)), string(f, f.argument(n))):
                self.shown |= dict.fromkeys(traced.places(parts or ()), name)
        self.shown.pop(traced.NOWHERE, None)

    def _record(self, f: Follower, site: int, text: Text, space: str | None) -> None:
        frames = f.frames[:-1] if len(f.frames) > 1 and f.frames[-1].site == site else f.frames  # without a stub
        chain = (*(frame.site for frame in frames[1:]), site)
        record = Record(chain, tuple(frame.entry for frame in frames), text, space)
        self.entries |= {*record.entries}
        if record not in self.records:
            self.records.append(record)


def _text(parts: list[Item] | None) -> Text:
    return Text(_whole(parts), _beginning(parts or []), traced.places(parts or ()))


def _whole(parts: list[Item] | None) -> str | None:
    if parts is None or not all(isinstance(part, int) for part in parts):
        return None
    return bytes(parts).decode("latin-1")  # type: ignore[arg-type]  # a character for each byte


def _beginning(parts: list[Item]) -> str:
    known = next((n for n, part in enumerate(parts) if not isinstance(part, int)), len(parts))
    return bytes(parts[:known]).decode("latin-1")  # type: ignore[arg-type]


def _fill(f: Follower, address: Value, size: int, value: Foreign) -> None:
    for at in range(0, size, 8):
        f.memory.store(address + at if isinstance(address, int) else address, 8, value)


def _parses(size: int) -> Do:
    """FunctionSchema parseSchema(const std::string&, bool): the result is where the first argument says."""

    def do(f: Follower, _: int) -> Value:
        text = _text(string(f, f.argument(1)))
        _fill(f, f.argument(0), size, Foreign(text))
        return f.argument(0)

    return do


def _gives_first(f: Follower, _: int) -> Value:
    return f.argument(0)


def _makes_foreign(f: Follower, _: int) -> Value:
    _fill(f, f.argument(0), FUNCTION, FOREIGN)
    return FOREIGN
