"""One generation over HTTP. The only door to aiohttp sessions; knows no score and no store."""

from __future__ import annotations

import asyncio
import os
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from esimd_soak.model import ToolError
from esimd_soak.plan import Server

from . import protocol
from .protocol import Reply
from .reading import clean, decode

if TYPE_CHECKING:
    import aiohttp

UNREACHED = "connection"  # the error of a request that never reached the server
_OFFSET = time.time() - time.monotonic()


def now() -> float:
    """Seconds since 1970 that never jump: wall time at start, monotonic from there."""
    return _OFFSET + time.monotonic()


def session(timeout: float) -> aiohttp.ClientSession:
    """A session without limits of its own: the plan says how many requests are in flight."""
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60, ttl_dns_cache=300),
        timeout=aiohttp.ClientTimeout(total=timeout),
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=2**18,
    )


def headers(server: Server) -> dict[str, str]:
    """ToolError when the variable that should hold the key is not set."""
    found = {"Content-Type": "application/json"}
    if server.key_env:
        if server.key_env not in os.environ:
            raise ToolError(f"expected the API key in the environment variable {server.key_env}, which is not set")
        found["Authorization"] = f"Bearer {os.environ[server.key_env]}"
    return found


async def generate(
    http: aiohttp.ClientSession, url: str, head: dict[str, str], body: bytes, reply: Reply | None = None
) -> Reply:
    """Sends one request and reads its answer to the end. Any trouble is `Reply.error`, its first word the kind.

    What was received stays in `reply`, however it ended: also when this is cancelled.
    """
    import aiohttp

    reply = reply or Reply()
    data = bytearray()
    try:
        async with http.post(url, data=body, headers=head) as response:
            reply.status = response.status
            reply.retry_after = wait_of(response.headers.get("Retry-After", ""))
            stream = protocol.Stream(reply) if response.content_type == "text/event-stream" else None
            async for chunk in response.content.iter_any():
                if not data and chunk.startswith(b"data:"):  # a stream under another name
                    stream = stream or protocol.Stream(reply)
                if stream is not None and reply.served:
                    stream.feed(chunk, now())
                else:
                    data += chunk
            if stream is not None and reply.served:
                stream.end(now())
            else:
                protocol.take_body(reply, bytes(data))
    except asyncio.TimeoutError:
        reply.error = f"timeout: no end after {reply.pieces} pieces"
    except aiohttp.ClientPayloadError as error:
        reply.error = f"cut: {clean(str(error))}"
    except aiohttp.ClientConnectorError as error:  # nothing was sent
        reply.error = f"{UNREACHED}: {error}"
    except aiohttp.ClientConnectionError as error:
        reply.error = f"cut: after {reply.pieces} pieces: {error}"
    except (aiohttp.ClientError, OSError, EOFError, ValueError) as error:
        reply.error = f"protocol: {clean(str(error))}"
    if reply.error and data and not reply.parts and reply.served:
        protocol.salvage(reply, bytes(data))
    reply.end = now()
    return reply


def wait_of(header: str) -> float:
    """The seconds of a Retry-After header, which is a number or a date (RFC 9110, 10.2.3); 0 for anything else."""
    header = header.strip()
    if header.replace(".", "", 1).isdigit():
        return float(header[:9])
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0


async def model(http: aiohttp.ClientSession, server: Server) -> str:
    """The model to ask for: the plan's, or the first that the server lists."""
    import aiohttp

    if server.model:
        return server.model
    url = f"{server.url}/v1/models"
    try:
        async with http.get(url, headers=headers(server)) as response:
            listed, _ = decode(await response.read())
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
        raise ToolError(f"the server does not answer: {error or 'timeout'}; is it up?", url) from None
    data = listed.get("data") if isinstance(listed, dict) else None
    first = data[0].get("id") if isinstance(data, list) and data and isinstance(data[0], dict) else None
    if not isinstance(first, str):
        raise ToolError("expected a list of models, found something else; set `model` in the plan", url)
    return clean(first)
