"""The kit in every process: what torch calls when it is imported, and what a server's plugin calls when it starts.

An entry point of the group `torch.backends`, which torch loads at the end of `import torch` from 2.5 on. Where the
environment asks for nothing this costs the import of one small module. For a process in which torch does not load entry
points (TORCH_DEVICE_BACKEND_AUTOLOAD=0, an older torch), call `enter()` first thing, or in a `.pth` file.
"""

from __future__ import annotations

import atexit
import difflib
import logging
import sys
from collections.abc import Callable, Iterable

from . import environment

log = logging.getLogger("schema_kit")


def enter() -> None:
    """Does in this process what the environment, or the process that started it, asks for. May be called again.

    Raises ToolError for an operator table that cannot be read: torch says so, and its import fails.
    """
    _register_log()
    asked, inherited = environment.guarded_namespaces(), environment.inherited()
    if not environment.guard_is_off() and environment.replaced_operators():
        asked = asked or ()
    if asked is None and (inherited is None or environment.guard_is_off()):
        return
    from . import guard

    if inherited is not None:
        guard.inherit(inherited)
    if asked is not None:
        _speak_on_stderr()
        _enable(asked, log.info)
        atexit.register(_report_what_never_came, asked)


def _enable(namespaces: Iterable[str], tell: Callable[[str], None]) -> None:
    from . import guard

    try:
        guard.enable(namespaces, tell=tell)
    except guard.GuardError as error:
        log.error("%s", error)


def _register_log() -> None:
    """So that TORCH_LOGS="+schema_kit" shows each twin as it is traced; torch from 2.13 on reads it after this."""
    from torch._logging import _internal

    if not _internal.log_registry.is_log("schema_kit"):
        _internal.register_log("schema_kit", "esimd_ops.guard")


def _speak_on_stderr() -> None:
    if not log.hasHandlers():
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        log.addHandler(handler)
    if log.level == logging.NOTSET:
        log.setLevel(logging.INFO)


def _report_what_never_came(asked: tuple[str, ...]) -> None:
    """A misspelt namespace looks like a library that is loaded later, until the program ends."""
    from schema_patch.schemas import table

    from . import guard

    if "torch._inductor.compile_worker.__main__" in sys.modules:
        return  # it compiles what others trace
    shipped = table.everything().all_namespaces
    for name in guard.status(asked).pending:
        if name not in shipped:
            log.error(
                "%s=%s: no operator of that namespace was ever registered%s", environment.GUARD, name, _near(name)
            )
    for each in environment.user_tables():
        seen = {op for space in each.all_namespaces for op in _known(space)}
        loaded = [space for space in each.all_namespaces if space in asked and _registered(space)]
        if gone := sorted(set(each.entries) - seen) if loaded else []:
            log.error(
                "%s: of %s no operator %s with these arguments was ever registered",
                environment.TABLE, ", ".join(loaded), ", ".join(gone),
            )  # fmt: skip


def _known(namespace: str) -> set[str]:
    from . import guard

    found = guard.status([namespace]).decisions
    return {d.schema.op for d in found if d.action is not guard.Action.UNKNOWN}


def _registered(namespace: str) -> bool:
    from .guard import late

    return bool(late.registered(namespace))


def _near(name: str) -> str:
    import torch

    spaces = {schema.name.partition("::")[0] for schema in torch._C._jit_get_all_schemas()}
    near = difflib.get_close_matches(name, spaces, 1)
    return f"; did you mean {near[0]}?" if near else ""
