"""The OpenAI-compatible wire format: request -> bytes, bytes -> Reply. Pure; opens no connection.

Whatever a server sends ends as text or as a named error, never as an exception: a broken reply is a result of the test.
So nothing is taken for granted of a reply but that it is bytes; what does not have the expected shape is left out.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from esimd_soak.plan import Plan, Server
from esimd_soak.score import any_nan

from . import gaps
from .prompts import Prompt
from .reading import clean, decode, words

NOT_JSON_COMPLIANT = "Out of range float values"  # what a server says that tried to send a NaN
BUSY = (429, 502, 503)
"""Said by a server, or a gateway before it, that will take the request later: nothing was generated. (504 is another
matter: somebody worked on it, and did not end.)"""
MOST_TOKENS = 10**9
_PARTIAL = re.compile(rb'"(text|content|reasoning_content|reasoning|arguments)"\s*:\s*"((?:[^"\\]|\\.)*)')


@dataclass(slots=True)
class Reply:
    """What came back of one request; `error` says why it is not a whole generation."""

    status: int = 200
    parts: dict[tuple[int, str], list[str]] = field(default_factory=dict)
    """(number of the choice, channel) -> its pieces: answers of one reply, and thinking and speaking, stay apart."""
    prompt_tokens: int = 0
    tokens: int = 0
    pieces: int = 0
    finish: str = ""
    error: str = ""
    nan: bool = False
    done: bool = False
    first: float = 0.0
    last: float = 0.0
    end: float = 0.0
    gaps: Counter[int] = field(default_factory=Counter)
    drafted: int = 0
    accepted: int = 0
    retry_after: float = 0.0
    """Seconds that the server asks to wait; 0 when it does not say."""

    @property
    def texts(self) -> list[tuple[str, str]]:
        """(channel, text) of every choice."""
        return [(name, "".join(pieces)) for (_, name), pieces in sorted(self.parts.items())]

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.texts)

    @property
    def choices(self) -> int:
        return max(1, len({index for index, _ in self.parts}))

    @property
    def served(self) -> bool:
        return 200 <= self.status < 300 and self.status != 204

    @property
    def busy(self) -> bool:
        return self.status in BUSY

    def add(self, index: int, channel: str, text: str, t: float) -> None:
        if not text:
            return
        self.parts.setdefault((index, channel), []).append(text)
        if self.last and t > self.last:  # what arrives in one read is one piece
            self.gaps[gaps.bucket(t - self.last)] += 1
        self.first = self.first or t
        self.last = t


def path(server: Server) -> str:
    return "/v1/chat/completions" if server.api == "chat" else "/v1/completions"


def request(plan: Plan, server: Server, model: str, prompt: Prompt, n: int) -> bytes:
    """The body of request `n`. Without a seed where the plan has none: a seed may choose another sampler."""
    body: dict[str, Any] = {"model": model, "max_tokens": plan.max_tokens, "temperature": plan.temperature}
    if plan.seed != "none":
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
    if not reply.served:
        reply.error = f"http {reply.status}: {_reason(data)}"
        reply.nan = NOT_JSON_COMPLIANT.encode() in data
        return
    _take(reply, data, 0.0)
    reply.done = True
    if not reply.error and not reply.pieces:
        reply.error = f"json: expected choices with text, found {clean(data[:200].decode('utf-8', 'replace'))!r}"


def salvage(reply: Reply, data: bytes) -> None:
    """Of an unstreamed answer that was cut: the texts, as far as they came."""
    for name, text in _PARTIAL.findall(data):
        try:
            said = clean(json.loads(b'"' + text + b'"', strict=False))
        except ValueError:
            said = clean(text.decode("utf-8", "replace"))
        channel = {b"arguments": "tool", b"reasoning": "reasoning", b"reasoning_content": "reasoning"}.get(name, "text")
        reply.add(0, channel, said, 0.0)


class Stream:
    """The events of one event stream: bytes as they arrive -> a Reply.

    Lines end in CR, LF or both, and an event may have several `data` lines (WHATWG, Server-sent events).
    """

    LONGEST = 2**26  # bytes of one line; a server that sends more is broken

    def __init__(self, reply: Reply) -> None:
        self._reply, self._data = reply, list[bytes]()
        self._rest, self._length = list[bytes](), 0

    def feed(self, data: bytes, t: float) -> None:
        """Takes what arrived at the moment `t`."""
        self._rest.append(data)
        self._length += len(data)
        if self._length > self.LONGEST:
            self._reply.error = self._reply.error or f"protocol: a line of more than {self.LONGEST:,} bytes"
            self._rest, self._length = [], 0
        elif b"\n" in data or b"\r" in data:
            *lines, rest = re.split(rb"\r\n|\n|\r(?!\Z)", b"".join(self._rest))
            self._rest, self._length = [rest], len(rest)
            for line in lines:
                self._line(line, t)

    def end(self, t: float = 0.0) -> None:
        """Judges a stream that ended: without its end mark and a finish reason it was cut."""
        self._line(b"".join(self._rest).rstrip(b"\r"), t)
        self._line(b"", t)
        reply = self._reply
        if not reply.error and not reply.done and not reply.finish:
            reply.error = f"cut: the stream ended after {reply.pieces} pieces without [DONE] and finish_reason"
        elif not reply.error and not reply.pieces:
            reply.error = "json: the stream held no choices"

    def _line(self, line: bytes, t: float) -> None:
        line = line.removeprefix(b"\xef\xbb\xbf")
        if line.startswith(b"data:"):
            self._data.append(line[5:].strip())
        elif not line and self._data:
            whole = [b"\n".join(self._data)]
            if len(self._data) > 1 and decode(whole[0])[0] is None:
                whole = self._data  # a server that leaves out the empty line between events
            for data in whole:
                if data == b"[DONE]":
                    self._reply.done = True
                elif data:
                    _take(self._reply, data, t)
            self._data = []


def _take(reply: Reply, data: bytes, t: float) -> None:
    body, why = decode(data)
    if not isinstance(body, dict):
        found = clean(data[:200].decode("utf-8", "replace"))
        reply.error = reply.error or f"json: {why or 'expected an object'}: {found!r}"
        return
    if body.get("error") is not None or body.get("object") == "error":
        reply.error = reply.error or f"server: {_reason(data)}"
        reply.nan = reply.nan or NOT_JSON_COMPLIANT.encode() in data
        return
    _count(reply, body)
    choices = body.get("choices")
    for place, choice in enumerate(choices if isinstance(choices, list) else ()):
        if isinstance(choice, dict):
            reply.pieces += 1
            _choice(reply, choice, place, t)


def _choice(reply: Reply, choice: dict[str, Any], place: int, t: float) -> None:
    index = choice.get("index")
    index = index if isinstance(index, int) and 0 <= index < 4096 else place
    reply.add(index, "text", words(choice.get("text")), t)
    for said in (choice.get("delta"), choice.get("message")):
        if isinstance(said, dict):
            for channel, text in spoken(said):
                reply.add(index, channel, text, t)
    if isinstance(finish := choice.get("finish_reason"), str):
        finish = clean(finish)[:40]
        reply.finish = finish
        if finish in ("abort", "error"):
            reply.error = reply.error or f"server: it ended the answer with finish_reason {finish}"
    reply.nan = reply.nan or any_nan(_logprobs(choice.get("logprobs")))


def spoken(message: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(channel, text) of a chat message or a piece of one."""
    # Some servers send the same thinking under both names.
    yield "reasoning", words(message.get("reasoning_content")) or words(message.get("reasoning"))
    yield "text", words(message.get("content"))
    yield "refusal", words(message.get("refusal"))
    calls = message.get("tool_calls")
    for call in [*(calls if isinstance(calls, list) else ()), {"function": message.get("function_call")}]:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield "tool", words(function.get("name")) + words(function.get("arguments"))


