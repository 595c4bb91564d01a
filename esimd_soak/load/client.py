"""One generation over HTTP. The only door to aiohttp sessions; knows no score and no store."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

from esimd_soak.plan import Server
from esimd_soak.model import ToolError

from . import protocol
from .protocol import Reply

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


async def generate(http: aiohttp.ClientSession, url: str, head: dict[str, str], body: bytes) -> Reply:
    """Sends one request and reads its answer to the end. Any trouble is `Reply.error`, its first word the kind."""
    import aiohttp

    reply = Reply()
    try:
        async with http.post(url, data=body, headers=head) as response:
            reply.status = response.status
            if response.status == 200 and response.content_type == "text/event-stream":
                async for line in response.content:
                    protocol.take_line(reply, line)
                    if not reply.first and reply.parts:
                        reply.first = now()
                protocol.end_stream(reply)
            else:
                protocol.take_body(reply, await response.read())
    except asyncio.TimeoutError:
        reply.error = f"timeout: no end after {reply.pieces} pieces"
    except aiohttp.ClientPayloadError as error:
        reply.error = f"cut: {error}"
    except aiohttp.ClientConnectorError as error:  # nothing was sent
        reply.error = f"{UNREACHED}: {error}"
    except aiohttp.ClientConnectionError as error:
        reply.error = f"cut: after {reply.pieces} pieces: {error}"
    except (aiohttp.ClientError, ValueError) as error:  # ValueError: a line longer than the buffer
        reply.error = f"protocol: {error}"
    reply.end = now()
    return reply


async def model(http: aiohttp.ClientSession, server: Server) -> str:
    """The model to ask for: the plan's, or the first that the server lists."""
    import aiohttp
    import msgspec

    if server.model:
        return server.model
    url = f"{server.url}/v1/models"
    try:
        async with http.get(url, headers=headers(server)) as response:
            listed = msgspec.json.decode(await response.read())
            return str(listed["data"][0]["id"])
    except (aiohttp.ClientError, asyncio.TimeoutError) as error:
        raise ToolError(f"the server does not answer: {error or 'timeout'}; is it up?", url) from None
    except (msgspec.DecodeError, KeyError, IndexError, TypeError):
        raise ToolError("expected a list of models, found something else; set `model` in the plan", url) from None
