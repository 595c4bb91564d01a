"""ElfFacts + operator table -> findings. Pure: reads nothing.

Knows what an installed library must say. Does not know the ELF format, how a package is stored, nor what several
packages must agree on (environment.py). Codes, beside those of rules.py:
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from schema_patch.elf import targets
from schema_patch.elf.reader import ElfFacts, FoundSchema, Named, Unread
from schema_patch.elf.sycl import sycl_major
from schema_patch.model import Checked, Effect, Finding, Location, Report, Severity, ToolError, Verdict
from schema_patch.schemas.grammar import TYPES, Type, parse
from schema_patch.schemas.rules import Judgement, judge
from schema_patch.schemas.table import Table

ONCE = "too large to be read a second time"
GOOD = frozenset({Verdict.RIGHT, Verdict.NEEDS_GUARD})


@dataclass(frozen=True, slots=True)
class _Row:
    """One schema in one library, judged."""

    library: str
    found: FoundSchema
    effect: Effect | None
    judgement: Judgement

    @property
    def op(self) -> str:
        return self.found.schema.op

    @property
    def where(self) -> Location:
        return Location(self.library)


@dataclass(frozen=True, slots=True)
class Import:
    """How Python comes to a library: its module, as a path, and its rank among those of that name."""

    module: str
    rank: tuple[int, int, int]

    @classmethod
    def of(cls, key: str, given: int, root: int) -> Import:
        """`key`: its path in the folder that Python looks into, the `root`-th of what was `given`."""
        folder, base = os.path.split(key)
        module, _, suffix = base.partition(".")
        return cls(
            os.path.join(folder, module), (given, root, 0 if "cpython" in suffix else 1 if "abi3" in suffix else 2)
        )


def check(
    libraries: Iterable[ElfFacts],
    table: Table,
    *,
    require: Sequence[str] = (),
    sycl: str,
    asked_by: str = "",
    devices: Sequence[str] = (),
    where: str = "",
    imports: Mapping[str, Import] | None = None,
) -> Report:
    """Judges what libraries say of themselves; `where` names them all together. Pure.

    `require`: operators that must be there and right. `sycl`: the major version of libsycl.so to expect; `asked_by`
    what, where nobody has said it. `devices`: what each library with device code must run on. An operator that the
    table knows and that cannot be read, as after damage to the file, is in the report's `errors`. `imports`: by path of
    a library, for which of two is loaded.
    """
    imports = imports or {}
    libraries = list(libraries)
    wanted = [(word, targets.wanted(word)) for word in devices]
    rows = [_judged(library.path, found, table) for library in libraries for found in library.schemas]
    rows += [_inferred(library.path, found, table) for library in libraries for found in library.named]
    findings = [finding for library in libraries for finding in _runtime(library, sycl, asked_by)]
    findings += [
        Finding(row.judgement.code, row.where, row.op, _message(row), row.judgement.severity)
        for row in rows
        if row.judgement.code
    ]
    findings += [finding for library in libraries for finding in _second_reader(library)]
    findings += _contradictions(rows, imports)
    built = [row for library in libraries for row in _devices(library, wanted)]
    findings += [row for row in built if isinstance(row, Finding)]
    if libraries:
        findings += [finding for name in require for finding in _required(name, rows, len(libraries), where, imports)]
    checked = tuple(
        Checked(row.op, row.where, row.found.text, row.judgement.verdict, row.judgement.reason) for row in rows
    )
    checked += tuple(row for row in built if isinstance(row, Checked))
    errors = [error for row in rows if (error := _doubtful(row, table))]
    ours = {row.library for row in rows if row.effect}
    for library in libraries:
        for found in library.unread:
            if concerns(found, table, library.path in ours, require):
                message = _untold(found, table)
                if require:
                    findings.append(Finding("SP214", Location(library.path), "", message))
                else:
                    errors.append(ToolError(message, library.path))
    return Report(checked, tuple(findings), tuple(errors))


def _second_reader(library: ElfFacts) -> Iterator[Finding]:
    """What the second reader of a file saw otherwise, or that it was not asked."""
    for what in library.differences:
        yield Finding("SP216", Location(library.path), "", f"two readers of this file differ in its {what}")
    if library.read_once:
        yield Finding("SP216", Location(library.path), "", f"{ONCE}: lief is not given it", Severity.NOTE)


def concerns(found: Unread, table: Table, ours: bool, require: Sequence[str] = ()) -> bool:
    """Whether what is registered unread may be an operator of the table, or one that is required."""
    spaces = {name.rpartition("::")[0] for name in require}
    if found.namespace:
        return found.namespace in table.all_namespaces or found.namespace in spaces or ("" in spaces and bool(require))
    return ours or bool(require) or not found.known or bool(_resembles(found.known, table))


def _untold(found: Unread, table: Table) -> str:
    space = f"namespace {found.namespace}" if found.namespace else "a namespace that is not known"
    op = _resembles(found.known, table)
    if found.damaged:
        text = " ".join(found.known.split())[:200]
        return f"{found.function} registers in {space} what is no schema{f' of {op}' if op else ''}: {text!r}"
    known = f", which begins {' '.join(found.known.split())[:120]!r}" if found.known else ""
    why = f" ({found.why})" if found.why else ""
    return (
        f"could not verify all operators: {found.function} registers in {space} a text that is not known{known}{why}; "
        "ask torch: verify-schemas --load"
    )


def _judged(library: str, found: FoundSchema, table: Table) -> _Row:
    effect = table.effect(found.schema, found.namespace or None)
    judgement = judge(found.schema, effect)
    if judgement.verdict in GOOD:
        # The grammar takes any word in lower case for a type variable; torch takes none from an operator library.
        for arg in (*found.schema.args, *found.schema.returns):
            odd = [base for base in _bases(arg.type) if base not in TYPES and not base.startswith("__torch__")]
            if odd:
                what = f"argument '{arg.name}'" if arg in found.schema.args else "the return"
                judgement = Judgement(Verdict.UNKNOWN, reason=f"{what} has no type of torch: '{odd[0]}'")
    return _Row(library, found, effect, judgement)


def _inferred(library: str, found: Named, table: Table) -> _Row:
    """An operator registered without a schema: torch takes one from C++, and that declares no write."""
    entry = table.entries.get(found.name)
    arguments = ", ".join(f"Tensor {name}" for name in entry.arguments) if entry else ""
    returns = "()" if entry and entry.returns == "nothing" else "Tensor"
    schema = parse(f"{found.name}({arguments}) -> {returns}")
    known = found.namespace in table.all_namespaces
    judgement = judge(schema, table.effect(schema, found.namespace) if known else None)
    if judgement.verdict is Verdict.UNKNOWN:
        judgement = Judgement(Verdict.UNKNOWN, reason="registered without a schema: torch infers one")
    text = f"{found.name} (no schema: torch infers one, which declares no write)"
    shown = FoundSchema(text, schema, found.namespace)
    return _Row(library, shown, table.effect(schema, found.namespace) if known else None, judgement)


def _bases(kind: Type) -> Iterator[str]:
    if kind.base:
        yield kind.base
    for inner in kind.inner:
        yield from _bases(inner)


def _message(row: _Row) -> str:
    return f"{row.judgement.reason}: {' '.join(row.found.text.split())}"


def _runtime(library: ElfFacts, expected: str, asked_by: str) -> Iterator[Finding]:
    major = sycl_major(library)
    if major is not None and major != expected:
        found = f"libsycl.so.{major}" if major else "libsycl.so without a version"
        mend = "build it with the toolchain of its torch"
        mend += f", or say --sycl {major} where torch needs that" if major else ""
        whose = f" as {asked_by} does" if asked_by else ""
        message = f"expected to need libsycl.so.{expected}{whose}, needs {found}; {mend}"
        yield Finding("SP201", Location(library.path), "", message)


def _devices(library: ElfFacts, wanted: Sequence[tuple[str, dict[str, str]]]) -> Iterator[Finding | Checked]:
    """What has code for each device: where a kernel has none, its call fails, or compiles for minutes."""
    kernels, where = library.device.kernels() if wanted else {}, Location(library.path)
    for word, ip, name in ((word, *one) for word, ips in wanted if kernels for one in ips.items()):
        missing = targets.lacking(kernels, ip)
        native = sum(any(code.startswith(f"{ip}.") for code in codes) for codes in kernels.values())
        reason = f"{native} of {len(kernels)} kernels compiled for it, {len(missing)} with neither that nor SPIR-V"
        yield Checked(name, where, "", Verdict.WRONG if missing else Verdict.RIGHT, reason)
        if missing:
            has = targets.summary(library.device.targets())
            many = f"{len(missing)} of {len(kernels)} kernels"
            message = f"no code for {name} ({ip}.x) and no SPIR-V in {many}, such as {missing[0][:120]}; it has {has}"
            yield Finding("SP205", where, "", f"--target {word}: {message}")


def unread_devices(library: ElfFacts) -> Iterator[ToolError]:
    """Device code that cannot be judged when a target is asked for."""
    for what in library.device.unread:
        yield ToolError(f"expected device code in a known form, found {what}: targets not verified", library.path)


def _resembles(text: str, table: Table) -> str:
    """The operator whose schema a text was before a bit of it turned: its name stands there, and its arguments."""
    words = set(re.findall(r"\w+", text))
    ends = [match.end() for match in re.finditer(r"\(", text)][:4]
    for op, entry in table.entries.items():
        named = op in text or any(_one_off(text[max(0, end - len(op) - 1) : end], f"{op}(") for end in ends)
        if named and (len({*entry.arguments} - words) <= 1 or f"{op}(Tensor" in text):
            return op
    return ""


def _doubtful(row: _Row, table: Table) -> ToolError | None:
    """An operator that the table knows but for a turned bit is no unknown operator: the file is damaged."""
    text = row.found.line
    if row.effect is not None:
        if row.judgement.verdict is not Verdict.UNKNOWN:
            return None
        return ToolError(f"could not verify {row.op}: {row.judgement.reason}: {text}", row.library)
    arguments = tuple(arg.name for arg in row.found.schema.args)
    for name, entry in table.entries.items():
        renamed = (
            len(arguments) > 2 and arguments == entry.arguments and (_one_off(row.op, name) or name.endswith(row.op))
        )
        pairs = list(zip(arguments, entry.arguments, strict=False))
        other = [(a, b) for a, b in pairs if a != b]
        changed = row.op == name and len(arguments) == len(entry.arguments) and len(other) == 1 and _one_off(*other[0])
        if (row.op != name and renamed) or changed:
            return ToolError(
                f"could not verify what is {name} but for one letter (a damaged file?): {text}", row.library
            )
    return None


def _one_off(left: str, right: str) -> bool:
    """Equal but for one bit of one character."""
    if len(left) != len(right):
        return False
    other = [ord(a) ^ ord(b) for a, b in zip(left, right, strict=True) if a != b]
    return len(other) == 1 and other[0].bit_count() == 1


def _loaded(rows: Iterable[_Row], imports: Mapping[str, Import]) -> str:
    """Which of several copies Python would load, in words; empty where there is one."""
    found = {row.library: imports.get(row.library) for row in rows}
    known = {path: one for path, one in found.items() if one}
    if len(found) < 2:
        return ""
    if len(known) < len(found) or len({one.module for one in known.values()}) > 1:
        return "; which of them is loaded first, what is imported decides"
    return f"; Python would load {min(known, key=lambda path: known[path].rank)}"


def _contradictions(rows: Sequence[_Row], imports: Mapping[str, Import]) -> Iterator[Finding]:
    """A stale copy beside a new one: which of them registers depends on what is loaded first."""
    first: dict[tuple[str, str], _Row] = {}
    for row in rows:
        if row.effect is None:
            continue
        other = first.setdefault((row.op, row.found.space), row)
        if other.found.schema != row.found.schema:
            text = other.found.line
            message = f"two schemas of one operator: the other, in {other.library}, is {text}"
            message += _loaded((other, row), imports)
            yield Finding("SP204", row.where, row.op, message, Severity.WARNING)


def _required(
    name: str, rows: Sequence[_Row], libraries: int, where: str, imports: Mapping[str, Import]
) -> Iterator[Finding]:
    namespace, _, op = name.rpartition("::")
    copies = [row for row in rows if row.op == op and (not namespace or row.found.space in ("", namespace))]
    for row in copies:
        if namespace and not row.found.space:
            yield Finding(
                "SP203", row.where, op, f"required in {namespace}, in a namespace that is not known: {_message(row)}"
            )
        verdict = row.judgement.verdict
        if verdict not in GOOD:
            message = f"required to be right, is {verdict.value}: {_message(row)}{_loaded(copies, imports)}"
            yield Finding("SP203", row.where, op, message)
    if not copies:
        message = f"required, but in none of the {libraries} libraries read"
        near = difflib.get_close_matches(op, {row.op for row in rows}, 1)
        others = sorted({row.found.space for row in rows if row.op == op} - {""})
        if others:
            message += f"; it is in namespace {', '.join(others)}"
        elif near:
            message += f"; did you mean {near[0]}?"
        yield Finding("SP202", Location(where), op, message)
