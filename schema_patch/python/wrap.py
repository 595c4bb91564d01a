"""A Python module -> what is wrong in it once operators return nothing, and the edits that put it right. Pure.

A call whose result is returned or assigned is followed by its buffer: `return op(x, out)` becomes `op(x, out)` and
`return out`. A fake's results become None. Everything else that uses a result is a finding without edits.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Collection, Iterator

from schema_patch.model import Edit, Finding, Severity, Span, ToolError
from schema_patch.schemas.gone import Gone
from schema_patch.text import edits

from . import calls
from . import fakes as pyfakes
from .calls import CallingModule, Outside, PythonCall, Use
from .fakes import Fake
from .names import FUNCTIONS, Function

BLANKS = rb"(?:[ \t\f]|\\\r?\n)*"
RETURN = re.compile(rb"return" + BLANKS)
EQUALS = re.compile(rb"(?:[\s)]|\\\r?\n)*=" + BLANKS)
REST = re.compile(rb"[ \t\f]*(?:#[^\r\n]*)?(?=\r|\n|\Z)")
LINE_END = re.compile(rb"\r\n|\r|\n")


def judge(data: bytes, path: str, gone: Gone, outside: Outside = lambda *_: frozenset()) -> list[Finding]:
    """What is wrong in a Python file, with the edits where there is one way to put it right.

    `outside` tells what a name stands for that the file imports (pyhandles). Raises ToolError where it is not Python.
    """
    try:
        return _judged(calls.read(data, path, gone, outside))
    except RecursionError as error:
        raise ToolError("cannot follow its names: expressions nested too deeply", path) from error


def _judged(module: CallingModule) -> list[Finding]:
    fakes = pyfakes.find(module)
    inside = {fake.node for fake in fakes}
    findings = [_of_call(module, call) for call in module.calls if _counts(module, call, inside)]
    findings += [finding for fake in fakes for finding in _of_fake(module, fake)]
    findings += [
        Finding("SP007", module.location(stray.node), stray.op, f"{stray.message}: not followed", Severity.NOTE)
        for stray in dict.fromkeys(module.strays)
    ]
    return sorted(findings, key=lambda finding: finding.location)


def rewrite(
    data: bytes, path: str, gone: Gone, outside: Outside = lambda *_: frozenset()
) -> tuple[bytes, tuple[Edit, ...], tuple[Finding, ...]]:
    """The new bytes of a Python file, the edits, and all findings: the edits answer those that carry them.

    Raises ToolError where the file is not Python, or where the result would not be what was meant.
    """
    found = judge(data, path, gone, outside)
    made = tuple(edit for finding in found for edit in finding.edits)
    new = edits.apply(data, made)
    left = [finding for finding in found if not finding.fixable]
    again = judge(new, path, gone, outside)
    if [(f.code, f.op, f.message) for f in again] != [(f.code, f.op, f.message) for f in left]:
        raise ToolError("the edits would not do what was meant: nothing written; please report this file", path)
    return new, made, tuple(found)


def _counts(module: CallingModule, call: PythonCall, fakes: Collection[Function]) -> bool:
    """Whether a call uses its result; that of a fake is the fake's own finding."""
    if call.use is Use.UNUSED:
        return False
    outside = call.use not in (Use.RETURNED, Use.HANDED_ON)
    return outside or module.names.function_around(call.node) not in fakes


def _of_call(module: CallingModule, call: PythonCall) -> Finding:
    where, op, buffer = module.location(call.node), call.gone.op, call.gone.buffer
    if call.use is Use.HANDED_ON:
        return Finding("SP007", where, op, "a lambda returns its result, which is gone: not followed", Severity.NOTE)
    said = f"the result {call.use.value}, and the operator returns nothing: use {buffer or 'its buffers'} instead"
    argument = calls.argument(call.node, call.gone.arguments.index(buffer), buffer) if buffer else None
    why = ""
    if call.use is Use.TAKEN or buffer is None:
        why = "rewrite it by hand"
    elif not call.sure:
        why = "rewrite it by hand: it may be another operator that is called"
    elif argument is None or any(isinstance(node, ast.NamedExpr) for node in ast.walk(call.node)):
        why = "rewrite it by hand: which argument that is cannot be told"
    made = () if why else _followed(module, call, argument)
    if not why and not made:
        why = "rewrite it by hand"
    return Finding("SP005", where, op, f"{said}; {why}" if why else said, edits=tuple(made))


