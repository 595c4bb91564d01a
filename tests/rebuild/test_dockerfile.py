"""The Dockerfile's shell steps, run outside Docker: in a scratch root, with stand-ins for what only the images have.

Real: doctor, rebuild, verify-schemas, and bash as the Dockerfile's SHELL starts it. Stand-ins: apt-get, pip's network,
icpx and ocloc with what real ones print, a torch with XPU, and a tree that packages a library without compiling one; torch
registers what it says.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
import yaml
from device_files import library, spirv
from elf_files import registering

from schema_patch.build import rebuild
from schema_patch.cpp import registrations
from schema_patch.schemas import table
from schema_patch.schemas.annotate import Returns

from .recorded import GXX, ICPX_2025, ICPX_2026, OCLOC_IDS, stand_in, stand_in_python
from .test_toolchain import XPU

ROOT = Path(__file__).resolve().parents[2]
PATIENT = ROOT / "examples/as_shipped"
TEXT = (ROOT / "Dockerfile").read_text()
LINKED = ("-Wl,--no-as-needed", f"-L{Path(torch.__file__).parent}/lib", "-ltorch_cpu")
FOLDERS = re.compile(r"(?<![\w.}~])/(?=(?:kit|out|ops|opt|tmp|var)\b)")


def instructions(text: str = TEXT) -> Iterator[tuple[str, str]]:
    """Each instruction and its words, with continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        if line.strip():
            name, _, rest = line.partition(" ")
            yield name, rest.strip()


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage; what comes before the first FROM is the first."""
    found: list[list[tuple[str, str]]] = [[]]
    for name, rest in instructions():
        if name == "FROM":
            found.append([])
        found[-1].append((name, rest))
    return found


def arguments(stage: Sequence[tuple[str, str]]) -> dict[str, str]:
    return {rest.partition("=")[0]: rest.partition("=")[2] for name, rest in stage if name == "ARG"}


class Scratch:
    """A root for the steps, with its stand-ins."""

    def __init__(self, root: Path, icpx: str = ICPX_2025, packaged: Sequence[str] | None = None) -> None:
        self.root, self.tools, self.site = root, root / "tools", root / "site"
        for folder in (
            "out",
            "opt",
            "tmp/torchinductor_root/fxgraph",
            "var/lib/apt/lists",
            "home/.cache/vllm/torch_compile_cache",
        ):
            (root / folder).mkdir(parents=True)
        stand_in(self.tools, "icpx", icpx)
        stand_in(self.tools, "c++", GXX)
        stand_in(self.tools, "ocloc", OCLOC_IDS)
        stand_in(self.tools, "ninja", "1.13.2\n")
        stand_in(self.tools, "apt-get", script=f'echo "$@" >> {self.tools}/apt-get.record')
        stand_in_python(self.tools / "xpu", XPU)
        self._script(
            "python3", PYTHON.format(site=str(self.site), record=str(self.tools / "pip.record"), real=sys.executable)
        )
        self._script("schema-patch", KIT.format(python=str(self.tools / "xpu/python"), real=sys.executable))
        (self.tools / "verify-schemas").symlink_to(Path(sys.executable).with_name("verify-schemas"))
        self.tree(packaged)

    def _script(self, name: str, text: str) -> None:
        (self.tools / name).write_text(text)
        (self.tools / name).chmod(0o755)

    def tree(self, packaged: Sequence[str] | None) -> None:
        """/ops: registers the 47 operators; what it packages says the right schemas, or those that are given."""
        ops = self.root / "ops"
        shutil.copytree(PATIENT / "csrc", ops / "csrc")
        package = ops / "custom_esimd_kernels_vllm"
        package.mkdir()
        (package / "__init__.py").touch()
        texts = packaged or patched_schemas(self.root / "patched")
        more = registered(texts)
        built = library(self.root / "library", [spirv(["_ZTS6kernel"])], name="ops.so", more=more, flags=LINKED)
        shutil.copy(built, ops / "kept.bin")
        (ops / "setup.py").write_text(
            "import shutil\nfrom setuptools import setup\nshutil.copy('kept.bin', 'custom_esimd_kernels_vllm/ops.so')\n"
            "setup(name='custom-esimd-kernels-vllm', version='0.1.0', packages=['custom_esimd_kernels_vllm'],\n"
            "      package_data={'custom_esimd_kernels_vllm': ['ops.so']})\n"
        )

    def digest(self) -> str:
        """What PATCH_SHA256 must be for /ops."""
        target = self.root / "digest"
        rebuild.copy(self.root / "ops", target, self.root / "nowhere")
        made, _ = rebuild.annotate(target, Returns.ALIAS, table.load())
        return json.loads(json.dumps(made.digest))

    def run(self, step: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
        script = FOLDERS.sub(f"{self.root}/", step)
        env = {
            "PATH": f"{self.tools}:{os.environ['PATH']}", "HOME": str(self.root / "home"), "LANG": "C.UTF-8",
            "TORCHINDUCTOR_CACHE_DIR": str(self.root / "none"), **variables,
        }  # fmt: skip
        argv = ["/bin/bash", "-euo", "pipefail", "-c", script]
        return subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=400)


# pip without a network: wheels of the kit are noted, others unpacked. Everything else is the real interpreter.
PYTHON = """\
#!{real}
import json, os, sys, zipfile
words = sys.argv[1:]
if words[:2] == ["-m", "pip"]:
    with open({record!r}, "a") as record:
        record.write(json.dumps([os.environ.get("ESIMD_OPS_BUILD", ""), *words[2:]]) + "\\n")
    if words[2] == "wheel":
        into = words[words.index("--wheel-dir") + 1]
        os.makedirs(into)
        open(os.path.join(into, "schema_kit-0.1.0-py3-none-any.whl"), "w").close()
    for word in words:
        if word.endswith(".whl") and "schema_kit" not in word:
            zipfile.ZipFile(word).extractall({site!r})
