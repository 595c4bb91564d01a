"""rebuild on a tree with a real build: a part of the patient, which links to the kit's own extension."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from schema_patch.build import rebuild as course
from schema_patch.commands.console import Steps
from schema_patch.schemas import table
from schema_patch.schemas.annotate import Returns

from .recorded import stand_in

PATIENT = Path(__file__).resolve().parents[2] / "examples/as_shipped"
WHEEL = "custom_esimd_kernels_vllm_as_shipped-0.0.0"
UNTOUCHED = {name: value for name, value in os.environ.items() if name not in ("TORCH_XPU_ARCH_LIST", "MAX_JOBS")}


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def small_tree(root: Path) -> Path:
    """The patient with one registration file of six, and with what an earlier build would leave behind."""
    shutil.copytree(PATIENT, root, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    for path in (root / "csrc").glob("*.cc"):
        if path.name != "torch_extension_topk_v2.cc":
            path.unlink()
    (root / "build").mkdir()
    (root / "build/stale.o").write_bytes(b"\x7fELF")
    return root


def start(*words: str | Path, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "schema_patch", "rebuild", *map(str, words)]
    env = {**UNTOUCHED, **(environment or {})}
    return subprocess.Popen(argv, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def rebuild(*words: str | Path, environment: dict[str, str] | None = None) -> tuple[int, str, str]:
    process = start(*words, environment=environment)
    out, err = process.communicate(timeout=580)
    return process.returncode, out, err


def wheel(out: Path) -> Path:
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, bytes], str]:
    """The tree, the results of one run with a control, the tree's bytes from before, and what was printed."""
    base = tmp_path_factory.mktemp("rebuild with a space")
    tree = small_tree(base / "tree")
    before = contents(tree)
    code, out, err = rebuild(tree, "--out", base / "out", "--control", "--jobs", "1")
    assert code == 0, out + err
    return tree, base / "out", before, out


def test_the_tree_is_only_read(built) -> None:
    tree, out, before, _ = built
    assert contents(tree) == before
    assert sorted(path.name for path in out.iterdir()) == sorted(
        ["build.json", "build.log", "control", "control.log", "patch.diff", wheel(out).name]
    )


def test_the_wheels_say_what_they_should(built) -> None:
    _, out, _, printed = built
    assert "1 operator: 1 right, but not compilable without the guard" in printed
    assert str(wheel(out)) in printed
    verify = [str(Path(sys.executable).with_name("verify-schemas")), "--require", "topk_v2"]
    assert subprocess.run([*verify, wheel(out)], capture_output=True, check=False).returncode == 0
    assert subprocess.run([*verify, wheel(out / "control")], capture_output=True, check=False).returncode == 1


