"""The kit in a vLLM process: an entry point of the group `vllm.general_plugins`, which every worker calls at start.

Installing the kit into a serving image and restarting is the whole fix. Does nothing, and says nothing, where the
operators are not there; they may also come later, when a model is imported.
"""

from __future__ import annotations

import logging

log = logging.getLogger("esimd_ops.guard")


def register() -> None:
    """Guards the operators of the table in this process; one line in the log says what was done."""
    import vllm.envs  # noqa: F401  its registry goes into the hash of vLLM's compile cache

    from . import guard

    found = guard.enable()
    if found.guarded:
        log.warning("schema-kit: %d operators guarded under torch.compile", len(found.guarded))
    else:
        log.debug("schema-kit: no operators of the table are loaded yet; they are guarded when they are")
