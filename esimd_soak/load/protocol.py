"""The OpenAI-compatible wire format: request -> bytes, bytes -> Reply. Pure; opens no connection.

Whatever a server sends ends as text or as a named error, never as an exception: a broken reply is a result of the test.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec

from esimd_soak.plan import Plan, Server
from esimd_soak.score import any_nan

from .prompts import Prompt

NOT_JSON_COMPLIANT = "Out of range float values"  # what a server says that tried to send a NaN


class _Logprob(msgspec.Struct):
    logprob: float | None = None


class _Logprobs(msgspec.Struct):
    token_logprobs: list[float | None] | None = None
    content: list[_Logprob] | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class _Choice(msgspec.Struct):
    text: str | None = None
    message: _Message | None = None
    delta: _Message | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Body(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None
    message: str | None = None


_decode = msgspec.json.Decoder(_Body).decode


@dataclass(slots=True)
class Reply:
    """What came back of one request; `error` says why it is not a whole generation."""

    status: int = 200
    parts: list[str] = field(default_factory=list)
    prompt_tokens: int = 0
    tokens: int = 0
    pieces: int = 0
    finish: str = ""
    error: str = ""
    nan: bool = False
    done: bool = False
    first: float = 0.0
    end: float = 0.0

    @property
    def text(self) -> str:
        return "".join(self.parts)


def path(server: Server) -> str:
    return "/v1/chat/completions" if server.api == "chat" else "/v1/completions"


def request(plan: Plan, server: Server, model: str, prompt: Prompt, n: int) -> bytes:
    """The body of request `n`."""
    body: dict[str, Any] = {"model": model, "max_tokens": plan.max_tokens, "temperature": plan.temperature}
    body["seed"] = (plan.seed + n) & 0x7FFFFFFF
    if server.api == "chat":
        body["messages"] = [{"role": "user", "content": prompt}]
    else:
        body["prompt"] = prompt
    if plan.logprobs:
        body["logprobs"] = True if server.api == "chat" else 1
    if server.stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    return msgspec.json.encode(body | plan.body)


def take_body(reply: Reply, data: bytes) -> None:
    """A whole, unstreamed answer, or the body of an error."""
    if reply.status != 200:
        reply.error = f"http {reply.status}: {_reason(data)}"
        reply.nan = NOT_JSON_COMPLIANT.encode() in data
        return
    _take(reply, data)
    reply.done = True
    if not reply.error and not reply.pieces:
        reply.error = f"json: expected choices with text, found {data[:200].decode('utf-8', 'replace')!r}"


def take_line(reply: Reply, line: bytes) -> None:
    """A line of an event stream; comments and empty lines mean nothing."""
    if not line.startswith(b"data:"):
        return
    data = line[5:].strip()
    if data == b"[DONE]":
        reply.done = True
    elif data:
        _take(reply, data)


def end_stream(reply: Reply) -> None:
    """Judges a stream that ended: without its end mark and a finish reason it was cut."""
    if not reply.error and not reply.done and not reply.finish:
        reply.error = f"cut: the stream ended after {reply.pieces} pieces without [DONE] and finish_reason"
    elif not reply.error and not reply.pieces:
        reply.error = "json: the stream held no choices"


def _take(reply: Reply, data: bytes) -> None:
    try:
        body = _decode(data)
    except msgspec.DecodeError as error:
        lenient = _lenient(data)  # NaN is no JSON, yet it is what a broken server may send and what we look for
        if lenient is None:
            reply.error = reply.error or f"json: {error}: {data[:200].decode('utf-8', 'replace')!r}"
            return
        body = lenient
    if body.error is not None:
        reply.error = f"server: {_reason(data)}"
        reply.nan = reply.nan or NOT_JSON_COMPLIANT.encode() in data
        return
    if body.usage:
        reply.prompt_tokens = body.usage.prompt_tokens or reply.prompt_tokens
        reply.tokens = body.usage.completion_tokens or reply.tokens
    for choice in body.choices or ():
        reply.pieces += 1
        if choice.text:
            reply.parts.append(choice.text)
        said = choice.delta or choice.message
        if said:
            reply.parts += [part for part in (said.reasoning_content or said.reasoning, said.content) if part]
        if choice.finish_reason:
            reply.finish = choice.finish_reason
        if choice.logprobs:
            reply.nan = reply.nan or any_nan(_logprobs(choice.logprobs))


def _logprobs(given: _Logprobs) -> list[float | None]:
    return [*(given.token_logprobs or ()), *(token.logprob for token in given.content or ())]


def _lenient(data: bytes) -> _Body | None:
    try:
        return msgspec.convert(json.loads(data), _Body)
    except (ValueError, msgspec.ValidationError):
        return None


def _reason(data: bytes) -> str:
    """The server's own words in an error body, one line, at most 300 characters."""
    try:
        body = _decode(data)
    except msgspec.DecodeError:
        return " ".join(data[:300].decode("utf-8", "replace").split())
    inner = body.error.get("message", body.error) if isinstance(body.error, dict) else body.error or body.message
    return " ".join(str(inner)[:300].split())
