"""Reads the kernel log, or what another command prints, for a line that says that a device is lost. Knows a process."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress

from esimd_soak.model import ToolError
from esimd_soak.plan import Server, Watch

# Only new lines: an old DEVICE_LOST is none of this run's.
KERNEL_LOG = "exec dmesg --follow-new 2>/dev/null || exec journalctl --dmesg --follow --lines=0"
LONGEST = 2**20  # bytes of a line; the rest of it is not searched


async def log(
    watch: Watch,
    servers: Sequence[Server],
    lost: Callable[[Server, str], None],
    ended: Callable[[str], None],
) -> None:
    """Runs the plan's command and reads its lines; a line that matches loses the card whose `pci` it names.

    A line that names no known card loses all of them: which one is gone cannot be told. A command that fails is a
    ToolError; one that ends by itself is told to `ended`, since from then on nobody watches.
    """
    pattern = re.compile(watch.pattern)
    process = await asyncio.create_subprocess_shell(
        KERNEL_LOG if watch.command == "kernel" else watch.command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        async for line in _lines(process.stdout):
            text = line.decode("utf-8", "replace").strip()
            if match := pattern.search(text):
                named = [target for target in servers if target.pci and target.pci in text]
                for target in named or servers:
                    lost(target, text[max(0, match.start() - 200) : match.end() + 100])
        if code := await process.wait():
            raise ToolError(f"the command that watches the kernel log ended with {code}: {watch.command}")
        ended(f"the command that watches the kernel log ended by itself; nothing was watched after it: {watch.command}")
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            await process.wait()


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Lines of any length, of each at most `LONGEST` bytes."""
    rest = b""
    while data := await stream.read(2**16):
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            yield line[:LONGEST]
        rest = rest[:LONGEST]
    if rest:
        yield rest
