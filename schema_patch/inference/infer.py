"""What the implementation of an operator does to each Tensor argument, and what it returns: written, read, or unknown.

Evidence is a chain of places from the implementation to the store. Knows registrations, schemas and summaries.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from schema_patch.cpp.registered import Implementation
from schema_patch.schemas.grammar import Schema
from schema_patch.schemas.inferred import Answer, Chain, Inferred, Kind

from .domain.summary import LOST, TAKEN, UNKNOWN, WRITE, Summary, shorter
from .domain.values import (
    ACCESSOR,
    DATA,
    DENSE,
    DEREF,
    MIXED,
    PERHAPS,
    STATIC,
    Field,
    Local,
    Parameter,
    Path,
    Value,
    in_data,
    loaded,
    parameter,
)
from .engine.frame import BOXED
from .engine.summaries import Summaries
from .flattened import flattened
from .index.asked import Definitions, number, packed, remembered
from .index.brackets import arity, split, template_list
from .index.index import Index
from .index.scan import Function
from .index.syntax import read_parameters
from .operators import NOT_REAL, ImplementedOperator

WRAPPED = re.compile(r"<\s*&?\s*([A-Za-z_][\w:\s]*?)\s*(?:,.*)?>\s*(?:::\w+\s*)?$", re.DOTALL)
RAISES = re.compile(r"\s*(?:throw\b|AT_ERROR\s*\(|\w*_CHECK\w*\s*\(\s*(?:false|0)\s*[,)])")
UNSEEN = "its data is not seen to be used"
WHY = {  # it is not known whether an argument is written, by what a write or a pointer to it means
    "perhaps": "written where `to` or its like makes no copy",
    "elsewhere": "a store through a pointer that was read from it",
    "inside": "a store behind a field of it, perhaps to its data",
    TAKEN: "a pointer to write through is taken",
}
LAMBDA = re.compile(r"\s*\[[^\]]*\]\s*")


def classify(path: Path, plain: bool) -> str:
    """What a write at this path from a Tensor argument means: "written", "dense" (written where it is contiguous),
    "perhaps", "elsewhere", "inside" (behind a field of its own, by a class of the tree) or "" (no data)."""
    written = "perhaps" if PERHAPS in path else "dense" if DENSE in path else "written"
    path = tuple(s for s in path if s not in (PERHAPS, DENSE))
    if ACCESSOR in path:
        rest = path[path.index(ACCESSOR) + 1 :]
        if rest.count(DEREF) != 1:
            return "elsewhere" if rest else ""
        return written
    if DATA not in path:
        if plain and path == (DEREF,):
            return "written"
        return "inside" if DEREF in path and any(isinstance(s, Field) for s in path) else ""
    rest = path[path.index(DATA) + 1 :]
    if rest[:1] != (DEREF,):
        return ""
    if DEREF in rest[1:]:
        return "elsewhere"
    return written


def is_read(path: Path, plain: bool) -> bool:
    """Whether reading at this path from a Tensor argument reads data, and not only a list or an optional."""
    return in_data(path) or (plain and path[:1] == (DEREF,))


class Inference:
    """Answers for operators of one tree."""

    def __init__(self, index: Index, summaries: Summaries) -> None:
        self.index = index
        self.summaries = summaries
        self.asked = index.asked

    def dispatch(self, found: Sequence[ImplementedOperator]) -> None:
        """Lets code that calls operators through torch's dispatcher find the kernels of these."""
        named: dict[str, list[ImplementedOperator]] = defaultdict(list)
        for operator in found:
            named[operator.full_name].append(operator)
        self.named = Definitions(named, self.asked)
        self.summaries.kernels = self.kernels

    @remembered
    def kernels(self, name: str) -> list[Function]:
        """The functions behind an operator of this name."""
        real = [(i, len(o.schema.args)) for o in self.named.get(name, ()) for i in o.implementations]
        found = [f for i, n in real if not NOT_REAL.search(i.key) for f in self.definitions(i, n)]
        return list({function.key: function for function in found}.values())

    def told(self, operator: ImplementedOperator) -> tuple[Inferred, bytes]:
        """What an operator does, and all that was looked up to tell: as long as none of it changes, it holds."""
        with self.asked.apart() as names:
            found = self.operator(operator.schema, operator.implementations)
            names |= {implementation.location.path for implementation in operator.implementations}
        return found, packed({*self.summaries.names(), *map(number, names)})

    def operator(self, schema: Schema, implementations: Iterable[Implementation]) -> Inferred:
        """What the operator of this schema does, over all its implementations."""
        tensors = [(number, arg) for number, arg in enumerate(schema.args) if arg.type.is_tensor]
        every = list(implementations)
        real = [i for i in every if not NOT_REAL.search(i.key)]
        found: list[Function] = []
        missing: list[str] = []
        for implementation in real:
            functions = self.definitions(implementation, len(schema.args))
            found += [f for f in functions if f.key not in {g.key for g in found}]
            if not functions:
                names = re.findall(r"\w+", implementation.text)
                where = next((n for n in names if n in self.index.functions), names[-1] if names else "")
                text = implementation.text[:60].strip()
                missing.append(f"{text} at {implementation.location} is {self.index.where(where)}")
        told = "no implementation is registered in this tree"
        if found and all(map(self.only_raises, found)):
            found, told = [], f"{told} that does more than raise"
        if not found:
            reason = missing[0] if missing else told
            answers = tuple(Answer(arg.name, Kind.UNKNOWN, (), reason) for _, arg in tensors)
            return Inferred(answers, ("unknown",) * len(schema.returns), (), reason)
        summaries = [self.summary(function, schema) for function in found]
        answers = tuple(
            answer(arg.name, number, summaries, missing, arg.type.base == "Tensor" and not arg.type.suffixes)
            for number, arg in tensors
        )
        elsewhere = stray(summaries, {number for number, _ in tensors})
        answers = tuple(
            doubted(told, elsewhere, lost(summaries, number))
            if arg.name in schema.writes
            else Answer(arg.name, Kind.READ)
            if told.reason == UNSEEN and all(self.leaves_out(function, number) for function in found)
            else told
            for told, (number, arg) in zip(answers, tensors, strict=True)
        )
        places = tuple(f"{f.path}:{self.line(f)}" for f in found)
        return Inferred(answers, tuple(returned(schema, summaries)), places)

    def summary(self, function: Function, schema: Schema) -> Summary:
        """What the function does, as the operator of this schema."""
        summary, most = self.summaries.of(function), function.arity[1]
        if not 0 <= most < len(schema.args) or BOXED.search(self.index.signature(function)[1]):
            return summary
        parameters = [declared.name for declared in read_parameters(self.index.signature(function)[1])]
        return flattened(summary, parameters, [arg.name for arg in schema.args], len(schema.returns))

    def leaves_out(self, function: Function, number: int) -> bool:
        """Whether a function that does something names a parameter nowhere, but to ask for its shape and the like; or
        says `(void)x`, and hands it only to functions of which none is seen to do anything with it."""
        summary, declared = self.summaries.of(function), read_parameters(self.index.signature(function)[1])
        if number >= len(declared) or BOXED.search(declared[number].type):
            return False
        name, asks = declared[number].name, "|".join(sorted(self.summaries.models.names.metadata))
        void, body = rf"\(void\)\s*{name}\s*;", self.index.written(function)
        harmless = (
            rf"\b{name}\s*(?:\.|->)\s*(?:{asks})\s*\(|{void}|\b\w*CHECK\w*\(\s*{name}\s*\)|\bempty_like\(\s*{name}\b"
        )
        if not name or (re.search(void, body) and summary.ignores(number)):
            harmless += rf"|(?<=[(,])\s*{name}\s*(?=[,)])"
        elif not (summary.effects or summary.reads):
            return False
        return not name or not re.search(rf"\b{name}\b", re.sub(harmless, "", body))

    def only_raises(self, function: Function) -> bool:
        """Whether a function stands in for one that this build has not: it uses no argument, and ends in a raise."""
        body = self.index.text(function.path).masked[slice(*function.body)].rstrip("; \t\n}")
        if not RAISES.match(re.split(r"[;{}]", body)[-1]):
            return False
        summary = self.summaries.of(function)
        return not (summary.effects or summary.stores or summary.calls or any(values for values, _ in summary.returns))

    def line(self, function: Function) -> int:
        return self.index.text(function.path).line(function.head)

    def definitions(self, implementation: Implementation, count: int) -> list[Function]:
        """The function that an m.impl or m.def names."""
        at = self.around(implementation)
        if implementation.kind == "lambda":
            made = self.lambda_function(implementation, at)
            return [made] if made else []
        names = function_names(implementation.text)
        if not names:
            return []
        found = self.index.resolve(names[-1], names[:-1], count, at)
        found = found or self.index.resolve(names[-1], names[-2:-1], count, at)
        # Of the stable ABI, a function that takes the stack, whatever the number of the operator's arguments.
        stack = self.index.resolve(names[-1], names[:-1], 3, at)
        wrapped = WRAPPED.search(implementation.text)
        if wrapped and (not found or any(self.hands_on(function) for function in found)):
            # `drop_return<&f>`, `boxed<f, void, …>`: what it wraps is what is called.
            names = tuple(part.strip() for part in wrapped[1].split("::"))
            found = self.index.resolve(names[-1], names[:-1], count, at) or found
            whole = [] if found else self.index.resolve(names[-1], names[:-1], -1, at)
            found = found or [function for function in whole if 0 <= function.arity[1] < count]
        return found or [function for function in stack if BOXED.search(self.index.signature(function)[1])]

    def hands_on(self, function: Function) -> bool:
        """Whether a template takes a function as its first argument: `template <auto F, class R>`."""
        head = template_list(self.index.signature(function)[0])
        first = split(head)[0] if head.strip() else ""
        return bool(first) and not re.match(r"\s*(?:typename|class|bool|int|size_t|unsigned)\b", first)

    def around(self, implementation: Implementation) -> Function:
        """The registration block as a function: what names mean there."""
        path, start = implementation.location.path, implementation.span.start
        for function in self.index.by_path.get(path, ()):
            if function.body[0] <= start < function.body[1]:
                return function
        return Function("", (), path, (0, 0), None, (start, start), start, (0, 0))

    def lambda_function(self, implementation: Implementation, at: Function) -> Function | None:
        """A lambda that is registered, as a function."""
        text = self.index.text(implementation.location.path).masked
        start, end = implementation.span.start, implementation.span.end
        opening = LAMBDA.match(text, start, end)
        body = text.find("{", start, end)
        if not opening or body < 0 or text[opening.end()] != "(":
            return None
        closing = text.rfind(")", opening.end(), body)
        span = (opening.end() + 1, closing)
        return Function("lambda", at.scope, at.path, span, None, (body, end), start, arity(text[slice(*span)]))


