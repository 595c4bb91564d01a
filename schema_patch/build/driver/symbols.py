"""What device code calls and does not have: known to every device, brought by the runtime, or missing.

A missing function would show when the kernel is first launched, on the user's machine. So it is refused where it is
compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from schema_patch.model import ToolError

# Instructions and intrinsics that every back end has: SPIR-V's, LLVM's, the vector compiler's, IGC's own.
BUILT_IN = re.compile(r"(_Z\d+)?(__spirv_|__esimd_|llvm\.|__builtin_IB_|intel_sub_group_|__SYCL_)|_Z\d+__spirv_ocl_")
# The runtime links these to what it compiles itself; for machine code IGC has its own.
OF_RUNTIME = frozenset({"__devicelib_assert_fail"})
CONSTANT = re.compile(r"__sycl_get\w*SpecConstantValue")
MATHEMATICS = re.compile(r"__imf_|__devicelib_|c?[a-z0-9]+f?$")


def check(imports: Iterable[str], entries: Iterable[str], source: str) -> None:
    """Raises ToolError for the first function that nobody has."""
    for name in imports:
        if BUILT_IN.match(name) or name in OF_RUNTIME:
            continue
        kernel = next(iter(entries), "")
        if CONSTANT.search(name):
            why = "specialization constants are not lowered by the front end that is inside the runtime"
        elif MATHEMATICS.match(name):
            why = f"{name} is in no device library that comes with the runtime, nor in the driver's own"
        else:
            why = f"{name} is not defined in this file, and device functions are not linked across files"
        raise ToolError(f"kernel {kernel} cannot be linked: {why}", source)
