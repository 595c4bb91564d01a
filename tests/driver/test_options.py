"""Command lines as torch's SyclExtension writes them, and the ones that are refused by name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema_patch.build.driver import link, options
from schema_patch.build.driver.options import Action, parse
from schema_patch.model import ToolError

# What eight releases of torch gave to icpx for one tree: record_commands.py.
COMMANDS: dict[str, list[list[str]]] = json.loads(Path(__file__).with_name("commands.json").read_text())


def recorded(version: str, word: str) -> list[str]:
    (found,) = (words[1:] for words in COMMANDS[version] if words[0] == "icpx" and word in words)
    return found


@pytest.mark.parametrize("version", COMMANDS)
def test_a_compilation(version: str) -> None:
    plan = parse(recorded(version, "-c"))
    assert plan.action is Action.COMPILE
    assert plan.sycl
    assert (plan.sources, plan.objects) == (("/t/norm.sycl",), ())
    assert plan.output.endswith("/norm.o")
    assert {"-I/t/csrc", '-DDIGEST="abc"', "-DTORCH_EXTENSION_NAME=_C", "-ffile-prefix-map=/t=."} <= set(plan.both)
    assert plan.host_only is not None
    assert {"-I/t/csrc", "-O1", '-DDIGEST="abc"', "-DTORCH_EXTENSION_NAME=_C"} <= set(plan.host_only)
    standards = [word for word in (*plan.both, *plan.host_only) if word.startswith("-std=")]
    assert len(standards) == 2
    assert len(set(standards)) == 1
    assert plan.targets == ("spir64_gen", "spir64")
    assert set(plan.device) == {"-sycl-std=2020", "-fsycl-device-code-split=per_kernel"}


@pytest.mark.parametrize("version", COMMANDS)
def test_a_device_link(version: str) -> None:
    plan = parse(recorded(version, "-fsycl-link"))
    assert plan.action is Action.DEVICE_LINK
    assert [path.rpartition("/")[2] for path in plan.objects] == ["norm.o", "ops.o"]
    assert plan.targets == ("spir64_gen", "spir64")
    assert plan.devices == ("bmg", "bmg-g31")
    assert plan.compress


def test_releases_of_torch_differ_where_it_matters() -> None:
    """Up to 2.8 the host's options are quoted twice; 2.7 names the targets before, later ones after the source."""
    twice = {version for version in COMMANDS if any('\\\\"abc' in word for word in recorded(version, "-c"))}
    assert twice == {"2.7.1", "2.8.0"}
    first = {version for version in COMMANDS if recorded(version, "-c").index("-fsycl-targets=spir64_gen,spir64") < 9}
    assert first == {"2.7.1"}


@pytest.mark.parametrize("quote", ['\\"', '\\\\"'])
@given(text=st.text("abc=.,/+", max_size=8))
def test_a_string_for_the_host_side_arrives_whole(quote: str, text: str) -> None:
    define = f'-DTEXT="{text}"'
    words = f"-O1 {define.replace(chr(34), quote)} -fPIC"
    assert parse(["-c", "a.cpp", f"-fsycl-host-compiler-options={words}"]).host_only == (define, "-O1", "-fPIC")


