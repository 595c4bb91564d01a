"""What torch's registry holds of a namespace, as the schemas that the rest of the kit reads. Registers nothing."""

import torch
from torch._library import simple_registry

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


def overload(op: str | Schema) -> torch._ops.OpOverload:
    """`namespace::name.overload`, or its schema -> the operator; it must be registered."""
    namespace, _, name = (f"{op.namespace}::{op.op}" if isinstance(op, Schema) else op).partition("::")
    name, _, variant = name.partition(".")
    operator: torch._ops.OpOverload = getattr(getattr(getattr(torch.ops, namespace), name), variant or "default")
    return operator


def has_fake(op: str) -> bool:
    """Torch can tell what the operator, as namespace::name.overload, gives on fake tensors."""
    entry = simple_registry.singleton._data.get(op)
    if entry is not None and entry.fake_impl.kernel is not None:
        return True
    keys = ("Meta", "CompositeImplicitAutograd", "CompositeExplicitAutograd")
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(op, key) for key in keys)
