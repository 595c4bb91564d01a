"""Ways in which C++ registers operators, as sources with operators drawn from the table: some right, some wrong.

Each form is a function of a chance that gives a source. Namespaces are the table's own, so that each verdict counts; what
torch registers is asked of torch.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from schema_patch.schemas.table import Table, load

# What takes a compiler longest, precompiled once for each way to compile.
HEADER = """#include <torch/library.h>
#include <ATen/ATen.h>
#include <cstdlib>
#include <string>
#include <vector>
"""
HEAD = """#include "head.h"
static at::Tensor fn(const at::Tensor& a, at::Tensor b) { return b; }
"""
SPACES = ("custom_esimd_kernels_vllm", "other_space")
Form = Callable[[random.Random], str]
FORMS: dict[str, Form] = {}


def form(make: Form) -> Form:
    FORMS[make.__name__] = make
    return make


def schema(chance: random.Random, table: Table | None = None, *, op: str = "") -> str:
    """An operator of the table, declared as it is or not."""
    entries = (table or load()).entries
    name = op or chance.choice(sorted(entries))
    entry = entries[name]
    written = {*entry.writes, *entry.inplace} if chance.random() < 0.6 else set()
    letters = iter("abcdefgh")
    arguments = [f"Tensor({next(letters)}!) {a}" if a in written else f"Tensor {a}" for a in entry.arguments]
    spaces = chance.choice((" ", " ", "\n    "))
    return f"{name}({f',{spaces}'.join(arguments)}) -> {chance.choice(('()', 'Tensor'))}"


def several(chance: random.Random, count: int) -> list[str]:
    return [schema(chance, op=op) for op in chance.sample(sorted(load().entries), count)]


def text(words: str) -> str:
    return json.dumps(words)


def block(body: str, space: str = SPACES[0], kind: str = "TORCH_LIBRARY") -> str:
    return f"{kind}({space}, m) {{\n{body}\n}}\n"


@form
def literals(chance: random.Random) -> str:
    one, two, three = several(chance, 5), several(chance, 2), several(chance, 3)
    rows = [f"m.def({text(s)});" for s in one[:3]]
    rows += [f"m.def({text(s)}, {{at::Tag::pt2_compliant_tag}});" for s in one[3:4]]
    rows += [f"m.def(torch::schema({text(s)}));" for s in one[4:]]
    other = "\n".join(f"m.def({text(s)});" for s in three)
    fragment = "\n".join(
        f"m.def({text(s)});" for s in two if s.partition("(")[0] not in {o.partition("(")[0] for o in one}
    )
    docs = f"extern const char* const docs[] = {{{', '.join(text(schema(chance)) for _ in range(4))}}};\n"
    return (
        HEAD + docs + block("\n".join(rows)) + block(fragment, kind="TORCH_LIBRARY_FRAGMENT") + block(other, SPACES[1])
    )


@form
def names(chance: random.Random) -> str:
    one = several(chance, 3)
    op = next(name for name in sorted(load().entries) if name not in {s.partition("(")[0] for s in one})
    return (
        HEAD
        + f'extern const char* const docs; const char* const docs = "{op}(Tensor input, Tensor(a!) output) -> Tensor";\n'
        + block(f'm.def({text(one[0])});\nm.def("{op}", &fn);\nm.def("named_only", [](const at::Tensor& x, int64_t n) {{ return x.clone(); }});\nm.def({text(one[1])});')
        + block(f'm.impl("{op}_x", &fn);', kind="TORCH_LIBRARY_IMPL").replace("vllm, m)", "vllm, CPU, m)").replace(f'm.impl("{op}_x", &fn);', "")
        + f'static auto old = torch::RegisterOperators().op({text("old_space::" + one[2])});\n'
    )  # fmt: skip


@form
def built(chance: random.Random) -> str:
    one = several(chance, 5)
    op, _, rest = one[0].partition("(")
    return (
        HEAD
        + f"static std::string three(const char* name) {{ return std::string(name) + {text('(' + rest)}; }}\n"
        + f"extern const char* const docs; const char* const docs = {text(schema(chance, op=op))};\n"
        + f"static const std::string kept = {text(one[1])};\n"
        + "static std::string place(std::string s, const char* from, const char* to) { auto at = s.find(from); if (at != std::string::npos) s.replace(at, 1, to); return s; }\n"
        + block(
            f'm.def(three("{op}").c_str());\nm.def(kept.c_str());\n'
            f"{{ std::string s({text(one[2][:20])}); s += {text(one[2][20:])}; m.def(s.c_str()); }}\n"
            f'm.def(place({text(one[3])}, "!", chance() ? "" : "!").c_str());\n'
            f'{{ char b[512]; snprintf(b, sizeof b, "%s%s", {text(one[4][:12])}, {text(one[4][12:])}); m.def(b); }}'
        ).replace("chance()", 'std::getenv("NO_SUCH_NAME")')
    )


@form
def tables(chance: random.Random) -> str:
    one, two = several(chance, 9), schema(chance)
    fixed, rows, writable = one[:3], one[3:6], one[6:8]
    return (
        HEAD
        + f"static const char* const fixed[] = {{{', '.join(map(text, fixed))}}};\n"
        + "struct Row { const char* schema; int n; };\n"
        + f"static constexpr Row rows[] = {{{', '.join(f'{{{text(s)}, 1}}' for s in rows)}}};\n"
        + f"struct Own {{ char schema[400]; }}; Own own[] = {{{', '.join(f'{{{text(s)}}}' for s in writable)}}};\n"
        + f"const char* docs() {{ return {text(two)}; }}\n"
        + block(
            "for (auto* s : fixed) m.def(s);\nfor (auto& r : rows) m.def(r.schema);\nfor (auto& r : own) m.def(r.schema);\n"
            f"for (const char* s : {{{text(one[8])}}}) m.def(s);"
        )
    )


@form
def helpers(chance: random.Random) -> str:
    one = several(chance, 7)
    wrong = one[3].replace("!", "") if "(a!)" in one[3] else one[3]
    wrong = wrong.replace("(a)", "").replace("(b)", "").replace("(c)", "").replace("(d)", "").replace("(e)", "")
    return (
        HEAD
        + "__attribute__((noinline)) static void add(torch::Library& m, const char* s) { m.def(s); }\n"
        + "__attribute__((noinline)) void twice(torch::Library& m, const char* s, const char* t) { add(m, s); add(m, t); }\n"
        + f"__attribute__((noinline)) const char* pick(bool b) {{ return b ? {text(one[3])} : {text(wrong)}; }}\n"
        + "struct Reg { torch::Library& m; Reg& operator()(const char* s) { m.def(s); return *this; } };\n"
        + block(
            f'add(m, {text(one[0])});\ntwice(m, {text(one[1])}, {text(one[2])});\nadd(m, pick(std::getenv("NO_SUCH_NAME")));\n'
            f'Reg{{m}}({text(one[4])})({text(one[5])});\nif (std::getenv("NO_SUCH_NAME")) m.def({text("never_" + one[6])}); else m.def({text(one[6])});'
        )
    )


@form
def many(chance: random.Random) -> str:
    rows = [f"m.def({text(s)});" for s in several(chance, len(load().entries))]
    return HEAD + block("\n".join(rows))


@form
def changed(chance: random.Random) -> str:
    """Text that is other at run time than in the file."""
    one = several(chance, 3)
    return (
        HEAD
        + f"char late[] = {text(one[0])};\nstruct First {{ First() {{ for (char* c = late; *c; ++c) if (*c == '!') *c = ' '; }} }} first;\n"
        + f"static std::string kept({text(one[1])});\n"
        + 'struct Second { Second() { auto at = kept.find("(a!)"); if (at != std::string::npos) kept.erase(at, 4); } } second;\n'
        + block(f"m.def(late);\nm.def(kept.c_str());\nm.def({text(one[2])});")
    )


@form
def stable(chance: random.Random) -> str:
    """The C interface that keeps its form from one torch to the next."""
    one = several(chance, 4)
    body = "\n".join(f"  aoti_torch_library_def(l, {text(s)});" for s in one[:3])
    return f"""
#include <cstdint>
extern "C" {{
struct Opaque; typedef Opaque* Handle;
int aoti_torch_library_init_def(const char*, const char*, uint32_t, Handle*);
int aoti_torch_library_init_fragment(const char*, const char*, uint32_t, Handle*);
int aoti_torch_library_def(Handle, const char*);
}}
extern "C" const char* const docs; const char* const docs = {text(one[3])};
__attribute__((noinline)) static int last(Handle l, const char* s) {{ return aoti_torch_library_def(l, s); }}
struct Init {{ Init() {{ Handle l;
  aoti_torch_library_init_def("{SPACES[0]}", "x.cpp", 1, &l);
{body}
  Handle f; aoti_torch_library_init_fragment("{SPACES[1]}", "x.cpp", 2, &f); last(f, {text(one[3])});
}} }} init;
"""