@pytest.mark.parametrize(
    ("words", "devices", "backend"),
    [
        (["-Xs", "-device bmg"], ("bmg",), ()),
        (["-Xs", '-device bmg -options "-doubleGRF"'], ("bmg",), ("-doubleGRF",)),
        (["-Xs", "-device bmg", "-Xs", "-options -doubleGRF"], ("bmg",), ("-doubleGRF",)),
        (["-Xs", "-device bmg -options '-doubleGRF -vc-codegen'"], ("bmg",), ("-doubleGRF", "-vc-codegen")),
        (["-Xs", "-doubleGRF", "-Xs", "-device bmg"], ("bmg",), ("-doubleGRF",)),
        (["-Xsycl-target-backend=spir64_gen", "-device bmg-g21"], ("bmg-g21",), ()),
        (["-Xsycl-target-backend", "-device bmg"], ("bmg",), ()),
        (["-Xsdevice bmg"], ("bmg",), ()),
        (["-fsycl-targets=intel_gpu_bmg_g21"], ("bmg-g21",), ()),
    ],
)
def test_forms_of_a_device(words: list[str], devices: tuple[str, ...], backend: tuple[str, ...]) -> None:
    plan = parse(["-fsycl", "-fsycl-link", "a.o", *words])
    assert (plan.devices, plan.backend) == (devices, backend)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["-fsycl", "-c", "a.cpp", "-fsycl-instrument-nothing"], "-fsycl-instrument-nothing"),
        (["-c", "a.cpp", "-fno-such-thing"], "-fno-such-thing"),
        (["-c", "a.cpp", "--offload-arch=gfx90a"], "--offload-arch=gfx90a"),
        (["-S", "a.cpp"], "-S"),
        (["-E", "a.cpp"], "-E"),
        (["-fsycl-rdc", "-c", "a.cpp"], "-fsycl-rdc"),
        (["-c", "a.cpp", "-o"], "-o"),
        (["-fsycl", "-fsycl-link", "a.o", "-fsycl-targets=nvptx64-nvidia-cuda"], "-fsycl-targets"),
        (["-fsycl", "-fsycl-link", "a.o", "-Xs", "-device bmg -revision_id 4"], "-revision_id"),
        (["-fsycl", "-fsycl-link", "a.o", "-Xsycl-target-backend=spir64_x86_64", "-march=avx512"], "spir64_x86_64"),
        (["-Xsycl-target-fronted", "-w", "-c", "a.cpp"], "-Xsycl-target-fronted"),
        (["-c", "a.cpp", "-fsycl-host-compiler-options=-fsycl-unnamed-lambda"], "-fsycl-host-compiler-options"),
        (["-c", "a.f90"], "a.f90"),
        (["-c", "a.cpp", "-Xspirv-translator", "-spirv-ext=-all"], "-spirv-ext=-all"),
        ([], "none"),
        (["-fsycl"], "no input files"),
    ],
)
def test_what_is_not_understood_is_refused_by_its_name(words: list[str], name: str) -> None:
    with pytest.raises(ToolError, match=re.escape(name)):
        parse(words)


def parsed(words: list[str]) -> options.Compilation | str:
    try:
        return parse(words)
    except ToolError as error:
        return str(error)


@given(st.text("abcdefghijklmnopqrstuvwxyz-=", min_size=3, max_size=20))
def test_a_word_has_one_meaning_or_is_refused(tail: str) -> None:
    """No word is dropped: it is in the plan, or in the message."""
    word = f"-{tail}"
    plan = parsed(["-c", "a.cpp", word])
    if isinstance(plan, str):
        assert word in plan or "expected" in plan
    else:
        kept = (*plan.both, *plan.host, *plan.device, *plan.objects)
        assert word in kept or plan != parse(["-c", "a.cpp"]) or word in NO_EFFECT


# Known and without effect here: what they ask for is so anyhow.
NO_EFFECT = {"-v", "-dpcpp", "-Qunused-arguments", "-xc++", "-c", "-no-ftz", "-flink-huge-device-code"}


def test_the_device_link_of_a_tree_built_with_cmake() -> None:
    """As vllm-xpu-kernels writes it: what permits and what only helps a linker changes nothing."""
    extensions = "-spirv-ext=+SPV_INTEL_split_barrier,+SPV_INTEL_2d_block_io"
    words = ["-fsycl", "-fsycl-max-parallel-link-jobs=16", "-flink-huge-device-code", "-Xspirv-translator", extensions,
             "-fsycl-targets=spir64_gen", "-Xsycl-target-backend=spir64_gen", "-device bmg,bmg-g21-a0", "a.o", "-shared"]  # fmt: skip
    plan = parse(words)
    assert plan.devices == ("bmg", "bmg-g21-a0")
    assert plan == parse([word for word in words if word not in ("-Xspirv-translator", extensions, words[2])])


def test_every_option_of_the_table_reaches_its_part() -> None:
    for name in (
        "-fsycl",
        "-MD",
        "--offload-compress",
        "-fsycl-max-parallel-link-jobs=4",
        "-fsycl-targets=spir64_gen",
    ):
        assert parse(["-c", "a.cpp", name]) != parse(["-c", "a.cpp"]), name
    assert Path(options.__file__).name == "options.py"


@pytest.mark.parametrize(
    ("targets", "added"), [("intel_gpu_bmg_g21", True), ("spir64_gen", False), ("intel_gpu_bmg_g21,spir64", True)]
)
def test_the_runtime_is_told_the_one_device_of_an_image(targets: str, added: bool) -> None:
    devices = [] if "intel_gpu" in targets else ["-Xs", "-device bmg-g21"]
    plan = parse(["-fsycl", "-fsycl-link", f"-fsycl-targets={targets}", *devices, "a.o"])
    others: list[tuple[str, int | bytes]] = [("aspects", b"a"), ("reqd_sub_group_size", 16)]
    image = [("SYCL/device requirements", others), ("SYCL/misc properties", [("isEsimdImage", 1)])]
    (_, told), misc = link._targeted(image, plan)
    assert told == sorted([*others, *([("compile_target", b"intel_gpu_bmg_g21")] if added else [])], key=str)
    assert misc == image[1]
