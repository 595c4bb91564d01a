"""The kit in a vLLM process: an entry point of the group `vllm.general_plugins`, which every worker calls at start.

Installing the kit into a serving image and restarting is the whole fix. Does nothing, and says nothing, where the
operators are not there; they may also come later, when a model is imported. SCHEMA_KIT_GUARD=0 leaves the guard off.
"""

from __future__ import annotations

import logging

# Below vLLM's own logger: its format, its level.
log = logging.getLogger("vllm.schema_kit")


def register() -> None:
    """Guards the operators of the tables in this process, and says so in vLLM's log: one line for each library.

    What cannot be guarded is an error in the log, not the end of a server that may not use it; a table of the user's
    that cannot be read is the end.
    """
    import vllm.envs  # noqa: F401  holds what goes into the hash of vLLM's compile cache

    from schema_patch.model import ToolError
    from schema_patch.schemas import table

    from . import guard
    from .graphs import live

    try:
        if guard.enable(tell=_tell).off:
            _tell("the guard is off, as SCHEMA_KIT_GUARD says")
    except guard.GuardError as error:
        log.error("schema-kit: %s", error)
    except ToolError as error:
        log.error("schema-kit: %s", error)
        raise SystemExit(2) from None
    live.start_if_asked(table.everything().all_namespaces)


def _tell(line: str) -> None:
    log.info("schema-kit: %s", line)