def function_names(text: str) -> tuple[str, ...]:
    """`&ns::f<int>`, `TORCH_BOX(&ns::f)`, `static_cast<T (*)(U)>(f)` as ("ns", "f")."""
    text = re.sub(r"\bstatic_cast\s*<.*>\s*\(", "(", text, flags=re.DOTALL)
    depth, kept = 0, []
    for char in text:
        depth += char == "<"
        if not depth:
            kept.append(char)
        depth -= char == ">"
    names = re.findall(r"[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*", "".join(kept))
    return tuple(part.strip() for part in names[-1].split("::")) if names else ()


def answer(name: str, number: int, summaries: Sequence[Summary], missing: Sequence[str], plain: bool) -> Answer:
    """One argument over all implementations: a write anywhere counts, an unknown anywhere keeps it from `read only`."""
    unknown = ""
    best: dict[str, Chain] = {}
    for summary in summaries:
        mine = (item for item in summary.effects.items() if item[0][1].number == number and item[0][0] != LOST)
        for effect, chain in sorted(mine, key=lambda item: (item[1], item[0][0], repr(item[0][2]))):
            kind, _, path = effect
            meaning = classify(path, plain) if kind == WRITE else kind
            if meaning in ("written", "dense") and (meaning not in best or shorter(chain, best[meaning])):
                best[meaning] = chain
            elif meaning != TAKEN or not used(summary, number, path):
                why = summary.reasons.get(effect, "passed on") if meaning == UNKNOWN else WHY.get(meaning)
                unknown = unknown or (f"{why}: {_place(chain)}" if why else "")
        if any(origin[0] is parameter(number) and what == "operator()" for origin, what, _, _ in summary.calls):
            unknown = unknown or "it is called, in a way that is not understood"
        stored = (o for (root, path), value in summary.stores.items() if loaded(path) for o in value)
        if not unknown and any(o[0] is parameter(number) and DATA in o[1] for o in stored):
            unknown = "its address is stored in a tensor"
    if "written" in best:
        return Answer(name, Kind.WRITTEN, best["written"])
    if "dense" in best:
        return Answer(name, Kind.WRITTEN, best["dense"], "where it is contiguous")
    if unknown or missing:
        return Answer(name, Kind.UNKNOWN, (), unknown or missing[0])
    handed = any(o[0] is parameter(number) for summary in summaries for o in summary.returned)
    reads = (item for summary in summaries for item in summary.reads)
    if not handed and not any(root.number == number and is_read(path, plain) for root, path, _ in reads):
        return Answer(name, Kind.UNKNOWN, (), UNSEEN)
    return Answer(name, Kind.READ)


