"""The notes that the graphics compiler leaves in machine code (.ze_info, YAML) -> what a thread and a group take."""

from __future__ import annotations

from typing import Any

import msgspec

from schema_patch.model import ToolError

SECTION = ".ze_info"


class Notes(msgspec.Struct, frozen=True):
    """Of one kernel. Sizes in bytes: spills and private memory of a thread, local memory of a group.

    `group_items`: work-items of a group, where the source fixes them. `launched_local`: whoever launches the kernel
    adds local memory.
    """

    simd_size: int
    grf_count: int
    spill_size: int
    private_size: int
    slm_size: int
    barrier_count: int
    group_items: int | None
    launched_local: bool = False


def read(text: str, where: str) -> dict[str, Notes]:
    """Raises ToolError where the notes are not what ocloc writes."""
    import yaml

    try:
        whole = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return {str(row["name"]): _notes(row) for row in whole["kernels"]}
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise ToolError(f"expected the notes of a device's code (.ze_info), found others: {error}", where) from error


def _notes(row: dict[str, Any]) -> Notes:
    facts = row["execution_env"]
    used: dict[str, int] = {}
    for buffer in row.get("per_thread_memory_buffers") or ():
        used[buffer["usage"]] = used.get(buffer["usage"], 0) + int(buffer["size"])
    items = facts.get("required_work_group_size")
    return Notes(
        simd_size=int(facts["simd_size"]),
        grf_count=int(facts["grf_count"]),
        # The vector compiler has one space for both where there is no private memory: then all of it is spills.
        spill_size=used.get("spill_fill_space", 0) + used.get("single_space", 0),
        private_size=used.get("private_space", 0),
        slm_size=int(facts.get("slm_size", 0)),
        barrier_count=int(facts.get("barrier_count", 0)),
        group_items=items[0] * items[1] * items[2] if items and all(items) else None,
        launched_local=any(argument.get("addrspace") == "local" for argument in row.get("payload_arguments") or ()),
    )
