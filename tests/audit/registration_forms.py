"""How libraries spell a registration, how they hand over its text, and how they bind a function: every combination is a file.

Each file registers one operator that writes `out`, and does not say so.
"""

from __future__ import annotations

SCHEMA = "op(Tensor x, Tensor out) -> ()"
FIRST, SECOND = SCHEMA[:13], SCHEMA[13:]  # cut between a type and its name

# What stands before, and the expression that is the text.
TEXTS = {
    "a literal": ("", f'"{SCHEMA}"'),
    "adjacent literals": ("", f'"{FIRST}" "{SECOND}"'),
    "literals on lines": ("", f'\n    "{FIRST}"  // first\n    /* then */ "{SECOND}"'),
    "a raw string": ("", f'R"({SCHEMA})"'),
    "a raw string with a tag": ("", f'R"SCHEMA({SCHEMA})SCHEMA"'),
    "raw and plain": ("", f'R"({FIRST})" "{SECOND}"'),
    "a line splice": ("", f'"{FIRST}\\\n{SECOND}"'),
    "an escape": ("", '"' + SCHEMA.replace(", T", ",\\040T") + '"'),
    "char*": (f'static const char* kSchema = "{SCHEMA}";', "kSchema"),
    "char[]": (f'constexpr char kSchema[] = "{SCHEMA}";', "kSchema"),
    "string_view": (f'constexpr std::string_view kSchema{{"{SCHEMA}"}};', "kSchema.data()"),
    "a string": (f'const std::string kSchema("{SCHEMA}");', "kSchema.c_str()"),
    "a macro": (f'#define SCHEMA "{SCHEMA}"', "SCHEMA"),
    "a macro first": (f'#define HEAD "{FIRST}"', f'HEAD "{SECOND}"'),
    "a macro last": (f'#define TAIL "{SECOND}"', f'"{FIRST}" TAIL'),
    "a sum": (f'const std::string kHead = "{FIRST}";', f'kHead + "{SECOND}"'),
    "a class's constant": (f'struct Names {{ static constexpr const char* schema = "{SCHEMA}"; }};', "Names::schema"),
    "a namespace's": (f'namespace names {{ constexpr auto schema = "{SCHEMA}"; }}', "names::schema"),
    "an element": (f'static const char* const kTable[] = {{"no", "{SCHEMA}"}};', "kTable[1]"),
    "a field": (f'struct Row {{ int n; const char* schema; }};\nconst Row kRow{{1, "{SCHEMA}"}};', "kRow.schema"),
    "a selective macro": ("", f'TORCH_SELECTIVE_SCHEMA("{SCHEMA}")'),
    "torch::schema": ("", f'torch::schema("{SCHEMA}", c10::AliasAnalysisKind::FROM_SCHEMA)'),
    "std::string": ("", f'std::string("{SCHEMA}")'),
    "u8": ("", f'u8"{SCHEMA}"'),
    "its namespace inside": ("", f'"planted::{SCHEMA}"'),
}  # fmt: skip

