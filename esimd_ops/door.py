"""The kit in every process: what torch calls when it is imported, and what a server's plugin calls when it starts.

An entry point of the group `torch.backends`, which torch loads at the end of `import torch` from 2.5 on. Where the
environment asks for nothing this costs the import of one small module. For a process in which torch does not load entry
points (TORCH_DEVICE_BACKEND_AUTOLOAD=0, an older torch), call `enter()` first thing, or in a `.pth` file.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from schema_patch.model import ToolError

from . import environment

log = logging.getLogger("schema_kit")


def enter() -> None:
    """Does in this process what the environment, or the process that started it, asks for. May be called again.

    Where that cannot be had, the process ends with a line and exit code 2: unguarded it would look well. SystemExit,
    since torch turns any other exception into advice to load no entry points.
    """
    try:
        with _whole():
            _enter()
    except ToolError as error:
        _speak_on_stderr()
        log.error("error: %s", error)
        raise SystemExit(2) from None


def _enter() -> None:
    _register_log()
    if environment.observed_into():
        from .observe import process

        process.start()
    asked, inherited = environment.guarded_namespaces(), environment.inherited()
    if not environment.guard_is_off() and environment.replaced_operators():
        asked = asked or ()
    if asked is None and (inherited is None or environment.guard_is_off()):
        return
    from schema_patch.schemas import table as tables

    from . import guard

    if inherited is not None:
        guard.inherit(inherited)
    if asked is not None:
        _speak_on_stderr()
        try:
            guard.enable(asked, tell=log.info)
        except guard.GuardError as error:
            raise ToolError(str(error)) from error
        own = [name for name in asked if name not in tables.everything().all_namespaces]
        guard.expect(own, environment.GUARD, environment.user_tables())


@contextmanager
def _whole() -> Iterator[None]:
    """Modules of the kit whose own import has led here, by `import torch`, are half made: within, they are made anew.

    Python then hands out the new ones: at the end of an import it looks the module up by its name.
    """
    half = {name: each for name, each in sys.modules.items() if name.startswith("esimd_ops.") and _is_half_made(each)}
    for name in half:
        del sys.modules[name]
    try:
        yield
    finally:
        for name, module in half.items():
            sys.modules.setdefault(name, module)


def _is_half_made(module: object) -> bool:
    return getattr(getattr(module, "__spec__", None), "_initializing", False)


def _register_log() -> None:
    """So that TORCH_LOGS="+schema_kit" shows each twin as it is traced; torch from 2.13 on reads it after this."""
    from torch._logging import _internal

    if not _internal.log_registry.is_log("schema_kit"):
        _internal.register_log("schema_kit", "esimd_ops.guard")


def _speak_on_stderr() -> None:
    if not log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        log.addHandler(handler)
    if log.level == logging.NOTSET:
        log.setLevel(logging.INFO)
