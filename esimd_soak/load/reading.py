"""JSON as servers and files really send it -> plain values and clean text. Pure; knows no format.

What JSON forbids and servers send all the same is read: NaN, a lone half of a surrogate pair, a number of any size.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec


def decode(data: bytes) -> tuple[Any, str]:
    """(value, "") or (None, why it is no JSON)."""
    try:
        return msgspec.json.decode(data), ""
    except RecursionError:
        return None, "nested too deep to read"
    except msgspec.DecodeError as error:
        why = str(error)
    try:
        return json.loads(data.decode("utf-8", "replace"), strict=False), ""
    except RecursionError:
        return None, "nested too deep to read"
    except ValueError:
        return None, why


def clean(text: str) -> str:
    """Text that can be written down: a lone surrogate becomes U+FFFD, as any reader would show it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def words(value: object, depth: int = 4) -> str:
    """The text of a message's content: a string, or a list of parts with their texts; empty for anything else."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list) or not depth:
        return ""
    found = []
    for part in value:
        inner = part.get("text", part.get("thinking", part.get("refusal"))) if isinstance(part, dict) else part
        found.append(
            clean(inner) if isinstance(inner, str) else words(inner, depth - 1) if isinstance(inner, list) else ""
        )
    return "".join(found)
