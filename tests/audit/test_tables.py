"""Functions that stand in tables, pointers that stand in tensors, and the argument blocks of libraries of kernels.

Each kind is tried in every way that sources make it and get at it; a is only read and b is written throughout.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import trees

from schema_patch.audit import judge
from schema_patch.commands.console import Steps

W, R, U = "written", "read only", "unknown"
OP = "void op(at::Tensor a, at::Tensor b)"
HEAD = (
    "using K = void (*)(at::Tensor, at::Tensor);\nvoid k1(at::Tensor x, at::Tensor y) { y.copy_(x); }\n"
    "void k2(at::Tensor x, at::Tensor y) { y.add_(x); }\nstruct Entry { const char* name; K run; };\n"
)
MADE = {
    "static": "inline const T& kernels() { static const T table = %s; return table; }",
    "by value": "T kernels() { return %s; }",
    "local": "T kernels() { T table = %s; return table; }",
    "in branches": "inline const T& kernels(int arch = 9) { static const T none = {}; static const T table = %s;\n"
    "  if (arch == 10) { return none; } else { return table; } }",
}
MAP = "std::unordered_map<std::string, K>", '{{"one", k1}, {"two", k2}}'
VECTOR = "std::vector<K>", "{k1, k2}"
STRUCTS = "std::vector<Entry>", '{{"one", k1}, {"two", k2}}'
# The type and the elements of a table, and how one of its functions is called.
USES = [
    (*MAP, "kernels().at(key)(a, b);"),
    (*MAP, "const auto& t = kernels(); auto it = t.find(key); if (it != t.end()) it->second(a, b);"),
    (*MAP, "for (const auto& [name, kernel] : kernels()) kernel(a, b);"),
    (*MAP, "for (auto& pair : kernels()) pair.second(a, b);"),
    (*MAP, "auto it = kernels().begin(); (*it).second(a, b);"),
    (*VECTOR, "kernels().at(i)(a, b);"),
    (*VECTOR, "kernels()[i](a, b);"),
    (*VECTOR, "kernels().back()(a, b);"),
    (*VECTOR, "for (auto k : kernels()) k(a, b);"),
]
HERE_ONLY = [
    (*STRUCTS, "for (const auto& e : kernels()) e.run(a, b);"),
    (*STRUCTS, "kernels()[i].run(a, b);"),
    (*MAP, "K f; f = kernels().at(key); f(a, b);"),
]
BODY = "{ std::string key; int i = 0; %s }"
PASSED = "(std::forward<Args>(args)...)"
CALLED = {
    "here": f"{OP} {BODY}",
    "in a lambda": f"{OP} {{ auto go = [&]() {BODY}; go(); }}",
    "in a callee": f"void work(const T& t, at::Tensor a, at::Tensor b) {BODY}\n{OP} {{ work(kernels(), a, b); }}",
    "by a tuner": f"struct Tuner {{ template <class F, class... Args> void run(const F& t, Args&&... args) {BODY} }};\n"
    f"{OP} {{ static Tuner tuner; tuner.run(kernels(), a, b); }}",
}  # fmt: skip


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("called", CALLED)
def test_functions_of_a_table_are_called(tmp_path: Path, made: str, called: str) -> None:
    near = called.startswith(("here", "in a lambda"))
    for number, (kind, elements, use) in enumerate([*USES, *(HERE_ONLY if near else [])]):
        if not near:
            use = use.replace("const auto& t = kernels(); ", "").replace("kernels()", "t")
        if called == "by a tuner":
            use = use.replace("(a, b)", PASSED)
        code = f"{HEAD}using T = {kind};\n{MADE[made] % elements}\n{CALLED[called] % use}"
        folder = tmp_path / str(number)
        folder.mkdir()
        assert trees.answers(folder, code) == {"a": R, "b": W}, use


def test_a_table_of_more_functions_than_places_are_followed(tmp_path: Path) -> None:
    names = [f"k{number}" for number in range(3, 90)]
    code = HEAD + "".join(f"void {name}(at::Tensor x, at::Tensor y) {{ k1(x, y); }}\n" for name in names)
    pairs = ", ".join(f'{{"{name}", {name}}}' for name in names)
    code += (
        f"const std::map<std::string, K>& all() {{ static const std::map<std::string, K> m = {{{pairs}}}; return m; }}"
    )
    assert trees.answers(tmp_path, f"{code}\n{OP} {{ all().at(key)(a, b); }}") == {"a": R, "b": W}


def test_a_constant_table_of_nothing_calls_nothing(tmp_path: Path) -> None:
    code = "static const std::map<std::string, K> none = {}; for (auto& [n, f] : none) f(a, b); b.copy_(a);"
    assert trees.answers(tmp_path, f"{HEAD}{OP} {{ {code} }}") == {"a": R, "b": W}
    tmp_path.joinpath("more").mkdir()
    code = code.replace("static const ", "").replace("b.copy_(a)", "float x = a.data_ptr<float>()[0]")
    assert trees.answers(tmp_path / "more", f"{HEAD}{OP} {{ {code} }}") == {"a": U, "b": U}


def test_views_of_a_library_are_told_apart(tmp_path: Path) -> None:
    """What `at` of a class that is not seen gives is one of what it was made of, and no data behind it."""
    code = "  View x{(float*)a.data_ptr(), Layout(a.stride(0))}; View y{(float*)c.data_ptr(), Layout(c.stride(0))};\n"
    code += "  for (int m = 0; m < 3; m++) { y.at({m, 8}) = x.at({m, 16}); y.at({m, 9}) = x.at({m, 17}); }"
    assert trees.answers(tmp_path, f"{OP} {{ at::Tensor c = at::empty_like(b); {code} }}")["a"] != W


TAKEN = "const float* p = a.{take}<float>(); use(p, b.data_ptr<float>());"
READERS = {
    "a kernel's const parameter": "__global__ void use(const float* __restrict__ x, float* y) { y[0] = x[0]; }",
    "a pointer that could be written": "__global__ void use(float* x, float* y) { y[0] = x[0]; }",
    "through a struct": "struct P { const float* x; float* y; };\nvoid go(P p) { p.y[0] = p.x[0]; }\n"
    "void use(const float* x, float* y) { go(P{x, y}); }",
    "declared only": "void use(const float* x, float* y);",
}


@pytest.mark.parametrize("reader", READERS)
def test_a_pointer_to_write_through_that_is_only_read(tmp_path: Path, reader: str) -> None:
    """As code of the stable ABI has it, whose tensors have no other pointer that is not const."""
    found = trees.answers(tmp_path, f"{READERS[reader]}\n{OP} {{ {TAKEN.format(take='mutable_data_ptr')} }}")
    assert found == {"a": R, "b": U if reader == "declared only" else W}


def test_a_pointer_to_write_through_beside_one_that_is_read(tmp_path: Path) -> None:
    code = "struct Out { float* p; };\nvoid use(const float* x, Out o) { if (x[0]) launch(); }\n"
    code += f"{OP} {{ use(a.const_data_ptr<float>(), {{a.mutable_data_ptr<float>()}}); b.zero_(); }}"
    assert trees.answers(tmp_path, code) == {"a": U, "b": W}


FILLED = {
    "elements": "for (int i = 0; i < 4; ++i) chunk[i] = x[i];",
    "its address as a vector's": "V* v = reinterpret_cast<V*>(&chunk); v[0] = reinterpret_cast<const V*>(x)[0];",
    "what a function gives": "chunk[0] = load(x);",
}


@pytest.mark.parametrize("kind", ["float chunk[4]", "vec_t<float, 8> chunk[2]", "Tile chunk[2]"])
@pytest.mark.parametrize("filled", FILLED)
def test_an_array_of_values_holds_copies(tmp_path: Path, kind: str, filled: str) -> None:
    code = "struct V { float d[4]; };\nconst V& load(const float* x) { return *reinterpret_cast<const V*>(x); }\n"
    use = "chunk[1] = 2;" if kind.startswith("float") else "chunk[1][3] = 2;"
    code += f"void k(float* x, float* y) {{ {kind}; {FILLED[filled]} {use} y[0] = sum(chunk); }}\n"
    code += f"{OP} {{ k(a.data_ptr<float>(), b.data_ptr<float>()); }}"
    assert trees.answers(tmp_path, code) == {"a": R, "b": W}


def test_an_array_of_pointers_leads_where_they_do(tmp_path: Path) -> None:
    code = "void k(float** table, float* y) { float* chunk[2]; chunk[0] = table[1]; chunk[0][3] = 2; y[0] = 1; }\n"
    code += f"{OP} {{ k((float**)a.data_ptr(), b.data_ptr<float>()); }}"
    assert trees.answers(tmp_path, code) == {"a": U, "b": W}


MODE = "cutlass::gemm::GemmUniversalMode::kGemm"
POINTERS = "reinterpret_cast<A*>(a.data_ptr()), ld", "reinterpret_cast<D*>(b.data_ptr()), ld"
RUN = "Gemm gemm; gemm.can_implement(args); gemm.initialize(args, space.data_ptr(), stream); gemm(stream);"
ARGUMENTS = {
    "3": f"{{{MODE}, {{m, n, k}}, {{{POINTERS[0]}, {POINTERS[0]}}}, {{{{}}, nullptr, ld, {POINTERS[1]}}}}}",
    "3, scaled": f"{{{MODE}, {{m, n, k}}, {{{POINTERS[0]}}}, {{{{{{a.data_ptr()}}, {{}}}}, nullptr, ld, {POINTERS[1]}}}}}",
    "2": f"{{{MODE}, {{m, n, k}}, 1, {{alpha, beta}}, a.data_ptr(), a.data_ptr(), nullptr, b.data_ptr(), ld, ld, ld, ld}}",
    "2, without a mode": f"{{problem_size, {{{POINTERS[0]}}}, {{{POINTERS[0]}}}, {{{POINTERS[1]}}}, {{{POINTERS[1]}}}, {{1.0f, 0}}, 1}}",
    "2, by references": "{problem_size, x, x, y, y, {1.0f, 0.0f}}",
}  # fmt: skip
REFERENCES = "cutlass::TensorRef<A, L> x(a.data_ptr<A>(), L::packed(s)); cutlass::TensorRef<D, L> y(b.data_ptr<D>(), L::packed(s)); "


@pytest.mark.parametrize("version", ARGUMENTS)
def test_operands_of_cutlass_are_read_and_the_result_is_written(tmp_path: Path, version: str) -> None:
    before = REFERENCES if "references" in version else ""
    code = f"typename Gemm::Arguments args{ARGUMENTS[version]}; {RUN}"
    assert trees.answers(tmp_path, f"{OP} {{ {before}{code} }}") == {"a": R, "b": W}
    made = tmp_path / "made"
    made.mkdir()
    if not before:
        code = f"template <class Gemm> typename Gemm::Arguments make(at::Tensor a, at::Tensor b) {{ typename Gemm::Arguments args{ARGUMENTS[version]}; return args; }}"
        assert trees.answers(made, f"{code}\n{OP} {{ auto args = make<G>(a, b); {RUN} }}") == {"a": R, "b": W}


def test_what_scales_a_product_may_be_assigned_later(tmp_path: Path) -> None:
    code = f"{OP} {{ typename Gemm::Arguments args{ARGUMENTS['3']}; args.epilogue.thread = {{ {{ {{a.data_ptr()}} }}, {{}} }}; {RUN} }}"
    assert trees.answers(tmp_path, code) == {"a": R, "b": W}


def test_an_epilogue_may_store_beside_the_result(tmp_path: Path) -> None:
    code = f"using E = cutlass::epilogue::fusion::Sm90AuxStore<0, T>;\n{OP} {{ typename Gemm::Arguments args"
    code += f"{ARGUMENTS['3, scaled'].replace(POINTERS[0], 'p, ld')}; {RUN} }}"
    assert trees.answers(tmp_path, code) == {"a": U, "b": W}


MAKES = {
    "with a list": "a.data_ptr(), a.data_ptr(), std::array<const void*, 2>{a.data_ptr(), nullptr}, b.data_ptr(), m, n, k",
    "without": "a.data_ptr(), a.data_ptr(), b.data_ptr(), m, n, k",
    "grouped": "as, bs, ds, es, sizes, op, op, op",
}


@pytest.mark.parametrize("operands", MAKES)
def test_operands_of_composable_kernel(tmp_path: Path, operands: str) -> None:
    before = "std::vector<void*> as, bs, es; std::vector<std::array<const void*, 0>> ds; as.push_back(a.data_ptr()); bs.push_back(a.data_ptr()); es.push_back(b.data_ptr()); "
    code = f"{OP} {{ {before} auto gemm = Instance{{}}; auto args = gemm.MakeArgument({MAKES[operands]}); invoker.Run(args); }}"
    assert trees.answers(tmp_path, code) == {"a": R, "b": W}


STARTS = "__global__ void starts(char* to, {x}A** xs, D** ys, A* x, D* y) {{ xs[i] = x + i; ys[i] = y + i; }}\n"


@pytest.mark.parametrize("const", [True, False])
def test_pointers_of_a_group_of_products_in_one_tensor(tmp_path: Path, const: bool) -> None:
    """What stands behind a pointer to pointers to const is no place to write."""
    args = f"{{{MODE}, {{g, p, nullptr}}, {{xs, ld}}, {{{{}}, (const D**)ys, ld, ys, ld}}}}"
    code = STARTS.format(x="const " if const else "")
    code += f"{OP} {{ auto space = at::empty({{9}}); char* to = (char*)space.data_ptr(); auto xs = reinterpret_cast<A**>(to + 4);"
    code += " D** ys = reinterpret_cast<D**>(to + 8); starts<<<1, 1>>>(to, xs, ys, a.data_ptr<A>(), b.data_ptr<D>());"
    code += f" typename Gemm::Arguments args{args}; }}"
    found = trees.answers(tmp_path, code)
    assert found["b"] == (W if const else U)
    assert found["a"] != W


@pytest.mark.parametrize("given", ["std::nullopt", "at::empty_like(a)", "c ? at::empty_like(a) : at::zeros({2})"])
def test_what_is_handed_back_is_new_where_nothing_is_given(tmp_path: Path, given: str) -> None:
    code = "at::Tensor run(at::Tensor x, std::optional<at::Tensor> out) {\n"
    code += "  if (out.has_value()) { out->copy_(x); return *out; }\n  auto y = at::empty_like(x); y.copy_(x); return y; }\n"
    code += "at::Tensor op(at::Tensor a, at::Tensor b) { return run(a, GIVEN); }"
    for text, told in ((given, "fresh"), ("b", "unknown")):
        source = trees.source(code.replace("GIVEN", text), returns="Tensor")
        (found,) = trees.infer(trees.write(tmp_path, op_cpp=source))
        assert found.returns == (told,)


ASSIGNED = {
    "Tensor[] a, Tensor[] b": "void op(const std::vector<at::Tensor>& a, std::vector<at::Tensor> b) {{ {} }}",
    "Tensor a, Tensor b": f"{OP} {{{{ {{}} }}}}",
}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("Tensor[] a, Tensor[] b", "for (auto& t : b) t[0] = a[0];"),
        ("Tensor[] a, Tensor[] b", "auto v = b[1]; auto k = a[1]; v[3] = k[2]; std::vector<at::Tensor> c; c[0] = k;"),
        ("Tensor a, Tensor b", "b[0] = a[1];"),
        ("Tensor a, Tensor b", "auto v = b.view({3}); v[1] += a[2]; auto w = a[0]; w = v;"),
    ],
)
def test_what_is_assigned_to_an_element_of_a_tensor_is_written(tmp_path: Path, arguments: str, code: str) -> None:
    found = trees.answers(tmp_path, ASSIGNED[arguments].format(code), arguments)
    assert found["b"] == W
    assert found["a"] != W


KERNELS = """
import triton
import triton.language as tl

