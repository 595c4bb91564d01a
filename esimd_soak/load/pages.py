"""A page of a server, besides its generations: metrics, health, models. Knows HTTP; a page that is missing is None."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from esimd_soak.plan import Server

from .client import headers
from .reading import clean

if TYPE_CHECKING:
    import aiohttp

LARGEST = 2**25  # bytes


async def fetch(http: aiohttp.ClientSession, server: Server, what: str) -> str | None:
    """The text of a page, or None when there is no such page or no server."""
    import aiohttp

    try:
        timeout = aiohttp.ClientTimeout(total=10)
        async with http.get(f"{server.url}{what}", headers=headers(server), timeout=timeout) as response:
            data = await response.content.read(LARGEST) if response.status == 200 else None
            while data is not None and len(data) < LARGEST and (more := await response.content.read(LARGEST)):
                data += more
            return None if data is None else clean(data.decode("utf-8", "replace"))
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError):
        return None
