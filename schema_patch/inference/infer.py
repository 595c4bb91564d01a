"""What the implementation of an operator does to each Tensor argument, and what it returns: written, read, or unknown.

Evidence is a chain of places from the implementation to the store. Knows registrations, schemas and summaries.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from schema_patch.cpp.registered import Implementation
from schema_patch.schemas.grammar import Schema
from schema_patch.schemas.inferred import Answer, Chain, Inferred, Kind

from .domain.values import MIXED, Path, Summary, loaded, shorter
from .engine.flow import Summaries
from .index.index import Index
from .index.scan import Function, arity

# Keys whose functions compute shapes or wrap the real ones.
NOT_REAL = re.compile(r"Meta|Fake|Autograd|ADInplaceOrView|Autocast|Functionalize|Tracer|Batched|Vmap|Python")
WRAPPED = re.compile(r"<\s*&\s*([\w:\s]+?)\s*>\s*$")
LAMBDA = re.compile(r"\s*\[[^\]]*\]\s*")


def classify(path: Path, plain: bool) -> str:
    """What a write at this path from a Tensor argument means: "written", "dense" (written where it is contiguous),
    "perhaps", "elsewhere" or "" (no data)."""
    written = "perhaps" if "~" in path else "dense" if "+" in path else "written"
    path = tuple(s for s in path if s not in ("~", "+"))
    if "#" in path:
        rest = path[path.index("#") + 1 :]
        if rest.count("*") != 1:
            return "elsewhere" if rest else ""
        return written
    if "@" not in path:
        return "written" if plain and path == ("*",) else ""
    rest = path[path.index("@") + 1 :]
    if rest[:1] != ("*",):
        return ""
    if "*" in rest[1:]:
        return "elsewhere"
    return written


def is_read(path: Path, plain: bool) -> bool:
    """Whether reading at this path from a Tensor argument reads data, and not only a list or an optional."""
    return "@" in path or "#" in path or (plain and path[:1] == ("*",))


class Inference:
    """Answers for operators of one tree."""

    def __init__(self, index: Index, summaries: Summaries) -> None:
        self.index = index
        self.summaries = summaries

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
                missing.append(f"{implementation.text[:60].strip()} at {implementation.location} is not in this tree")
        if not found:
            reason = missing[0] if missing else "no implementation is registered in this tree"
            answers = tuple(Answer(arg.name, Kind.UNKNOWN, (), reason) for _, arg in tensors)
            return Inferred(answers, ("unknown",) * len(schema.returns), (), reason)
        summaries = [self.summaries.of(function) for function in found]
        answers = tuple(
            answer(arg.name, number, summaries, missing, arg.type.base == "Tensor" and not arg.type.suffixes)
            for number, arg in tensors
        )
        elsewhere = stray(summaries, {number for number, _ in tensors})
        answers = tuple(
            doubted(found, elsewhere, lost(summaries, number)) if arg.name in schema.writes else found
            for found, (number, arg) in zip(answers, tensors, strict=True)
        )
        places = tuple(f"{f.path}:{self.line(f)}" for f in found)
        return Inferred(answers, tuple(returned(schema, summaries)), places)

    def line(self, function: Function) -> int:
        return bisect_right(self.index.text(function.path).lines, function.head)

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
        wrapped = WRAPPED.search(implementation.text)
        if not found and wrapped:  # drop_return<&f>, whose template is not in the tree: what it wraps is
            names = tuple(part.strip() for part in wrapped[1].split("::"))
            found = self.index.resolve(names[-1], names[:-1], count, at)
        return found

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
        mine = (item for item in summary.effects.items() if item[0][1] == number and item[0][0] != "lost")
        for (kind, root, path), chain in sorted(mine, key=lambda item: (item[1], item[0])):
            meaning = classify(path, plain) if kind == "write" else "passed"
            if meaning in ("written", "dense") and (meaning not in best or shorter(chain, best[meaning])):
                best[meaning] = chain
            elif meaning == "perhaps":
                unknown = unknown or f"written where `to` or its like makes no copy: {_place(chain)}"
            elif meaning == "elsewhere":
                unknown = unknown or f"a store through a pointer that was read from it: {_place(chain)}"
            elif meaning == "passed":
                unknown = unknown or f"{summary.reasons.get((kind, root, path), 'passed on')}: {_place(chain)}"
        stored = (o for (root, path), value in summary.stores.items() if loaded(path) for o in value)
        if not unknown and any(o[0] == number and "@" in o[1] for o in stored):
            unknown = "its address is stored in a tensor"
    if "written" in best:
        return Answer(name, Kind.WRITTEN, best["written"])
    if "dense" in best:
        return Answer(name, Kind.WRITTEN, best["dense"], "where it is contiguous")
    if unknown or missing:
        return Answer(name, Kind.UNKNOWN, (), unknown or missing[0])
    if not any(root == number and is_read(path, plain) for summary in summaries for root, path in summary.reads):
        return Answer(name, Kind.UNKNOWN, (), "its data is not seen to be used")
    return Answer(name, Kind.READ)


def stray(summaries: Sequence[Summary], tensors: set[int]) -> Chain:
    """A store through a pointer that was read from memory, or handed in as a number: where it leads is not known."""
    effects = (item for summary in summaries for item in summary.effects.items())
    writes = ((root, path, chain) for (kind, root, path), chain in effects if kind == "write")
    return next((c for n, p, c in writes if classify(p, False) == "elsewhere" or (n not in tensors and "*" in p)), ())


def lost(summaries: Sequence[Summary], number: int) -> Chain:
    """Where a pointer to the argument goes out of sight."""
    effects = (item for summary in summaries for item in summary.effects.items())
    return next((chain for (kind, root, _), chain in effects if kind == "lost" and root == number), ())


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
    for position in range(len(schema.returns)):
        seen: set[str] = set()
        for summary in summaries:
            for values, _ in summary.returns:
                value = values[position] if position < len(values) else frozenset()
                args = {o[0] for o in value if isinstance(o[0], int) and not o[1] and o[0] >= 0}
                listed = len(values) > len(schema.returns) and any(
                    s.text != "?" for s in schema.returns[position].type.suffixes
                )
                if any(isinstance(o[0], str) and o[0].startswith("static") and not o[1] for o in value):
                    seen.add("private buffer")
                elif any(isinstance(o[0], str) and o[0].startswith(MIXED) for o in value) or (listed and any(values)):
                    seen.add("unknown")
                elif len(args) == 1 and not any(isinstance(o[0], int) and o[1] for o in value):
                    number = args.pop()
                    known = number < len(schema.args) and schema.args[number].type.is_tensor
                    seen.add(schema.args[number].name if known else "unknown")
                else:
                    seen.add("unknown" if any(isinstance(o[0], int) for o in value) else "fresh")
        found.append(seen.pop() if len(seen) == 1 else "unknown")
    return found