def _followed(module: CallingModule, call: PythonCall, argument: ast.expr | None) -> list[Edit]:
    """The edits that end the statement after the call and say what its result was; none where that cannot be done."""
    statement = module.names.parent[call.node]
    assert argument is not None
    assert isinstance(statement, (ast.Return, ast.Assign, ast.AnnAssign))
    span, value = module.span(statement), module.span(call.node)
    made, buffer = _named(module, call, argument)
    if isinstance(statement, ast.Return):
        match = RETURN.match(module.data, span.start)
        what = b"return"
    else:
        last = statement.targets[-1] if isinstance(statement, ast.Assign) else statement.annotation
        match = EQUALS.match(module.data, module.span(last).end)
        what = module.data[span.start : match.end()].rstrip(b" \t\f\\\r\n") if match else b""
    if match is None or match.end() > value.start:
        return []
    made.append(Edit(Span(span.start, match.end()), b""))
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if not (len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id.encode() == buffer):
        made.append(_next(module, span, what + b" " + buffer))
    return made


def _named(module: CallingModule, call: PythonCall, argument: ast.expr) -> tuple[list[Edit], bytes]:
    """A name for the buffer: its own, or one that is given to it where the call is, so that it is not made twice."""
    if isinstance(argument, ast.Name):
        return [], argument.id.encode(module.encoding)
    name = call.gone.buffer or ""
    while keyword.iskeyword(name) or name in module.identifiers:
        name += "_"
    span = module.span(argument)
    opening = Edit(Span(span.start, span.start), f"({name} := ".encode())
    return [opening, Edit(Span(span.end, span.end), b")")], name.encode()


def _next(module: CallingModule, span: Span, text: bytes) -> Edit:
    """A statement behind another: on its own line where that has its own line too, else behind a semicolon."""
    start = max(at for at in module.lines if at <= span.start)
    indent = module.data[start : span.start]
    rest = REST.match(module.data, span.end)
    continued = module.data[:start].rstrip(b"\r\n").endswith(b"\\")
    if indent.strip(b" \t\f") or continued or rest is None:
        return Edit(Span(span.end, span.end), b"; " + text)
    newline = LINE_END.match(module.data, rest.end()) or LINE_END.search(module.data)
    return Edit(Span(rest.end(), rest.end()), (newline[0] if newline else b"\n") + indent + text)


def _of_fake(module: CallingModule, fake: Fake) -> Iterator[Finding]:
    returned = [node for node in _returned(fake.node) if not (isinstance(node, ast.Constant) and node.value is None)]
    if not returned:
        return
    said = "the fake returns something, and the operator returns nothing"
    made: list[Edit] = []
    if fake.only:
        made = [Edit(module.span(node), b"None") for node in returned]
        says = None if isinstance(fake.node, ast.Lambda) else fake.node.returns
        if says is not None and not (isinstance(says, ast.Constant) and says.value is None):
            made.append(Edit(module.span(says), b"None"))
    else:
        said += "; rewrite it by hand: the function serves something else too"
    yield Finding("SP006", module.location(returned[0]), " ".join(fake.ops), said, edits=tuple(made))


def _returned(function: Function) -> Iterator[ast.expr]:
    """The expressions that a function returns, those of functions inside left out."""
    todo: list[ast.AST] = [function.body] if isinstance(function, ast.Lambda) else list(function.body)
    if isinstance(function, ast.Lambda):
        yield function.body
        return
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        elif not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            todo = [*ast.iter_child_nodes(node), *todo]
