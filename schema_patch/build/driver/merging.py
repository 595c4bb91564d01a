"""The device sides of all objects of one library -> its images, each kernel once.

Two files may well have the same kernel: of a template, or of a header's inline function. Two different kernels of one
name are an error that no run would show: the runtime would take either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from schema_patch.model import ToolError

from .arguments import Kernel
from .frontend import DeviceImage
from .objects import Payload


def images(payloads: Iterable[Payload], runtime: str) -> list[DeviceImage]:
    """In the order of the objects. Raises ToolError where kernels clash or were compiled for another runtime."""
    seen: dict[str, tuple[Kernel, Payload]] = {}
    taken: dict[str, bytes] = {}
    kept: list[DeviceImage] = []
    for payload in payloads:
        if payload.runtime != runtime:
            raise ToolError(
                f"compiled for {payload.runtime}, and this link is for {runtime}: compile it again", payload.source
            )
        for kernel in payload.kernels:
            first, where = seen.setdefault(kernel.name, (kernel, payload))
            if first != kernel:
                raise ToolError(
                    f"kernel {kernel.name} ({kernel.place}) is also in {where.source} ({first.place}), and differs: "
                    "give one of them another name",
                    payload.source,
                )
        kept += [image for image in payload.images if _is_new(image, payload, taken, seen)]
    return kept


def _is_new(
    image: DeviceImage, payload: Payload, taken: dict[str, bytes], seen: Mapping[str, tuple[Kernel, Payload]]
) -> bool:
    """Whether an image has a kernel that no image before it has."""
    fresh = [name for name in image.entries if name not in taken]
    alone = image.spirv if len(image.entries) == 1 else b""
    for name in image.entries:
        if alone and taken.get(name, b"") not in (b"", alone):
            # Of one class at one place, with the same arguments: an inline function under other options or macros.
            kernel, where = seen[name]
            raise ToolError(
                f"kernel {name} ({kernel.place}) was compiled to other code in {where.source} ({kernel.place}): "
                "a macro or an option of the two files differs",
                payload.source,
            )
    taken.update(dict.fromkeys(fresh, alone))
    return bool(fresh) or not image.entries
