"""What torch's registry holds of a namespace, as the schemas that the rest of the kit reads. Registers nothing."""

import torch

from schema_patch.schemas import grammar
from schema_patch.schemas.grammar import Schema

# One operator of the table is published under a namespace of its own, beside that of the others.
BESIDE = {"topk_v2": "esimd_topk_v2"}


def schemas(namespace: str) -> dict[str, Schema]:
    """The registered operators of a namespace by name (with their overload, where they have one), in order.

    For a namespace that holds none of BESIDE itself, those registered beside it are included.
    """
    found: dict[str, Schema] = {}
    for registered in torch._C._jit_get_all_schemas():
        space, _, _ = registered.name.rpartition("::")
        if space == namespace or space in BESIDE.values():
            parsed = grammar.parse(str(registered))
            if space == namespace or (parsed.op in BESIDE and parsed.op not in found):
                found[parsed.op] = parsed
    own = any(parsed.namespace == namespace for parsed in found.values())
    return dict(sorted(found.items())) if own else {}


def names(namespace: str) -> tuple[str, ...]:
    return tuple(schemas(namespace))


def overload(found: Schema) -> torch._ops.OpOverload:
    """The callable operator of a schema that `schemas` gave."""
    packet = getattr(getattr(torch.ops, found.namespace or ""), found.name.rpartition("::")[2])
    operator: torch._ops.OpOverload = getattr(packet, found.overload or "default")
    return operator


def has_fake(found: Schema) -> bool:
    """Somebody said what the operator does on tensors without data."""
    name = found.name + (f".{found.overload}" if found.overload else "")
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, "Meta"))
