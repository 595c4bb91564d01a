"""Which operands of inline assembly are addresses that it stores to, and which it only loads from: PTX, AMD's GCN.

Knows the text of a template, no syntax tree. An instruction that stands nowhere here leaves its operands unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

OPERAND = r"%(?P<operand>\d+|\[\w+\])"
STORES = re.compile(
    rf"\b(?:st|red|atom|multimem\.(?:st|red))\.(?![\w.:]*\bshared\b)[\w.:]*\s[^;\[]*\[\s*{OPERAND}"
    rf"|\b(?:global|flat)_(?:store|atomic)_\w+\s+{OPERAND.replace('operand', 'address')}"
)
LOADS = re.compile(
    rf"\b(?:ld|prefetchu?|multimem\.ld_reduce)\.[\w.:]*\s[^;\[]*\[\s*{OPERAND}"
    rf"|\b(?:global|flat)_load_\w+\s+%(?:\d+|\[\w+\])\s*,\s*{OPERAND.replace('operand', 'address')}"
)
MENTION = re.compile(r"%(\d+|\[\w+\])")


def addresses(template: str, symbols: Sequence[str]) -> tuple[set[int], set[int]]:
    """The numbers of the operands behind which a template stores, and of those behind which it only loads. `symbols`
    has each operand's name or "", outputs first."""
    numbers = {f"[{name}]": number for number, name in enumerate(symbols) if name}

    def operands(pattern: re.Pattern[str]) -> list[int]:
        found = (match["operand"] or match["address"] for match in pattern.finditer(template))
        return [numbers.get(text, -1) if text.startswith("[") else int(text) for text in found]

    stored, loaded = set(operands(STORES)), operands(LOADS)
    mentioned = [text if text.startswith("[") else int(text) for text in MENTION.findall(template)]
    whole = [numbers.get(item, -1) if isinstance(item, str) else item for item in mentioned]
    return stored, {number for number in loaded if loaded.count(number) == whole.count(number)}