def used(summary: Summary, number: int, pointer: Path) -> bool:
    """Whether what a pointer leads to is read by a way that might write there too, and so is seen not to."""
    start = pointer[:4]
    return any(r.number == number and not const and p[: len(start)] == start for r, p, const in summary.reads)


def stray(summaries: Sequence[Summary], tensors: set[int]) -> Chain:
    """A store through a pointer that was read from memory, or handed in as a number: where it leads is not known."""
    effects = (item for summary in summaries for item in summary.effects.items())
    writes = ((root.number, path, chain) for (kind, root, path), chain in effects if kind == WRITE)
    return next((c for n, p, c in writes if classify(p, False) == "elsewhere" or (n not in tensors and DEREF in p)), ())


def lost(summaries: Sequence[Summary], number: int) -> Chain:
    """Where a pointer to the argument goes out of sight."""
    effects = (item for summary in summaries for item in summary.effects.items())
    return next((chain for (kind, root, _), chain in effects if kind == LOST and root.number == number), ())


def doubted(found: Answer, elsewhere: Chain, gone: Chain) -> Answer:
    """`read only`, where the authors say that it is written: not if a store leads nobody knows where, most often a
    peer's pointer to this very buffer, nor if a pointer to it went out of sight."""
    if found.kind is not Kind.READ or not (elsewhere or gone):
        return found
    what = "a store elsewhere may lead here" if elsewhere else "passed on, and not seen to be used"
    return Answer(found.name, Kind.UNKNOWN, (), f"{what}: {_place(elsewhere or gone)}")