def _count(reply: Reply, body: dict[str, Any]) -> None:
    """Token counts, also those of drafts as llama.cpp and vLLM tell them; what is no count is not told."""
    usage = body.get("usage")
    if isinstance(usage, dict):
        reply.prompt_tokens = _number(usage.get("prompt_tokens")) or reply.prompt_tokens
        reply.tokens = _number(usage.get("completion_tokens")) or reply.tokens
    timings = body.get("timings")
    if isinstance(timings, dict):
        reply.drafted = _number(timings.get("draft_n")) or reply.drafted
        reply.accepted = _number(timings.get("draft_n_accepted")) or reply.accepted


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else 0


def _logprobs(given: object) -> list[float]:
    if not isinstance(given, dict):
        return []
    listed = given.get("token_logprobs")
    values = list(listed) if isinstance(listed, list) else []
    content = given.get("content")
    values += [one.get("logprob") for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    return [value for value in values if isinstance(value, float)]


def _reason(data: bytes) -> str:
    """The server's own words in an error body, one line, at most 300 characters."""
    body, _ = decode(data)
    error = body.get("error") if isinstance(body, dict) else None
    told = error.get("message") if isinstance(error, dict) else error
    if not told and isinstance(body, dict):
        told = body.get("message")
    if not isinstance(told, str):  # of another shape: as it stands
        told = data[:300].decode("utf-8", "replace")
    return " ".join(clean(told[:300]).split())
