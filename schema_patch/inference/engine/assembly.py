"""Inline assembly: which operands are addresses that it stores to, and which it only loads from: PTX, AMD's GCN.

Knows the text of a template and its operands. An instruction that stands nowhere here leaves its operands unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tree_sitter import Node

from schema_patch.cpp.syntax import children, part
from schema_patch.inference.domain.values import NOTHING, Value, mutable

from .calling import Calling
from .evaluator import Evaluator
from .frame import FunctionReader
from .memory import TensorMemory

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


@dataclass(eq=False)
class Assembly(FunctionReader):
    """Evaluates inline assembly."""

    memory: TensorMemory
    evaluator: Evaluator
    calling: Calling

    def of_gnu_asm_expression(self, node: Node) -> Value:
        """It stores to some operands' addresses, loads from others, does what is not known with the rest, be they const
        or not."""
        lists = (children(part(node, name)) for name in ("output_operands", "input_operands"))
        outputs, inputs = ([n for n in nodes if "operand" in n.type] for nodes in lists)
        symbols = [part(n, "symbol") for n in (*outputs, *inputs)]
        template = self.frame.literal(part(node, "assembly_code"))
        stored, loads = addresses(template, [self.frame.text(n) for n in symbols])
        for operand in outputs:
            place = self.evaluator.places(part(operand, "value"))
            self.frame.state.store(place, NOTHING, self.frame.here(node))
        for number, operand in enumerate((*outputs, *inputs)):
            if number < len(outputs) and number not in stored:
                continue
            value = self.evaluator.value(part(operand, "value"))
            if number in stored:
                self.memory.write_through(value, node)
            elif number in loads:
                self.frame.state.read_data(value)
            else:
                self.calling.escape(mutable(value), node, "used by inline assembly")
        return NOTHING