# What opens, the library, and what closes.
BLOCKS = {
    "TORCH_LIBRARY": ("TORCH_LIBRARY(planted, m) {", "m.", "}"),
    "FRAGMENT": ("TORCH_LIBRARY_FRAGMENT(planted, m) {", "m.", "}"),
    "EXPAND": ("TORCH_LIBRARY_EXPAND(planted, m) {", "m.", "}"),
    "EXPAND of a macro": ("#define SPACE planted\nTORCH_LIBRARY_EXPAND(SPACE, m) {", "m.", "}"),
    "a macro like it": ("IPEX_LIBRARY_FRAGMENT(planted, m) {", "m.", "}"),
    "STABLE": ("STABLE_TORCH_LIBRARY(planted, m) {", "m.", "}"),
    "STABLE FRAGMENT": ("STABLE_TORCH_LIBRARY_FRAGMENT(planted, m) {", "m.", "}"),
    "#if around": ("#ifdef USE\nTORCH_LIBRARY(planted, m) {", "m.", "}\n#endif"),
    "#if inside": ("TORCH_LIBRARY(planted, m) {\n#if defined(USE)", "m.", "#else\n#endif\n}"),
    "a parameter": ("void init(torch::Library& m) {", "m.", "}\nTORCH_LIBRARY(planted, m) { init(m); }"),
    "a parameter with a space": ("void init(torch::Library &m) {", "m.", "}\nTORCH_LIBRARY(planted, m) { init(m); }"),
    "an alias of torch": ("namespace tl = torch;\nvoid init(tl::Library& m) {", "m.", "}\nTORCH_LIBRARY(planted, m) { init(m); }"),
    "a namespace around": ("namespace mine {\nTORCH_LIBRARY(planted, m) {", "m.", "}\n}"),
    "an object": ('static auto m = torch::Library(torch::Library::FRAGMENT, "planted", c10::nullopt, __FILE__, __LINE__);\nvoid init() {', "m.", "}"),
    "a member": ('struct Lib { std::unique_ptr<torch::Library> lib; Lib() { lib = std::make_unique<torch::Library>(torch::Library::DEF, "planted", c10::nullopt, __FILE__, __LINE__);', "lib->", "} };"),
    "a chain": ("TORCH_LIBRARY(planted, m) {\n  m", ".", "}"),
}  # fmt: skip
KERNEL = "void op(torch::Tensor x, torch::Tensor out) { out.copy_(x); }\n"

# What stands in the block for a library and a text, what behind it, and what before.
BINDS = {
    "def": ("{m}def({t}, &op);", "", KERNEL),
    "def by name": ("{m}def({t}, op);", "", KERNEL),
    "def TORCH_FN": ("{m}def({t}, TORCH_FN(op));", "", KERNEL),
    "def dispatch": ("{m}def({t}, torch::dispatch(c10::DispatchKey::CPU, TORCH_FN(op)));", "", KERNEL),
    "def a lambda": ("{m}def({t}, [](torch::Tensor x, torch::Tensor out) {{ out.copy_(x); }});", "", ""),
    "a loop over texts": ("for (const char* s : {{{t}}}) {m}def(s, &op);", "", KERNEL),
    "a loop over rows": ("for (const auto& [text, f] : {{std::make_pair({t}, &op)}}) {m}def(text, f);", "", KERNEL),
    "a loop over structs": ("static const Def defs[] = {{{{&op, {t}}}}};\n  for (auto& d : defs) {m}def(d.text, d.f);", "", KERNEL + "struct Def { void (*f)(torch::Tensor, torch::Tensor); const char* text; };\n"),
    "impl": ('{m}def({t});\n  {m}impl("op", torch::kCPU, &op);', "", KERNEL),
    "impl by key": ('{m}def({t});\n  {m}impl("op", c10::DispatchKey::CUDA, TORCH_FN(op));', "", KERNEL),
    "impl with its namespace": ('{m}def({t});\n  {m}impl("planted::op", torch::kCPU, &op);', "", KERNEL),
    "impl by a constant": ("{m}def({t});\n  {m}impl(kName, torch::kCPU, &op);", "", 'constexpr auto kName = "op";\n' + KERNEL),
    "IMPL": ("{m}def({t});", 'TORCH_LIBRARY_IMPL(planted, CPU, m) { m.impl("op", &op); }', KERNEL),
    "IMPL_EXPAND": ("{m}def({t});", 'TORCH_LIBRARY_IMPL_EXPAND(planted, CUDA, m) { m.impl("op", op); }', KERNEL),
    "IMPL by a selective name": ("{m}def({t});", 'TORCH_LIBRARY_IMPL(planted, CUDA, m) { m.impl(TORCH_SELECTIVE_NAME("planted::op"), TORCH_FN(op)); }', KERNEL),
    "STABLE IMPL": ("{m}def({t});", 'STABLE_TORCH_LIBRARY_IMPL(planted, CPU, m) { m.impl("op", TORCH_BOX(&op)); }', KERNEL),
    "a cast": ('{m}def({t});\n  {m}impl("op", static_cast<void (*)(torch::Tensor, torch::Tensor)>(op));', "", KERNEL),
    "a chain": ('{m}def({t}).impl("op", &op);', "", KERNEL),
    "a template": ('{m}def({t});\n  {m}impl("op", &op<float>);', "", "template <typename T>\n" + KERNEL),
    "a namespace": ('{m}def({t});\n  {m}impl("op", &deep::er::op);', "", "namespace deep::er {\n" + KERNEL + "}\n"),
    "a namespace's alias": ('{m}def({t});\n  {m}impl("op", &near::op);', "", "namespace deep::er {\n" + KERNEL + "}\nnamespace near = deep::er;\n"),
    "a wrapper": ('{m}def({t});\n  {m}impl("op", torch::kCPU, to_torch_op<&op>);', "", "template <auto f> void to_torch_op(torch::Tensor a, torch::Tensor b) { f(a, b); }\n" + KERNEL),
    "a macro of IMPL": ("{m}def({t});", 'BIND("op", op)', "#define BIND(name, f) TORCH_LIBRARY_IMPL(planted, CPU, m) { m.impl(name, torch::kCPU, TORCH_FN(f)); }\n" + KERNEL),
}  # fmt: skip


