"""Two libraries of one tree of which one changes what the other registers, or registers in its place: tables of sources.

    python tests/binary/pairs.py FOLDER             all of them, by each way to build, against torch's registry

The first library is loaded, and needs the second unless it says otherwise.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections import Counter
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
import stable
import ways
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
    "fragments in both": (first("", RIGHT), second(ways.json.dumps(stable.SCHEMAS["add"]))),
}  # fmt: skip
BUILDS = (
    "g++ -O0", "g++ -O2", "clang++ -O0", "clang++ -O2", "g++ -O2 -fno-plt", "g++ -O2 -Wl,-z,now", "g++ -O2 -flto",
    "clang++ -O2 -flto=thin -fuse-ld=lld", "clang++ -O2 -fuse-ld=mold", "g++ -O2 -fno-semantic-interposition",
)  # fmt: skip


def built(folder: Path, pair: tuple[str, str], build: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    compiler, *options = build.split()
    other = stable.build(folder / "libsecond.so", pair[1], compiler, *options, "-w", "-Wl,-soname,libsecond.so")
    more = ("-Wl,--no-as-needed", str(other), "-Wl,-rpath,$ORIGIN")
    return [stable.build(folder / "libfirst.so", pair[0], compiler, *options, "-w", *more), other]


def main(folder: Path, part: str = "") -> int:
    counts = Counter[str]()
    rows: list[tuple[str, list[Path]]] = []
    for (n, (name, pair)), (k, build) in itertools.product(enumerate(PAIRS.items()), enumerate(BUILDS)):
        if part in f"{name}, {build}":
            try:
                rows.append((f"{name}, {build}", built(folder / f"{n}-{k}", pair, build)))
            except subprocess.CalledProcessError:
                print(f"{name}, {build}: not built")
                counts["not built"] += 1
    truth = iter(stable.registered([path for _, paths in rows for path in paths], all_=False))
    for words, paths in rows:
        texts = [text for _ in paths for text in next(truth)]
        for asked in (paths[0].parent, paths[0]):
            said = ways.judged(asked, texts)
            counts[said] += 1
            if said == "fault":
                print(f"{words}, {asked.name}: called otherwise than torch registers it: {texts}")
    print(f"{counts.total()} asked: {dict(counts)}")
    return 1 if counts["fault"] or not rows else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