def _place(chain: Chain) -> str:
    return f"{chain[-1][0]}:{chain[-1][1]}" if chain else ""


def returned(schema: Schema, summaries: Sequence[Summary]) -> list[str]:
    """What each returned value is, where every return statement of every implementation says the same."""
    found: list[str] = []
    for position, declared in enumerate(schema.returns):
        is_list = any(suffix.text != "?" for suffix in declared.type.suffixes)
        seen: set[str] = set()
        for values, _ in (statement for summary in summaries for statement in summary.returns):
            value = values[position] if position < len(values) else frozenset()
            listed = is_list and len(values) > len(schema.returns) and any(values)
            seen.add("unknown" if listed and not _private(value) else _returned(schema, value))
        found.append(seen.pop() if len(seen) == 1 else "unknown")
    return found


def _private(value: Value) -> bool:
    """Whether this is a buffer that the function keeps between calls."""
    return any(isinstance(root, Local) and root.kind == STATIC and not path for root, path, _ in value)


def _returned(schema: Schema, value: Value) -> str:
    """What one return statement gives back."""
    if _private(value):
        return "private buffer"
    if any(isinstance(root, Local) and root.kind == MIXED for root, _, _ in value):
        return "unknown"
    handed = {
        (root.number, path) for root, path, _ in value if isinstance(root, Parameter) and (path or root.number >= 0)
    }
    if len(handed) == 1 and not any(path for _, path in handed):
        number = min(handed)[0]
        known = number < len(schema.args) and schema.args[number].type.is_tensor
        return schema.args[number].name if known else "unknown"
    return "unknown" if handed else "fresh"