elif words[:1] == ["-c"] and "platlib" in words[1]:
    print({site!r})
else:
    os.execv({real!r}, [{real!r}, *words])
"""
# The real commands: doctor is shown a torch with XPU; rebuild, which cannot have one, builds for the host.
KIT = """\
#!{real}
import os, sys
words = sys.argv[1:]
if words[0] == "doctor":
    words += ["--python", {python!r}]
else:
    words[words.index("--for") + 1] = "host"
os.execv({real!r}, [{real!r}, "-m", "schema_patch", *words])
"""


def registered(texts: Sequence[str]) -> str:
    """C source that registers them, each in the namespace that the sources have for it."""
    apart = [text for text in texts if text.startswith("topk_v2(")]
    return registering([text for text in texts if text not in apart]) + registering(apart, "esimd_topk_v2")


def patched_schemas(folder: Path) -> list[str]:
    """The schemas of the 47 operators as `apply` leaves them."""
    shutil.copytree(PATIENT / "csrc", folder / "csrc")
    made, report = rebuild.annotate(folder, Returns.ALIAS, table.load())
    assert report
    return [operator.schema.text for unit in made.units for operator in unit.operators]


def shipped_schemas() -> list[str]:
    sources = [registrations.read(path.read_bytes(), str(path)) for path in sorted((PATIENT / "csrc").glob("*.cc"))]
    return [registration.schema.text for source in sources for registration in source.registrations]


def steps(stage: int) -> list[str]:
    return [rest for name, rest in stages()[stage] if name == "RUN"]


def defaults(stage: int) -> dict[str, str]:
    """What its steps find in their environment: its arguments, and the variables that it sets."""
    given = {**arguments(stages()[0]), **{name: value for name, value in arguments(stages()[stage]).items() if value}}
    for _, rest in (row for row in stages()[stage] if row[0] == "ENV"):
        given |= {name: value for name, _, value in (word.partition("=") for word in rest.split()) if name != "PATH"}
    whole = re.compile(r"\$\{(\w+)\}")
    return {name: whole.sub(lambda match: given[match[1]], value) for name, value in given.items()}


BUILDER, FINAL = 3, 4


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scratch, list[str]]:
    """Both stages run through, and what each step printed."""
    scratch = Scratch(tmp_path_factory.mktemp("image"))
    variables = {**defaults(BUILDER), "PATCH_SHA256": scratch.digest()}
    said = []
    for stage in (BUILDER, FINAL):
        for step in steps(stage):
            done = scratch.run(step, variables)
            assert done.returncode == 0, (step, done.stdout, done.stderr)
            said.append(done.stdout + done.stderr)
        if stage == BUILDER:  # COPY --from=builder /out /opt/schema-kit
            shutil.copytree(scratch.root / "out", scratch.root / "opt/schema-kit")
    return scratch, said


def test_the_steps_are_the_ones_that_are_meant(built) -> None:
    scratch, said = built
    assert [len(steps(stage)) for stage in (1, 2, BUILDER, FINAL)] == [0, 0, 4, 3]
    pip = [json.loads(line) for line in (scratch.tools / "pip.record").read_text().splitlines()]
    kit = f"{scratch.root}/opt/schema-kit/kit/schema_kit-0.1.0-py3-none-any.whl"
    wheel = f"{scratch.root}/opt/schema-kit/custom_esimd_kernels_vllm-0.1.0-py3-none-any.whl"
    assert pip[0][:2] == ["none", "wheel"]
    assert pip[-2:] == [
        ["", "install", "--no-cache-dir", kit],
        ["", "install", "--no-cache-dir", "--no-deps", "--force-reinstall", wheel],
    ]
    assert (scratch.tools / "apt-get.record").read_text().startswith("update\ninstall -y --no-install-recommends g++")
    assert "for xpu, with /env/bin/python" in said[2]
    assert "icpx 2025.3.2" in said[2]
    record = json.loads((scratch.root / "opt/schema-kit/build.json").read_text())
    assert len(record["operators"]) == 37
    assert "37 operators" not in said[-2]
    assert re.search(r"^47 operators: 7 right, 40 right, but not compilable", said[-2], re.MULTILINE)


def test_the_caches_are_gone(built) -> None:
    scratch, _ = built
    assert not (scratch.root / "tmp/torchinductor_root").exists()
    assert not (scratch.root / "home/.cache/vllm/torch_compile_cache").exists()


def test_another_compiler_fails_the_build(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, icpx=ICPX_2026)
    codes = [scratch.run(step, defaults(BUILDER)).returncode for step in steps(BUILDER)[:3]]
    assert codes == [0, 0, 1]


def test_another_patch_fails_the_build_and_is_shown(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    done = scratch.run(steps(BUILDER)[3], defaults(BUILDER))
    assert done.returncode == 1
    assert f"pass --build-arg PATCH_SHA256={scratch.digest()}" in done.stderr
    assert "+++ b/csrc/torch_extension.cc" in done.stderr


def test_a_library_that_was_not_patched_fails_the_build(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, packaged=shipped_schemas())
    done = scratch.run(steps(BUILDER)[3], {**defaults(BUILDER), "PATCH_SHA256": scratch.digest()})
    assert done.returncode == 1
    assert "SP101 esimd_gemv_int4" in done.stdout


@pytest.mark.parametrize("operator", ["esimd_gemv_int4", "esimd_gemm_int4_pgrp", "topk_v2"])
def test_an_image_that_lacks_an_operator_fails(tmp_path: Path, operator: str) -> None:
    """The planted defect: what is installed is not what was built."""
    scratch = Scratch(tmp_path)
    texts = [text for text in patched_schemas(tmp_path / "again") if not text.startswith(f"{operator}(")]
    more = registered(texts)
    library(scratch.site / "custom_esimd_kernels_vllm", [spirv(["_ZTS6kernel"])], name="ops.so", more=more)
    done = scratch.run(steps(FINAL)[1], defaults(FINAL))
    assert done.returncode != 0
    assert operator in done.stdout + done.stderr


def test_all_37_are_required_by_name() -> None:
    words = shlex.split(steps(FINAL)[1].replace("$(", "(").replace("'", ""))
    required = [name for flag, names in itertools.pairwise(words) if flag == "--require" for name in names.split(",")]
    known = table.load()
    wrong = {
        registration.schema.text.split("(")[0]
        for path in (PATIENT / "csrc").glob("*.cc")
        for registration in registrations.read(path.read_bytes(), str(path)).registrations
        if "!" not in registration.schema.text
    }
    assert len(required) == len(set(required)) == 37
    assert set(required) == wrong <= set(known.entries)
    assert required[:2] == ["esimd_gemv_int4", "esimd_gemm_int4_pgrp"]


def test_the_labels_name_the_patch() -> None:
    (label,) = (rest for name, rest in stages()[FINAL] if name == "LABEL")
    assert 'schema-kit.patch.sha256="${PATCH_SHA256}"' in label
    assert defaults(BUILDER)["PATCH_SHA256"] == defaults(FINAL)["PATCH_SHA256"]
    for name in ("ARCH", "RETURNS"):
        assert defaults(BUILDER)[name] == defaults(FINAL)[name]


def test_compose_passes_every_argument_with_the_same_default() -> None:
    document = yaml.safe_load((ROOT / "compose.yaml").read_text())
    given = document["services"]["vllm"]["build"]["args"]
    expected = defaults(BUILDER)
    assert expected.pop("TORCH_XPU_ARCH_LIST") == expected["ARCH"]
    assert given == {name: f"${{{name}:-{value}}}" for name, value in expected.items()}


def test_the_context_holds_what_the_kit_is_made_of() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    for rule in rules[1:]:
        assert rule.startswith("**/") or (ROOT / rule.removeprefix("!")).exists(), rule
    assert {
        "!setup.py",
        "!pyproject.toml",
        "!README.md",
        "!LICENSE",
        "!schema_patch",
        "!esimd_ops",
    } <= set(rules)


def test_hadolint_has_nothing_to_say() -> None:
    program = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([program, "--no-color", ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    planted = subprocess.run(
        [program, "--no-color", "-"],
        input="FROM x:latest\nRUN cd /tmp && sudo ls\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "DL3007" in planted.stdout


@pytest.mark.skipif(not os.environ.get("LLM_SCALER"), reason="set LLM_SCALER to a checkout of intel/llm-scaler")
def test_the_digest_is_that_of_the_release(tmp_path: Path) -> None:
    tree = Path(os.environ["LLM_SCALER"]) / "vllm/custom-esimd-kernels-vllm"
    rebuild.copy(tree, tmp_path / "ops", tmp_path / "out")
    made, report = rebuild.annotate(tmp_path / "ops", Returns.ALIAS, table.load())
    assert report
    assert made.digest == defaults(BUILDER)["PATCH_SHA256"]


def test_the_variant_without_a_compiler_image_differs_only_in_the_compiler() -> None:
    """Dockerfile.kit: no stage of oneAPI, the kit's driver; what is shipped and how it is verified is the same text."""
    other = (ROOT / "Dockerfile.kit").read_text()
    shipped = TEXT[TEXT.index("\nFROM ${BASE}\nARG LLM_SCALER") :]
    assert other.endswith(shipped)
    assert not re.search(r"(?m)^(?!#).*(oneapi|TOOLCHAIN|icpx)", other)
    steps = [rest for name, rest in instructions(other) if name == "RUN"]
    theirs = [rest for name, rest in instructions() if name == "RUN"]
    as_with_icpx = [
        step.replace("--for bmg --compiler kit", "--for xpu").replace("--for bmg", "--for xpu") for step in steps
    ]
    assert [step for step in as_with_icpx if step not in theirs] == [steps[0]]
    assert "clang-19" in steps[0]
    done = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), ROOT / "Dockerfile.kit"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
