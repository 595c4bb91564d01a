"""Text that someone already has -> scored rows. Reads JSON and JSON Lines; knows no server.

Understands: a line a completion (a string, or an object with the text under `text`, `generated_text`, `output`,
`response` or `content`, or a whole OpenAI answer with `choices`); a result of `vllm bench serve` (`generated_texts`);
plain lines with --text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from esimd_soak.score import DEFAULT, Limits, Score, score
from esimd_soak.model import ToolError

KEYS = ("text", "generated_text", "output", "response", "content")


@dataclass(frozen=True, slots=True)
class Scored:
    place: str
    score: Score
    text: str


def scored(file: BinaryIO, name: str, limits: Limits = DEFAULT, *, plain: bool = False) -> Iterator[Scored]:
    """Scores everything in a file. ToolError at a place that holds no text."""
    for place, text in _texts(file, name, plain):
        yield Scored(f"{name}:{place}", score(text, limits), text)


def texts(line: bytes, name: str) -> Iterator[str]:
    """The texts in one line of a JSONL file. ToolError when it holds none."""
    try:
        document = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise ToolError(f"expected a JSON object a line: {error}", name) from None
    for _, text in _document(document, name, "1"):
        yield text


def _texts(file: BinaryIO, name: str, plain: bool) -> Iterator[tuple[str, str]]:
    first = file.readline()
    if plain:
        for number, line in enumerate(_chain(first, file), 1):
            yield str(number), line.decode("utf-8", "replace").rstrip("\r\n")
        return
    try:
        document = msgspec.json.decode(first) if first.strip() else None
    except RecursionError as error:
        raise ToolError("expected text in JSON, found it nested too deep to read", f"{name}:1") from error
    except msgspec.DecodeError:  # not a document a line: perhaps one document over many lines
        try:
            document = msgspec.json.decode(first + file.read())
        except msgspec.DecodeError as error:
            raise ToolError(f"expected JSON or JSON Lines (or --text for plain lines): {error}", f"{name}:1") from None
        yield from _document(document, name, "")
        return
    number = 1
    if first.strip():
        yield from _document(document, name, "1")
    for line in file:
        number += 1
        if line.strip():
            try:
                document = msgspec.json.decode(line)
            except msgspec.DecodeError as error:
                raise ToolError(f"expected a JSON object a line: {error}", f"{name}:{number}") from None
            yield from _document(document, name, str(number))


def _document(document: Any, name: str, line: str) -> Iterator[tuple[str, str]]:
    if isinstance(document, str):
        yield line or "1", document
    elif isinstance(document, list):
        for i, item in enumerate(document):
            yield from _document(item, name, f"{line}[{i}]")
    elif isinstance(document, dict) and "generated_texts" in document:
        texts = document["generated_texts"]
        if not texts:
            raise ToolError("generated_texts is empty: nothing to score", name)
        # A request that failed has an empty text, which is no generation.
        errors = document.get("errors") or [""] * len(texts)
        for i, (text, error) in enumerate(zip(texts, errors, strict=False)):
            if not error:
                yield f"generated_texts[{i}]", str(text or "")
    elif isinstance(document, dict) and isinstance(document.get("choices"), list):
        for i, choice in enumerate(document["choices"]):
            said = choice.get("text")
            if said is None:
                message = choice.get("message") or {}
                said = (message.get("reasoning_content") or "") + (message.get("content") or "")
            yield f"{line}.choices[{i}]", str(said)
    elif isinstance(document, dict) and (
        key := next((key for key in KEYS if isinstance(document.get(key), str)), None)
    ):
        yield line or "1", document[key]
    elif isinstance(document, dict) and "spec_decode_acceptance_rate" in document:
        raise ToolError("this bench result holds no generated_texts; save it with its outputs (--save-detailed)", name)
    else:
        held = ", ".join(sorted(document)[:8]) if isinstance(document, dict) else type(document).__name__
        expected = f"expected text under one of {', '.join(KEYS)}, choices or generated_texts"
        raise ToolError(f"{expected}; found {held}", f"{name}:{line or 1}")


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
