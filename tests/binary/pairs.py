"""Two libraries of one tree of which one changes what the other registers, or registers in its place: tables of sources.

    python tests/binary/pairs.py [--jobs N] FOLDER [PART OF A NAME]     by each way to build, against torch's registry

The first library is loaded, and needs the second unless it says otherwise.
"""

from __future__ import annotations

import json
import sys

import against
import stable
from ways import NORM, RIGHT, WRONG

SHOWN = "SHOWN const char* pick() { return %s; }\n"
ASKS = 'extern "C" const char* pick();\n'
SECOND = 'struct Second { Second() { Handle l; aoti_torch_library_init_fragment(%r, "y", 1, &l); aoti_torch_library_def(l, %s); } } second;\n'.replace(
    "%r", f'\\"{stable.SPACE}\\"'.replace("\\", "")
)


def second(text: str, more: str = "") -> str:
    """A library that registers one operator when it is loaded."""
    return f"{stable.HEAD}{more}{SECOND % text}"


def first(more: str = "", *texts: str) -> str:
    return stable.source([NORM, *texts], more)


PAIRS = {
    "registered by what is needed": (first(), second(WRONG)),
    "registered by what is opened": (
        first('#include <dlfcn.h>\n#include <dlfcn.h>\n__attribute__((constructor(20000))) static void opens() { dlopen("libsecond.so", RTLD_NOW); }\n'),
        second(WRONG),
    ),
    "a function of the first stands in": (first(SHOWN % WRONG), second("pick()", SHOWN % RIGHT)),
    "a function of the first stands in for a weak one": (
        first(SHOWN % WRONG), second("pick()", f'extern "C" {{ __attribute__((weak, noinline)) const char* pick() {{ return {RIGHT}; }} }}\n'),
    ),
    "a text of the first stands in": (
        first(f'extern "C" {{ extern const char text[]; const char text[] = {WRONG}; }}\n'),
        second("text", f'extern "C" {{ extern const char text[] __attribute__((weak)); const char text[] = {RIGHT}; }}\n'),
    ),
    "a pointer of the first stands in": (
        first(f'extern "C" {{ extern const char* const text; const char* const text = {WRONG}; }}\n'),
        second("text", f'extern "C" {{ extern const char* const text __attribute__((weak)); const char* const text = {RIGHT}; }}\n'),
    ),
    "the first stands in for torch": (
        "#include <dlfcn.h>\n" + stable.HEAD.replace("int aoti_torch_library_def(Handle, const char*);\n", "")
        + f'SHOWN int aoti_torch_library_def(Handle l, const char* s) {{ auto real = (int (*)(Handle, const char*))dlsym(dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_NOW), "aoti_torch_library_def"); return real(l, strstr(s, "gemv_fp16") ? {WRONG} : s); }}\n',
        second(RIGHT),
    ),
    "a text of the second": (first('extern "C" const char text[];\n', "text"), f"{stable.HEAD}extern \"C\" {{ extern const char text[]; const char text[] = {WRONG}; }}"),
    "a function of the second": (first(ASKS, "pick()"), f"{stable.HEAD}{SHOWN % WRONG}"),
    "fragments in both": (first("", RIGHT), second(json.dumps(stable.SCHEMAS["add"]))),
}  # fmt: skip
BUILDS = (
    "g++ -O0", "g++ -O2", "clang++ -O0", "clang++ -O2", "g++ -O2 -fno-plt", "g++ -O2 -Wl,-z,now", "g++ -O2 -flto",
    "clang++ -O2 -flto=thin -fuse-ld=lld", "clang++ -O2 -fuse-ld=mold", "g++ -O2 -fno-semantic-interposition",
)  # fmt: skip


if __name__ == "__main__":
    sys.exit(against.main(PAIRS, BUILDS))
