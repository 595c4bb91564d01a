"""Ways to register, to call and to lay out sources that an audit follows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import trees
from test_wrong_answers import verdicts

from schema_patch.commands import main

SCALE = "void scale(const at::Tensor& x, at::Tensor& out) { out.copy_(x * 2); }\n"
DEFINED = 'TORCH_LIBRARY(lib, m) { m.def("scale(Tensor x, Tensor out) -> ()"); }\n'
FORMS = {
    "composite explicit": SCALE
    + DEFINED
    + 'TORCH_LIBRARY_IMPL(lib, CompositeExplicitAutograd, m) { m.impl("scale", &scale); }',
    "composite implicit": SCALE
    + DEFINED
    + 'TORCH_LIBRARY_IMPL(lib, CompositeImplicitAutograd, m) { m.impl("scale", &scale); }',
    "a helper with a space": SCALE
    + DEFINED
    + 'void add(torch::Library &m) { m.impl("scale", &scale); }\nTORCH_LIBRARY_IMPL(lib, CPU, m) { add(m); }',
    "a wrapping template": "template <auto F, class R, class... A> R box(A... a) { return F(a...); }\n"
    + SCALE
    + DEFINED
    + 'TORCH_LIBRARY_IMPL(lib, CPU, m) { m.impl("scale", box<&scale, void, const at::Tensor&, at::Tensor&>); }',
    "a wrapping template from elsewhere": SCALE
    + DEFINED
    + 'TORCH_LIBRARY_IMPL(lib, CPU, m) { m.impl("scale", to_torch_op<&scale>); }',
    "a stub": "DECLARE_DISPATCH(scale_fn, scale_stub);\nDEFINE_DISPATCH(scale_stub);\n"
    "static void scale_kernel(const at::Tensor& x, at::Tensor& out) { out.copy_(x * 2); }\n"
    "REGISTER_DISPATCH(scale_stub, &scale_kernel);\n"
    "void scale(const at::Tensor& x, at::Tensor& out) { scale_stub(at::kCPU, x, out); }\n"
    + DEFINED
    + 'TORCH_LIBRARY_IMPL(lib, CPU, m) { m.impl("scale", &scale); }',
    "a boxed function": "using torch::stable::Tensor;\nvoid scale(Tensor x, Tensor out) { torch::stable::fill_(out, 2.0); }\n"
    "void boxed(StableIValue* stack, uint64_t n, uint64_t m) {\n"
    "  auto x = torch::stable::detail::to<Tensor>(stack[0]);\n  scale(x, to<Tensor>(stack[1]));\n}\n"
    'STABLE_TORCH_LIBRARY(lib, m) { m.def("scale(Tensor x, Tensor out) -> ()"); }\n'
    'STABLE_TORCH_LIBRARY_IMPL(lib, CUDA, m) { m.impl("scale", &boxed); }',
    "a namespace closed in both branches": "namespace n {\n#if OLD\n}\nvoid scale(const at::Tensor& x, at::Tensor& o) {}\n"
    "#else\nvoid put(at::Tensor r, at::Tensor a) { r.copy_(a); }\n}\n"
    "void scale(const at::Tensor& x, at::Tensor& o) { n::put(o, x); }\n#endif\n"
    + DEFINED
    + 'TORCH_LIBRARY_IMPL(lib, CPU, m) { m.impl("scale", &scale); }',
    "through the dispatcher": "void put(const at::Tensor& x, at::Tensor out) { out.copy_(x); }\n"
    "void scale(const at::Tensor& x, at::Tensor& out) {\n  static auto op = c10::Dispatcher::singleton()"
    '.findSchemaOrThrow("lib::put", "").typed<decltype(put)>();\n  op.call(x, out);\n}\n'
    'TORCH_LIBRARY(lib, m) { m.def("put(Tensor x, Tensor(a!) out) -> ()", &put);\n'
    '  m.def("scale(Tensor x, Tensor out) -> ()", &scale); }',
    "a schema that is a constant": SCALE
    + 'static const std::string kArgs = std::string("(Tensor x") + ", Tensor out)";\n'
    'TORCH_LIBRARY(lib, m) { m.def("scale" + kArgs + " -> ()", &scale); }',
    "a schema that is a macro": SCALE
    + '#define SCHEMA "scale(Tensor x, " \\\n  "Tensor out) -> ()"\nTORCH_LIBRARY(lib, m) { m.def(SCHEMA, &scale); }',
}


@pytest.mark.parametrize("form", FORMS)
def test_the_write_is_seen(tmp_path: Path, form: str) -> None:
    assert verdicts(tmp_path, op_cpp="#include <torch/library.h>\n" + FORMS[form])["scale"] == "wrong"


UNTOLD = ["kSchema", "cfg.schema", "schemas[0]", "made()", "std::string(name) + rest", "twice"]


@pytest.mark.parametrize("expression", UNTOLD)
def test_a_schema_that_is_not_followed_is_told(tmp_path: Path, expression: str) -> None:
    code = 'std::string twice = "a"; void f() { twice += "b"; }\n'
    code += f"TORCH_LIBRARY(lib, m) {{ for (auto& cfg : all) m.def({expression}); }}"
    trees.write(tmp_path, op_cpp=code)
    from test_wrong_answers import audited

    assert [finding.code for finding in audited(tmp_path).findings] == ["SP002"]


BODY = "(x: torch.Tensor, out: torch.Tensor) -> None:\n    out.copy_(x)\n"
NAMES = {
    'f"{LIBRARY}::op"': "op",
    'LIBRARY + "::op"': "op",
    'prefixed("op")': "op",
    'prefixed(name="op")': "op",
    "FULL": "op",
}
HEAD = (
    'import torch\nLIBRARY = "lib"\nFULL = f"{LIBRARY}::op"\ndef prefixed(name):\n    "Adds it."\n'
    '    return f"lib::{name}"\n'
)


@pytest.mark.parametrize("name", NAMES)
def test_a_python_operator_whose_name_is_put_together(tmp_path: Path, name: str) -> None:
    code = f"{HEAD}@torch.library.custom_op({name}, mutates_args=())\ndef op{BODY}"
    assert verdicts(tmp_path, ops_py=code) == {"op": "wrong"}


def test_a_python_operator_whose_name_is_computed_is_told(tmp_path: Path) -> None:
    from test_wrong_answers import audited

    trees.write(tmp_path, ops_py=f"{HEAD}@torch.library.custom_op(names[0], mutates_args=())\ndef op{BODY}")
    assert [(f.code, f.location.line) for f in audited(tmp_path).findings] == [("SP002", 7)]


LIBRARY = (
    "import torch\nfrom torch.library import Library, impl\n"
    'lib = Library("lib", "DEF")\nlib.define("op(Tensor x, Tensor out) -> ()")\n'
)
IMPLEMENTED = {
    "impl of torch.library": '@torch.library.impl(lib, "op", "CPU")\ndef op(x, out):\n    out.copy_(x)\n',
    "impl by itself": '@impl(lib, "op", "CompositeExplicitAutograd")\ndef other(x, out):\n    out.copy_(x)\n',
    "impl by the full name": '@torch.library.impl("lib::op", "CPU")\ndef op(x, out):\n    out.copy_(x)\n',
    "in a loop": 'def f(x, out):\n    out.copy_(x)\nfor n, g in (("op", f),):\n    lib.impl(n, g, "CPU")\n',
}


@pytest.mark.parametrize("form", IMPLEMENTED)
def test_the_function_of_a_defined_operator(tmp_path: Path, form: str) -> None:
    assert verdicts(tmp_path, ops_py=LIBRARY + IMPLEMENTED[form]) == {"op": "wrong"}


def test_a_schema_in_python_of_a_kernel_in_cpp(tmp_path: Path) -> None:
    cpp = SCALE.replace("scale(", "op(") + 'TORCH_LIBRARY_IMPL(lib, CPU, m) { m.impl("lib::op", &op); }'
    assert verdicts(tmp_path, ops_py=LIBRARY, op_cpp=cpp) == {"op": "wrong"}


CALLERS = {
    "from helper import store": "store(x, out)",
    "import helper": "helper.store(x, out)",
    "import helper as h": "h.store(x, out)",
    "from .helper import store as put": "put(x, out)",
    "from again import store": "store(x, out)",
}


@pytest.mark.parametrize("line", CALLERS)
def test_a_write_in_another_module(tmp_path: Path, line: str) -> None:
    code = f'import torch\n{line}\n@torch.library.custom_op("lib::op", mutates_args=())\n'
    code += f"def op(x: torch.Tensor, out: torch.Tensor) -> None:\n    {CALLERS[line]}\n"
    (tmp_path / "again.py").write_text("from helper import store\n")
    files = {"ops_py": code, "helper_py": "def store(x, out):\n    out.copy_(x)\n"}
    assert verdicts(tmp_path, **files) == {"op": "wrong"}


# Each with the parameters of the function, what it does, and the answers for `before, one, two, after`.
STRUCTS = {
    "a part by its field": ("const at::Tensor& before, const Pair& pair, at::Tensor& after", "pair.two.zero_();", "read only|read only|written|read only"),
    "no part": ("const at::Tensor& before, const Pair& pair, at::Tensor& after", "after.copy_(pair.one * pair.two);", "read only|read only|read only|written"),
    "a part that is not named": ("const at::Tensor& before, const Other& pair, at::Tensor& after", "pair.hidden.zero_();", "read only|unknown|unknown|read only"),
    "parts before all": ("const Pair& pair, at::Tensor& two, at::Tensor& after", "two.zero_();", "read only|read only|written|read only"),
    "structs of one part": ("const at::Tensor& before, Box first, Box second, at::Tensor& after", "second.held.zero_();", "read only|read only|written|read only"),
}  # fmt: skip


@pytest.mark.parametrize("name", STRUCTS)
def test_a_wrapper_that_takes_structs_apart(tmp_path: Path, name: str) -> None:
    parameters, body, expected = STRUCTS[name]
    words = re.findall(r"(\w+)(?:,|$)", parameters)
    used = "".join(f" use({word});" for word in words if word in ("before", "two", "after"))
    used += (
        " use(pair.one); use(pair.two); use(pair.hidden);" if "pair" in words else " use(first.held); use(second.held);"
    )
    code = (
        "void use(const at::Tensor& x) { float v = x.data_ptr<float>()[0]; }\n"
        "struct Pair { at::Tensor one; at::Tensor two; };\nstruct Other { at::Tensor hidden; };\n"
        "struct Box { at::Tensor held; };\n"
        f"void kernel({parameters}) {{{used} {body} }}\n"
        'TORCH_LIBRARY(lib, m) { m.def("op(Tensor before, Tensor one, Tensor two, Tensor after) -> ()"); }\n'
        'TORCH_LIBRARY_IMPL(lib, CPU, m) { m.impl("op", to_torch_op<&kernel>); }'
    )
    (tmp_path / "op.cpp").write_text(code)
    (found,) = trees.infer([str(tmp_path / "op.cpp")])
    assert "|".join(answer.kind.value for answer in found.answers) == expected


MADE = 'torch::Library(torch::Library::FRAGMENT, "lib", std::nullopt, __FILE__, __LINE__)'
OBJECTS = {
    "a member": f'struct R {{ torch::Library lib_; R() : lib_{MADE[14:]} {{ lib_.def(SCHEMA); lib_.impl("scale", &scale); }} }};',
    "this member": "struct R { void go() { this->lib_.def(SCHEMA, &scale); } torch::Library lib_; };",
    "a pointer": "void go(torch::Library* lib) { lib->def(SCHEMA, &scale); }",
    "a smart pointer": "struct R { std::unique_ptr<torch::Library> lib; void go() { lib->def(SCHEMA).impl(\"scale\", &scale); } };",
    "a global": f"static auto lib = {MADE};\nstatic int go() {{ lib.def(SCHEMA, &scale); return 0; }}",
    "a global object": f"static torch::Library lib{MADE[14:]};\nvoid go() {{ lib.def(SCHEMA, torch::dispatch(torch::kCPU, &scale)); }}",
    "a member of a header": "void R::go() { handle.def(SCHEMA, &scale); }",
}  # fmt: skip


@pytest.mark.parametrize("form", OBJECTS)
def test_methods_of_library_objects(tmp_path: Path, form: str) -> None:
    text = OBJECTS[form].replace("SCHEMA", '"scale(Tensor x, Tensor out) -> ()"')
    (tmp_path / "op.cpp").write_text(SCALE + text)
    assert verdicts(tmp_path) == {"scale": "wrong"}


def test_methods_of_other_objects_register_nothing(tmp_path: Path) -> None:
    code = 'PYBIND11_MODULE(x, m) { m.def("scale(x)", &scale); }\nvoid go(Other& o) { o.def("scale", "f(x) -> y"); o.impl("scale", 1); }'
    (tmp_path / "op.cpp").write_text("#include <torch/library.h>\n" + SCALE + DEFINED + code)
    assert verdicts(tmp_path) == {"scale": "unknown"}


HEADERS = {
    "a pointer": ("const char* const kSchema = TEXT;", "kSchema"),
    "an array": ("namespace ns { inline constexpr char kSchema[] = TEXT; }", "ns::kSchema"),
    "a string": ("static const std::string kSchema{TEXT};", "kSchema"),
    "a macro": ("#define SCALE_SCHEMA TEXT", "SCALE_SCHEMA"),
    "pieces": ('constexpr auto kSchema = "scale(Tensor x, " /* cut */\n  "Tensor out) -> ()";', "kSchema"),
}


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("bound", [", &scale", ""])
def test_a_schema_that_stands_in_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, bound: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    header, word = HEADERS[name]
    code = tmp_path / "code"
    code.mkdir()
    before = header.replace("TEXT", '"scale(Tensor x, Tensor out) -> ()"').encode()
    (code / "schemas.h").write_bytes(before)
    block = f"TORCH_LIBRARY(lib, m) {{ m.def({word}{bound}); {'' if bound else 'm.impl(' + chr(34) + 'scale' + chr(34) + ', &scale);'} }}"
    (code / "op.cpp").write_text('#include "schemas.h"\n' + SCALE + block)
    assert verdicts(code) == {"scale": "wrong"}
    assert main.main(["apply", "--infer", str(code)]) == 0
    assert b"Tensor(a!) out" in (code / "schemas.h").read_bytes()
    assert verdicts(code) == {"scale": "right"}
    assert main.main(["revert", str(code)]) == 0
    assert (code / "schemas.h").read_bytes() == before
    (code / "more.h").write_bytes(before)  # defined twice: which of them is meant is not known
    assert verdicts(code) == {}


def test_a_name_alone_in_another_file_is_no_schema(tmp_path: Path) -> None:
    (tmp_path / "names.h").write_text('#define SCALE_NAME "scale"\n')
    (tmp_path / "op.cpp").write_text(SCALE + "TORCH_LIBRARY(lib, m) { m.def(SCALE_NAME, &scale); }")
    assert verdicts(tmp_path) == {}


def test_what_could_not_be_read_is_told_in_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "op.cpp").write_text(SCALE + "TORCH_LIBRARY(lib, m) { m.def(made(), &scale); m.def(kSchema); }")
    main.main(["audit", str(tmp_path)])
    assert "2 registrations could not be read: --strict lists them" in capsys.readouterr().err


BOUND = """
void scale(const at::Tensor& x, at::Tensor out, float by) { out.copy_(x * by); }
at::Tensor doubled(const at::Tensor& x) { return x * 2; }
at::Tensor same(at::Tensor x) { return x; }
void hidden(at::Tensor x) { elsewhere(x); }
PYBIND11_MODULE(_C, m) {
  m.def("scale", &scale, "scales", py::arg("x"), py::arg("out"), py::arg("by") = 1.0);
  m.def("doubled", doubled);
  m.def("same", &::same); m.def("hidden", &hidden);
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, scale);
"""
CALLED = {
    "_C.scale(x, out, 2.0)": "wrong",
    "_C.scale(x, out=out)": "wrong",
    "_C.scale(out, torch.empty_like(x))": "right",
    "_C.doubled(x)": "right",
    "_C.hidden(x)": "unknown",
    "_C.hidden(x.clone())": "right",
    "_C.scale(*(x, out))": "unknown",
    "_C.nowhere(out)": "unknown",
    "return _C.same(x)": "unknown",
    "_C.same(x).zero_()": "unknown",
    "return _C.doubled(x)": "right",
    "tvm.run(x, out, 1.0)": "wrong",
    "other.scale(x, out)": "unknown",
}


@pytest.mark.parametrize("line", CALLED)
def test_python_that_calls_what_cpp_hands_to_it(tmp_path: Path, line: str) -> None:
    (tmp_path / "ext.cpp").write_text(BOUND)
    returns = "torch.Tensor" if "return" in line else "None"
    (tmp_path / "ops.py").write_text(
        "import torch\nimport my_tvm_module as tvm\nfrom . import _C\n\n"
        "@torch.library.custom_op('lib::op', mutates_args=())\n"
        f"def op(x: torch.Tensor, out: torch.Tensor) -> {returns}:\n    {line}\n"
    )
    assert verdicts(tmp_path) == {"op": CALLED[line]}


def test_functions_of_one_name_that_differ(tmp_path: Path) -> None:
    (tmp_path / "ext.cpp").write_text(BOUND)
    (tmp_path / "other.cpp").write_text(
        'static void scale_(const at::Tensor& x, at::Tensor out, float by) {}\nPYBIND11_MODULE(_D, m) { m.def("scale", &scale_); }'
    )
    (tmp_path / "ops.py").write_text(
        "import torch\nfrom . import _C\n\n@torch.library.custom_op('lib::op', mutates_args=())\n"
        "def op(x: torch.Tensor, out: torch.Tensor) -> None:\n    _C.scale(x, out, 1.0)\n"
    )
    assert verdicts(tmp_path) == {"op": "unknown"}
    (tmp_path / "other.cpp").unlink()
    assert main.main(["apply", "--infer", str(tmp_path)]) == 0
    assert "mutates_args=('out',)" in (tmp_path / "ops.py").read_text().replace('"', "'")
    assert verdicts(tmp_path) == {"op": "right"}


KERNELS = "namespace %s { template <int N> void fill(float* to) { to[0] = N; } }\n"
CALLS = 'void op(at::Tensor a) { auto* f = %s::fill<1>; f(a.data_ptr<float>()); }\nTORCH_LIBRARY(lib, m) { m.def("op(Tensor a) -> ()", &op); }'


@pytest.mark.parametrize("form", ["another file's alias", "an alias of its own", "another file's alias alone"])
def test_an_alias_of_a_namespace_is_that_of_its_file(tmp_path: Path, form: str) -> None:
    other = "void nothing() { namespace kernels = other; }\n"
    files = {
        "another file's alias": {"a_cpp": other, "op_cpp": KERNELS % "kernels" + CALLS % "kernels"},
        "an alias of its own": {
            "a_cpp": KERNELS.replace("to[0] = N", "") % "kernels",
            "op_cpp": KERNELS % "other" + "namespace kernels = other;\n" + CALLS % "kernels",
        },
        "another file's alias alone": {"a_h": other, "op_cpp": KERNELS % "other" + CALLS % "kernels"},
    }
    assert verdicts(tmp_path, **files[form]) == {"op": "wrong"}


STUBS = {
    "a check": 'TORCH_CHECK(false, "not supported")',
    "a check that is another": 'int v = version();\n  STD_TORCH_CHECK_NOT_IMPLEMENTED(false, "v; ", v);',
    "a throw": 'throw std::runtime_error("no");',
    "an error": 'AT_ERROR("no");',
}


@pytest.mark.parametrize("form", STUBS)
def test_a_function_that_only_raises_is_no_implementation(tmp_path: Path, form: str) -> None:
    (found,) = trees.infer(
        trees.write(tmp_path, op_cpp=trees.source(f"void op(at::Tensor a, at::Tensor b) {{ {STUBS[form]} }}"))
    )
    assert {answer.reason for answer in found.answers} == {
        "no implementation is registered in this tree that does more than raise"
    }


def test_a_function_that_writes_before_it_raises_is_one(tmp_path: Path) -> None:
    code = 'void op(at::Tensor a, at::Tensor b) { b.copy_(a); if (a.numel()) return; TORCH_CHECK(false, "x"); }'
    assert trees.answers(tmp_path, code) == {"a": "read only", "b": "written"}


@pytest.mark.parametrize(
    ("call", "where"),
    [
        ("VENDOR(lib::f)(a, b);", "is not in this tree"),
        ("auto g = get(); g(a, b);", "is not resolved"),
        ("launch_c128(a, b);", "not followed"),  # as MAKE may make it
        ("launch_d128(a, b);", "not in this tree"),
        ("vendors(a, b);", "perhaps defined by VENDOR_DEFINES, which is not followed"),
    ],
)
def test_what_stands_nowhere_is_said_to(tmp_path: Path, call: str, where: str) -> None:
    make = "#define MAKE(n) void launch_c##n(at::Tensor a, at::Tensor b) { b.copy_(a); }\nVENDOR_DEFINES(vendors)\n"
    code = trees.source(f"{make}void op(at::Tensor a, at::Tensor b) {{ {call} }}")
    (found,) = trees.infer(trees.write(tmp_path, op_cpp=code))
    assert all(where in answer.reason for answer in found.answers)
