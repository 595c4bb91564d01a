"""The integration header and footer, as the front end writes them -> as the host compiler is given them; their parts.

They differ only for functions that are kernels: see free_functions.hpp for why.
"""

from __future__ import annotations

import re
from importlib import resources

FUNCTIONS = "\n// Definition of "  # where, in the header, what is said of each such function begins
INFO = re.compile(r"template <> struct KernelInfo(?:Data)?<.*?\n\};", re.DOTALL)  # what is said of one kernel
_SHIM = re.compile(
    r"static constexpr auto (__sycl_shim\d+)\(\) \{\s*return (?P<function>.*?);\s*\}.*?"
    r"getNumParams\(\) \{ return (?P<count>\d+); \}.*?getFunctionName\(\) \{ return \"(?P<name>[^\"]+)\"; \}",
    re.DOTALL,
)
_LOOKUP = """\
namespace schema_patch {{
static const FreeFunction free_functions[] = {{
{rows}}};
static const FreeFunction& free_function(const void* address) {{
  for (const FreeFunction& function : free_functions)
    if (function.address == address) return function;
  __builtin_printf("a function is launched as a kernel and is none: SYCL_EXT_ONEAPI_FUNCTION_PROPERTY marks those\\n");
  __builtin_abort();
}}
}}  // namespace schema_patch
"""


def returned(block: str, function: str) -> str:
    """What a function of the header returns: the first of the two answers that NDEBUG chooses from."""
    match = re.search(rf"\b{function}\(\) \{{\s*(?:#ifndef NDEBUG\s*)?return \"?(.*?)\"?;", block)
    return match[1] if match else ""


def host_headers(header: str, footer: str) -> tuple[str, str]:
    """What goes before the source and behind it."""
    classes, mark, functions = header.partition(FUNCTIONS)
    if not mark:
        return header, footer
    rows = "".join(
        f'    {{reinterpret_cast<const void*>({found["function"]}), "{found["name"]}", {found["count"]}}},\n'
        for found in _SHIM.finditer(functions)
    )
    before = (resources.files(__package__) / "free_functions.hpp").read_text("utf-8")
    # What registers the names of all kernels follows the functions, and stays where it is.
    rest = functions[functions.rfind("#include <sycl/kernel_bundle.hpp>") :] if "GlobalMapUpdater" in functions else ""
    return f"{before}\n{classes}", f"{_LOOKUP.format(rows=rows)}\n{rest}\n{footer}"
