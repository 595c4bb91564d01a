"""Text that someone already has -> scored rows. Reads JSON and JSON Lines; knows no server.

Understands: a line a completion (a string, or an object with the text under `text`, `generated_text`, `output`,
`response` or `content`, or a whole OpenAI answer with `choices`); a result of `vllm bench serve` (`generated_texts`);
plain lines with --text. A `prompt` or `messages` beside a text says which alphabets are expected of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from esimd_soak.load.protocol import spoken
from esimd_soak.load.reading import decode, words
from esimd_soak.model import ToolError
from esimd_soak.score import DEFAULT, Limits, Score, score

DEEPEST = 16
KEYS = ("text", "generated_text", "output", "response", "content")


@dataclass(frozen=True, slots=True)
class Scored:
    place: str
    score: Score | None
    """None: a request that failed, or whose answer a filter withheld; it is no generation."""
    text: str


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text in a document: where, and what it was asked for."""

    place: str
    text: str
    prompt: str | None = None
    failed: bool = False


def scored(file: BinaryIO, name: str, limits: Limits = DEFAULT, *, plain: bool = False) -> Iterator[Scored]:
    """Scores everything in a file. ToolError at a place that holds no text."""
    for found in _texts(file, name, plain):
        judged = None if found.failed else score(found.text, limits, prompt=found.prompt)
        yield Scored(f"{name}:{found.place}", judged, found.text)


def texts(line: bytes, name: str) -> Iterator[str]:
    """The texts in one line of a JSONL file. ToolError when it holds none."""
    for found in _document(_decoded(line, name), name, "1"):
        if not found.failed:
            yield found.text


def _decoded(data: bytes, where: str) -> Any:
    document, why = decode(data)
    if why:
        raise ToolError(f"expected JSON or JSON Lines (or --text for plain lines): {why}", where)
    return document


def _texts(file: BinaryIO, name: str, plain: bool) -> Iterator[Excerpt]:
    first = file.readline()
    if plain:
        for number, line in enumerate(_chain(first, file), 1):
            yield Excerpt(str(number), line.decode("utf-8", "replace").rstrip("\r\n"))
        return
    if first.strip() and decode(first)[1]:  # not a document a line: perhaps one document over many lines
        yield from _document(_decoded(first + file.read(), f"{name}:1"), name, "")
        return
    for number, line in enumerate(_chain(first, file), 1):
        if line.strip():
            yield from _document(_decoded(line, f"{name}:{number}"), name, str(number))


def _document(document: Any, name: str, line: str, prompt: str | None = None) -> Iterator[Excerpt]:
    if isinstance(document, str):
        yield Excerpt(line or "1", words(document), prompt)
    elif line.count("[") > DEEPEST:
        raise ToolError("expected texts, found lists nested too deep", f"{name}:{line[:40]}")
    elif isinstance(document, list):
        for i, item in enumerate(document):
            yield from _document(item, name, f"{line}[{i}]", prompt)
    elif not isinstance(document, dict):
        raise _unknown(type(document).__name__, name, line)
    elif isinstance(document.get("generated_texts"), list):
        yield from _bench(document, name)
    elif isinstance(document.get("choices"), list):
        yield from _choices(document["choices"], line, _prompt(document))
    elif key := next((key for key in KEYS if isinstance(document.get(key), (str, list, dict))), None):
        yield from _keyed(document, key, name, line)
    elif "spec_decode_acceptance_rate" in document or "generated_texts" in document:
        raise ToolError("this bench result holds no generated_texts; save it with its outputs (--save-detailed)", name)
    else:
        raise _unknown(", ".join(sorted(map(str, document))[:8]), name, line)


def _unknown(held: str, name: str, line: str) -> ToolError:
    expected = f"expected text under one of {', '.join(KEYS)}, choices or generated_texts"
    return ToolError(f"{expected}; found {held}", f"{name}:{line or 1}")


def _keyed(document: dict[str, Any], key: str, name: str, line: str) -> Iterator[Excerpt]:
    """One message or row; of a message with thinking, both."""
    value = document[key]
    if isinstance(value, dict):
        yield from _document(value, name, f"{line or '1'}.{key}", _prompt(document))
        return
    if key == "content":
        for channel, text in spoken(document):
            if text and channel != "text":
                yield Excerpt(f"{line or '1'}.{channel}", text, _prompt(document))
    yield Excerpt(line or "1", words(value), _prompt(document))


def _bench(document: dict[str, Any], name: str) -> Iterator[Excerpt]:
    texts = document["generated_texts"]
    if not texts:
        raise ToolError("generated_texts is empty: nothing to score", name)
    # A request that failed has an empty text, which is no generation.
    errors = document.get("errors")
    errors = errors if isinstance(errors, list) and len(errors) == len(texts) else [""] * len(texts)
    for i, (text, error) in enumerate(zip(texts, errors, strict=True)):
        yield Excerpt(f"generated_texts[{i}]", words(text), failed=bool(error))


def _choices(choices: list[Any], line: str, prompt: str | None) -> Iterator[Excerpt]:
    """Every channel of every choice that has text; a choice without any is an empty answer, unless a filter took it."""
    for i, choice in enumerate(choices):
        if not isinstance(choice, dict):
            continue
        place = f"{line}.choices[{i}]"
        message = choice.get("message")
        said = [("text", words(choice.get("text")))] + (list(spoken(message)) if isinstance(message, dict) else [])
        told = [(channel, text) for channel, text in said if text]
        for channel, text in told:
            yield Excerpt(place if channel == "text" else f"{place}.{channel}", text, prompt)
        if not told and choice.get("finish_reason") not in ("tool_calls", "function_call"):
            yield Excerpt(place, "", prompt, failed=choice.get("finish_reason") == "content_filter")


def _prompt(document: dict[str, Any]) -> str | None:
    """What was asked, where it stands beside the answer."""
    if isinstance(prompt := document.get("prompt"), str):
        return words(prompt)
    messages = document.get("messages")
    asked = (
        [m for m in messages if isinstance(m, dict) and m.get("role") == "user"] if isinstance(messages, list) else []
    )
    return "\n".join(words(message.get("content")) for message in asked) or None


def _chain(first: bytes, file: BinaryIO) -> Iterator[bytes]:
    if first:
        yield first
    yield from file


def open_input(path: str) -> BinaryIO:
    """`-` is standard input."""
    import sys

    if path == "-":
        return sys.stdin.buffer
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise ToolError(f"cannot read: {error.strerror}", path) from None