@libentry()
@triton.jit
def copy_kernel(in_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(in_ptr + offsets, mask=offsets < n), mask=offsets < n)
"""
TAKES = {
    "by a path": 'const K& f = K::get_instance((sources() / "fused" / "copy.py").string(), "copy_kernel");',
    "by a string": 'auto f = triton::load(std::string("fused/copy.py"), "copy_kernel");',
    "by a variable": 'std::string path = sources() + "/fused/copy.py"; const K& f = K::get_instance(path, "copy_kernel");',
}


@pytest.mark.parametrize("taken", TAKES)
def test_a_triton_kernel_that_cpp_takes_by_name(tmp_path: Path, taken: str) -> None:
    run = "f(stream, grid, 1, 1, 4, 0, a, {}, a.numel(), 1024);"
    for number, (out, expected) in enumerate({"b": W, "c": R, "b, d": U}.items()):
        code = f"void op(at::Tensor a, at::Tensor b) {{ auto c = at::empty_like(a); {TAKES[taken]} {run.format(out)}"
        code += " float x = b.data_ptr<float>()[0]; }"
        folder = tmp_path / str(number)
        (folder / "fused").mkdir(parents=True)
        (folder / "other").mkdir()
        (folder / "fused" / "copy.py").write_text(KERNELS)
        (folder / "other" / "copy.py").write_text(KERNELS.replace("in_ptr, out_ptr", "out_ptr, in_ptr"))
        (folder / "op.cpp").write_text(trees.source(code))
        (row,) = judge.audit([str(folder)], Steps(), cached=False).rows
        found = {answer.name: answer.kind.value for answer in row.inferred.answers}
        assert found == {"a": U if expected == U else R, "b": expected}


def test_a_kernel_that_changes_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "tree" / "fused").mkdir(parents=True)
    code = f"{OP} {{ {TAKES['by a path']} f(stream, 1, 1, 1, 4, 0, a, b, a.numel(), 1024); }}"
    (tmp_path / "tree" / "op.cpp").write_text(trees.source(code))
    for kernels, written in ((KERNELS, "b"), (KERNELS.replace("in_ptr, out_ptr", "out_ptr, in_ptr"), "a")):
        (tmp_path / "tree" / "fused" / "copy.py").write_text(kernels)
        for _ in range(2):
            (row,) = judge.audit([str(tmp_path / "tree")], Steps()).rows
            assert [answer.name for answer in row.inferred.answers if answer.kind.value == W] == [written]


def test_a_variable_that_is_declared_by_itself_ends(tmp_path: Path) -> None:
    code = 'auto name = std::string("x") + kind; auto path = path + name; auto other = find(path, other, "sum");'
    assert trees.answers(tmp_path, f"{OP} {{ {code} b.copy_(a); }}") == {"a": R, "b": W}


UNUSED = {
    "not named": "b.copy_(x); // a",
    "asked for its shape": "TORCH_CHECK(a.dim() == 2 && a.size(0) > 1); CHECK_INPUT(a); (void)a; b.copy_(at::empty_like(a));",
    "passed on": "b.copy_(x); helper(a);",
    "kept": "b.copy_(x); Holder h(a); h.run();",
}


@pytest.mark.parametrize("use", UNUSED)
def test_an_argument_that_an_implementation_leaves_out(tmp_path: Path, use: str) -> None:
    code = f"#define CHECK_INPUT(t) TORCH_CHECK(t.is_cuda())\nat::Tensor x;\nvoid helper(at::Tensor t) {{}}\n{OP} {{ {UNUSED[use]} }}"
    named = use in ("passed on", "kept")
    assert trees.answers(tmp_path, code) == {"a": U if named else R, "b": W}
    declared = trees.answers(tmp_path, code, "Tensor(a!) a, Tensor b")
    assert declared["a"] == U  # that it is declared without need is not said for this


@pytest.mark.parametrize("vendor", ["cuda", "hip", "tops", "musa", "aclrt", "mc", ""])
def test_runtimes_copy_as_c_does(tmp_path: Path, vendor: str) -> None:
    name = f"{vendor}{'M' if vendor else 'm'}emcpy"
    code = f"{OP} {{ {name}{'Async' if vendor else ''}(b.data_ptr(), a.data_ptr(), n, kind, stream); }}"
    assert trees.answers(tmp_path, code) == {"a": R, "b": W}
    code = f"{OP} {{ {vendor}MemcpyBatchAsync(b.data_ptr(), a.data_ptr(), n); }}"
    assert trees.answers(tmp_path, code) == {"a": U, "b": U}
