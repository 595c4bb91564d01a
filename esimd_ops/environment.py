"""What the environment asks of the kit in each process. Reads variables; imports no torch and does nothing itself.

    SCHEMA_KIT_GUARD   0: the guard stays off, whoever enables it; 1: on for the namespaces of all operator tables;
                       or the namespaces to guard, with commas
    SCHEMA_KIT_REPLACE "races", or operators (ns::op, with commas) in whose place this kit's own are put
    SCHEMA_KIT_TABLE   operator tables of the user, as TOML files, separated as in PATH
    SCHEMA_KIT_OBSERVE a file into which every process puts what its operators were seen to do
    SCHEMA_KIT_OBSERVE_OPTIONS  how: "namespace=mylib,other first=10 every=100 budget=0.05 save=DIR", or parts of it

A process also tells the children that multiprocessing starts anew what it has guarded itself: they import the program
again, but not what ran under `if __name__ == "__main__"`. Other programs that it starts are not told.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
from functools import cache
from importlib import metadata
from multiprocessing import process as processes

from schema_patch.schemas import table as tables

GUARD, TABLE, INHERITED = "SCHEMA_KIT_GUARD", "SCHEMA_KIT_TABLE", "SCHEMA_KIT_INHERITED"
REPLACE = "SCHEMA_KIT_REPLACE"
OBSERVE, OBSERVE_OPTIONS = "SCHEMA_KIT_OBSERVE", "SCHEMA_KIT_OBSERVE_OPTIONS"
OFF, ON = ("0", "off", "false", "no"), ("1", "on", "true", "yes")


def guard_is_off() -> bool:
    """Everything that the guard would do is to be left undone, as in a control arm."""
    return os.environ.get(GUARD, "").strip().lower() in OFF


def guarded_namespaces() -> tuple[str, ...] | None:
    """The namespaces to guard in every process; None where nothing is asked for."""
    asked = os.environ.get(GUARD, "").strip()
    if not asked or guard_is_off():
        return None
    if asked.lower() in ON:
        return tuple(dict.fromkeys(space for table in operator_tables() for space in table.all_namespaces))
    return tuple(dict.fromkeys(asked.replace(",", " ").split()))


def replaced_operators() -> str:
    """The words that name operators to replace in every process; "" for none."""
    return os.environ.get(REPLACE, "").strip()


def observed_into() -> str:
    """The file that tells what operators were seen to do; "" where nothing is to be observed."""
    return os.environ.get(OBSERVE, "").strip()


def observe_options() -> str:
    return os.environ.get(OBSERVE_OPTIONS, "")


def user_tables() -> tuple[tables.Table, ...]:
    """The tables that the user names. Raises ToolError for a file that is not there or is no table."""
    return tuple(tables.read_file(name, TABLE) for name in os.environ.get(TABLE, "").split(os.pathsep) if name)


def operator_tables() -> tuple[tables.Table, ...]:
    """All that is known of operators, what the user says first."""
    return (*user_tables(), tables.everything())


def hand_down(statements: str | None) -> None:
    """What children of this process are to guard as well; None: nothing."""
    if statements is None:
        os.environ.pop(INHERITED, None)
    else:
        os.environ[INHERITED] = statements


def inherited() -> str | None:
    """What the parent of this process had guarded, where multiprocessing has started it anew."""
    child = multiprocessing.parent_process() is not None or getattr(processes.current_process(), "_inheriting", False)
    return os.environ.get(INHERITED) if child else None


@cache
def is_entered() -> bool:
    """Whether `import torch` brings the kit into every process, as its entry point."""
    known = metadata.entry_points(group="torch.backends")
    loaded = os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1"
    return loaded and any(entry.value == "esimd_ops.door:enter" for entry in known)


def is_compile_worker() -> bool:
    """This process compiles what others trace: torch starts it as a module or, before 2.8, by the path of its file."""
    return any(re.search(r"torch[./]_inductor[./]compile_worker", word) for word in sys.orig_argv)