def source(block: str, text: str, bind: str, overload: str = "") -> str:
    """The file."""
    before, expression = TEXTS[text]
    opening, library, closing = BLOCKS[block]
    inside, behind, kernel = BINDS[bind]
    made = "\n".join(
        [
            "#include <torch/library.h>",
            before,
            kernel + opening,
            inside.format(m=library, t=expression),
            closing,
            behind,
        ]
    )
    if overload:
        made = made.replace("op(Tensor x", f"op.{overload}(Tensor x").replace('"op"', f'"op.{overload}"')
        made = made.replace('"planted::op"', f'"planted::op.{overload}"')
    return made + "\n"


FUNCTION = "def op(x, out):\n    out.copy_(x)\n"
TYPED = "def op(x: torch.Tensor, out: torch.Tensor) -> None:\n    out.copy_(x)\n"
LIBRARY = 'lib = torch.library.Library("planted", "DEF")\n'

# Whole modules behind `import torch`.
PYTHON = {
    "Library": f'{FUNCTION}{LIBRARY}lib.define("{SCHEMA}")\nlib.impl("op", op, "CPU")\n',
    "Library of a constant": f'{FUNCTION}NAME = "planted"\nlib = torch.library.Library(NAME, "FRAGMENT")\nS = "{SCHEMA}"\nlib.define(S)\nlib.impl("op", op, "CPU")\n',
    "Library in a loop": f'{FUNCTION}{LIBRARY}for name, text in (("op", "{SCHEMA}"),):\n    lib.define(text)\n    lib.impl(name, op, "CPU")\n',
    "concatenated": f'{FUNCTION}{LIBRARY}lib.define("{FIRST}"\n    "{SECOND}")\nlib.impl("op", op, "CPU")\n',
    "a sum": f'{FUNCTION}{LIBRARY}lib.define("{FIRST}" + "{SECOND}")\nlib.impl("op", op, "CPU")\n',
    "raw": f'{FUNCTION}{LIBRARY}lib.define(r"{SCHEMA}")\nlib.impl("op", op, "CPU")\n',
    "impl as a decorator": f'{LIBRARY}lib.define("{SCHEMA}")\n@torch.library.impl(lib, "op", "CPU")\n{FUNCTION}',
    "define": f'torch.library.define("planted::op", "{SCHEMA[2:]}")\n@torch.library.impl("planted::op", "CPU")\n{FUNCTION}',
    "custom_op": f'@torch.library.custom_op("planted::op", mutates_args=())\n{TYPED}',
    "custom_op of an f-string": f'NS = "planted"\n@torch.library.custom_op(f"{{NS}}::op", mutates_args=())\n{TYPED}',
    "custom_op of a function": f'def name(op):\n    return "planted::" + op\n@torch.library.custom_op(name("op"), mutates_args=[])\n{TYPED}',
    "triton_op": f'@torch.library.triton_op("planted::op", mutates_args={{}})\n{TYPED}',
    "a wrapper": f'{TYPED}direct_register_custom_op("op", op, mutates_args=[], fake_impl=None)\n',
}  # fmt: skip