def test_the_record_holds_what_it_says(built) -> None:
    tree, out, _, _ = built
    record = json.loads((out / "build.json").read_text())
    for entry, path in ((record["wheel"], wheel(out)), (record["control"], wheel(out / "control"))):
        data = path.read_bytes()
        assert entry == {"name": path.name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert record["source"]["git"] is None
    assert record["patch"]["files"] == ["csrc/torch_extension_topk_v2.cc"]
    assert record["patch"]["returns"] == "alias"
    assert [row["op"] for row in record["operators"]] == ["topk_v2"]
    assert "Tensor(a!) top_values" in record["operators"][0]["after"]
    assert "!" not in record["operators"][0]["before"]
    assert record["toolchain"]["torch"] == record["toolchain"]["packages"]["torch"]
    assert record["toolchain"]["programs"]["c++"]
    assert record["libraries"][0]["path"].startswith(f"{wheel(out).name}/custom_esimd_kernels_vllm/")

    patched = shutil.copytree(tree, out / "by hand", ignore=shutil.ignore_patterns("build"))
    diff = (out / "patch.diff").read_bytes()
    assert record["patch"]["sha256"] == hashlib.sha256(diff).hexdigest()
    subprocess.run(["patch", "-p1", "--quiet"], cwd=patched, input=diff, check=True)
    code = [sys.executable, "-m", "schema_patch", "check", str(patched)]
    assert subprocess.run(code, capture_output=True, check=False).returncode == 0
    shutil.rmtree(patched)


def test_the_log_is_that_of_the_compiler(built) -> None:
    _, out, _, _ = built
    log = (out / "build.log").read_text()
    assert " -m pip wheel -v " in log.splitlines()[0]
    assert "[1/1] c++ " in log
    assert "-ffile-prefix-map=" in log


def test_two_builds_in_two_places_are_one(built, tmp_path: Path) -> None:
    _, out, _, _ = built
    tree = small_tree(tmp_path / "elsewhere" / "tree")
    for path in tree.rglob("*"):
        os.utime(path, (1e9, 1e9))
    code, printed, err = rebuild(tree, "--out", tmp_path / "out")
    assert code == 0, printed + err
    assert wheel(tmp_path / "out").read_bytes() == wheel(out).read_bytes()
    first, second = (json.loads((folder / "build.json").read_text()) for folder in (out, tmp_path / "out"))
    assert {**first, "control": None} == second
    with zipfile.ZipFile(wheel(out)) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            assert str(tree.parent).encode() not in data
            assert b".rebuild-" not in data


def test_a_source_that_no_step_compiles_is_missed_and_not_wanted(built, tmp_path: Path) -> None:
    """A tree may hold sources that its setup.py has out of use, of operators that are known."""
    tree, out, _, _ = built
    root = tmp_path / "tree"
    shutil.copytree(tree, root)
    for name in ("left/torch_extension_moe.cc", "csrc/inlined.h"):
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy(PATIENT / "csrc" / "torch_extension_moe.cc", root / name)
    made, _ = course.annotate(root, Returns.ALIAS, table.load())
    log = (out / "build.log").read_text()
    assert course.left_out(made, root, log) == frozenset()  # a header says the same, and no step names headers
    (root / "csrc/inlined.h").unlink()
    made, _ = course.annotate(root, Returns.ALIAS, table.load())
    left = course.left_out(made, root, log)
    assert left == {op for op in made.known if op.startswith("esimd_moe")} != frozenset()
    assert course.left_out(made, root, "nothing is told") == frozenset()
    job = course.Job(root, out, Returns.ALIAS, None)  # type: ignore[arg-type]
    for missed, exit_code in ((left, 0), (frozenset[str](), 1)):
        report = course.verify(wheel(out), made, missed, job, table.load(), Steps())
        assert report.exit_code == exit_code
    assert all("compiled by no step" in f.message for f in course.verify(
        wheel(out), made, left, job, table.load(), Steps()).findings if f.code == "SP211")  # fmt: skip


def waiting_compiler(folder: Path) -> dict[str, str]:
    """An environment whose compiler notes that it was started, and then takes its time."""
    script = f'case "$*" in *" -c "*) echo $$ > {folder}/started; sleep 600;; esac; exec c++ "$@"'
    return {"CXX": str(stand_in(folder, "slow-c++", script=script)), "MAX_JOBS": "1"}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_leaves_all_as_it_was(tmp_path: Path, how: signal.Signals) -> None:
    tree = small_tree(tmp_path / "tree")
    before = contents(tree)
    process = start(tree, "--out", tmp_path / "out", environment=waiting_compiler(tmp_path / "tools"))
    started = tmp_path / "tools/started"
    deadline = time.monotonic() + 300
    while not (started.exists() and started.read_text().strip()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(how)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (2, "")
    assert err.splitlines()[-1] == "error: interrupted"
    assert contents(tree) == before
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["build.log"]
    assert not alive(int(started.read_text()))


def test_a_failed_build_shows_why_and_gives_nothing(tmp_path: Path) -> None:
    tree = small_tree(tmp_path / "tree")
    source = tree / "csrc/torch_extension_topk_v2.cc"
    source.write_text(source.read_text().replace("kernel_ops.h", "topk_v3.h"))
    code, out, err = rebuild(tree, "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert "topk_v3.h: No such file or directory" in err
    assert f"{tmp_path / 'out' / 'build.log'}: error: the build failed with exit code 1" in err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["build.log"]


def packaging_tree(root: Path, library: bytes) -> Path:
    """A tree whose build does not compile what it registers: it packages a library from elsewhere."""
    (root / "package").mkdir(parents=True)
    (root / "package/__init__.py").touch()
    (root / "kept.bin").write_bytes(library)
    shutil.copy(PATIENT / "csrc/torch_extension_topk_v2.cc", root)
    (root / "setup.py").write_text(
        "import shutil\nfrom setuptools import setup\nshutil.copy('kept.bin', 'package/ops.so')\n"
        "setup(name='stale', version='1', packages=['package'], package_data={'package': ['ops.so']})\n"
    )
    return root


@pytest.mark.parametrize("right", [False, True])
def test_a_wheel_is_believed_only_when_it_was_read(built, tmp_path: Path, right: bool) -> None:
    """The planted defect: the source is patched, and the library in the wheel is an old one."""
    _, out, _, _ = built
    with zipfile.ZipFile(wheel(out if right else out / "control")) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".so"))
        library = archive.read(name)
    tree = packaging_tree(tmp_path / "tree", library)
    code, printed, err = rebuild(tree, "--out", tmp_path / "out")
    assert code == (0 if right else 1), printed + err
    assert bool(list((tmp_path / "out").glob("*.whl"))) == right
    assert ("SP210" in printed and "SP101" in printed) != right
    assert right or f"{tree}/torch_extension_topk_v2.cc:5:9" in printed
    assert ".rebuild-" not in printed + err


def test_a_control_that_differs_in_more_is_none(built, tmp_path: Path) -> None:
    """The planted defect: the build of the patched tree compiles another library than that of the tree as it is."""
    _, out, _, _ = built
    libraries = []
    for folder in (out, out / "control"):
        with zipfile.ZipFile(wheel(folder)) as archive:
            libraries.append(archive.read(next(n for n in archive.namelist() if n.endswith(".so"))))
    tree = packaging_tree(tmp_path / "tree", libraries[0])
    (tree / "shipped.bin").write_bytes(libraries[1].replace(b"libtorch_cpu.so", b"libtorch_gpu.so"))
    setup = (tree / "setup.py").read_text()
    choice = "'kept.bin' if '(a!)' in open('torch_extension_topk_v2.cc').read() else 'shipped.bin'"
    (tree / "setup.py").write_text(setup.replace("'kept.bin'", choice))
    code, printed, _ = rebuild(tree, "--out", tmp_path / "out", "--control")
    assert code == 1
    assert "SP224" in printed
    assert not list((tmp_path / "out").rglob("*.whl"))


def test_a_sycl_tree_is_refused_before_anything_is_compiled(tmp_path: Path) -> None:
    tree = packaging_tree(tmp_path / "tree", b"")
    (tree / "setup.py").write_text("from torch.utils.cpp_extension import SyclExtension\n")
    code, out, err = rebuild(tree, "--for", "xpu", "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert "icpx: no icpx on the path" in err
    assert "without XPU" in err
    assert "TORCH_XPU_ARCH_LIST" not in err  # rebuild sets it
    assert err.splitlines()[-1] == "nothing was built: what is marked ✗ is in the way of a build for xpu"
    code, _, err = rebuild(tree, "--for", "xpu", "--out", tmp_path / "out", "--arch", "mtl-h")
    assert code == 2
    assert "TORCH_XPU_ARCH_LIST names mtl-h" in err
    assert not (tmp_path / "out").exists()


def test_a_copy_is_the_source_and_nothing_else(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    kept = {"setup.py", "csrc/build/used.h", "csrc/link.h", "data/dist/x.txt"}
    left = {"build/a.o", "dist/x.whl", "p.egg-info/PKG-INFO", "p/x.so", "p/__pycache__/x.pyc", ".git/HEAD", "results/x"}
    for name in kept | left:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if name != "csrc/link.h":
            (tree / name).touch()
    (tree / "csrc/link.h").symlink_to("build/used.h")
    course.copy(tree, tmp_path / "copy", tree / "results")
    assert set(contents(tmp_path / "copy")) == kept
    assert (tmp_path / "copy/csrc/link.h").is_symlink()


def test_trees_that_cannot_be_rebuilt(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    unknown = packaging_tree(tmp_path / "unknown", b"")
    (unknown / "torch_extension_topk_v2.cc").unlink()
    patched = packaging_tree(tmp_path / "patched", b"")
    assert (
        subprocess.run(
            [sys.executable, "-m", "schema_patch", "apply", patched], capture_output=True, check=False
        ).returncode
        == 0
    )
    taken = tmp_path / "taken"
    taken.touch()
    for words, environment, expected in (
        ([empty], {}, "expected a Python project"),
        ([unknown], {}, "nothing verified"),
        ([patched, "--control"], {}, "nothing to patch"),
        ([unknown, "--out", taken], {}, "cannot be written to"),
        ([unknown], {"SOURCE_DATE_EPOCH": "today"}, "SOURCE_DATE_EPOCH: expected seconds since 1970, found 'today'"),
    ):  # fmt: skip
        code, out, err = rebuild("--out", tmp_path / "out", *words, environment=environment)
        assert code == 2, (words, out, err)
        assert expected in out + err
    assert not list((tmp_path / "out").glob("*"))


def test_the_python_of_the_copy_follows_what_no_longer_returns(tmp_path: Path) -> None:
    (tmp_path / "ops.cc").write_text(
        "TORCH_LIBRARY(custom_esimd_kernels_vllm, m) {\n"
        '  m.def("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor");\n'
        '  m.impl("esimd_rms_norm", torch::kXPU, &rms_norm);\n}\n'
    )
    wrapper = "def norm(x, out, w):\n    return torch.ops.custom_esimd_kernels_vllm.esimd_rms_norm(x, out, w, 1e-6)\n"
    (tmp_path / "ops.py").write_text(f"import torch\n\n\n{wrapper}")
    made, report = course.annotate(tmp_path, Returns.VOID, table.load())
    assert report.exit_code == 0
    assert made.files == ("ops.cc", "ops.py")
    assert b"+    return out\n" in made.diff
    assert (tmp_path / "ops.py").read_text().endswith("esimd_rms_norm(x, out, w, 1e-6)\n    return out\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ops.cc", "ops.py"]
