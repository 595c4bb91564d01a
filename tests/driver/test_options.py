"""Command lines as torch's SyclExtension writes them, and the ones that are refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema_patch.build.driver import options
from schema_patch.build.driver.options import Action, parse
from schema_patch.model import ToolError

# What ninja gave icpx in a build by torch 2.13; 2.7 to 2.12 write the same but for the quotes of -Xs and --offload-compress.
COMPILE = [
    "-pthread", "-B", "/opt/compat", "-Wsign-compare", "-DNDEBUG", "-g", "-fwrapv", "-O3", "-Wall", "-fPIC", "-I/t/csrc",
    "-I/site/torch/include", "-I/usr/include/python3.11", "-c", "-DTORCH_API_INCLUDE_EXTENSION_H",
    '-DDIGEST="abc"', "-DTORCH_EXTENSION_NAME=_C", "-fsycl", "-std=c++20", "-sycl-std=2020",
    "-fsycl-host-compiler=c++",
    '-fsycl-host-compiler-options=-Wall -fPIC -I/t/csrc -c -O1 -DDIGEST=\\"abc\\" -std=c++20',
    "-c", "-x", "c++", "/t/norm.sycl", "-o", "/t/norm.sycl.o", "-O2", "-ffile-prefix-map=/t=.",
    "-fsycl-device-code-split=per_kernel", "-fsycl-targets=spir64_gen,spir64",
]  # fmt: skip
DEVICE_LINK = ["/t/norm.sycl.o", "/t/ops.o", "-o", "/t/sycl_dlink.o", "-fsycl", "-fsycl-link", "--offload-compress",
               "-fsycl-targets=spir64_gen,spir64", "-Xs", "-device bmg,bmg-g31"]  # fmt: skip


def test_a_compilation() -> None:
    plan = parse(["-B/opt/compat" if word == "-B" else word for word in COMPILE if word != "/opt/compat"])
    assert plan.action is Action.COMPILE
    assert plan.sycl
    assert (plan.sources, plan.objects[1:], plan.output) == (("/t/norm.sycl",), (), "/t/norm.sycl.o")
    assert {"-I/t/csrc", "-std=c++20", '-DDIGEST="abc"', "-ffile-prefix-map=/t=."} <= set(plan.both)
    assert plan.host_only is not None
    assert '-DDIGEST="abc"' in plan.host_only
    assert "-O1" in plan.host_only
    assert "-sycl-std=2020" in plan.device
    # The front end takes -O3 for a file of that name.
    assert not [word for word in (*plan.both, *plan.device) if word.startswith("-O")]


def test_a_device_link() -> None:
    plan = parse(DEVICE_LINK)
    assert plan.action is Action.DEVICE_LINK
    assert plan.objects == ("/t/norm.sycl.o", "/t/ops.o")
    assert plan.targets == ("spir64_gen", "spir64")
    assert plan.devices == ("bmg", "bmg-g31")
    assert plan.compress


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
NO_EFFECT = {"-dpcpp", "-Qunused-arguments", "-xc++", "-c"}


def test_every_option_of_the_table_reaches_its_part() -> None:
    for name in (
        "-fsycl",
        "-MD",
        "-v",
        "--offload-compress",
        "-fsycl-max-parallel-link-jobs=4",
        "-fsycl-targets=spir64_gen",
    ):
        assert parse(["-c", "a.cpp", name]) != parse(["-c", "a.cpp"]), name
    assert Path(options.__file__).name == "options.py"
