"""Wrong libraries in places where a glance does not look: what Python would import, by Python's own import system,
against what is said of the place. Generated: ways to a package, times names of its library. Then what no import shows:
files that a program loads by their path, images beside images, libraries that libraries bring.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from elf_files import VOID, WRONG, build
from test_archives import SITE, docker, oci, tar

from schema_patch.model import Report
from schema_patch.verify import survey

OP = "esimd_gemv_int4"
TAGGED = f"_C{sysconfig.get_config_var('EXT_SUFFIX')}"
OTHERS = "_C.cpython-27m-x86_64-linux-gnu.so"  # of another Python
# The wrong library first, of which Python would load one.
NAMES = (
    ("_C.so",), ("_C.abi3.so",), (TAGGED,), ("_C.abi3.so", "_C.so"), (TAGGED, "_C.abi3.so"), (TAGGED, "_C.so"),
    ("_C.so", OTHERS), ("_C.abi3.so", OTHERS),
)  # fmt: skip
FINDER = """
import importlib.util, os, sys
{table}
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        where = {lookup}
        return importlib.util.spec_from_file_location(name, where) if where else None
def install(*_):
    sys.meta_path.insert(0, Finder)
"""
TRUTH = """
import importlib, importlib.util, json, site, sys
before, finders = list(sys.path), list(sys.meta_path)
for folder in json.loads(sys.stdin.read()):
    known = set(sys.modules)
    sys.path[:], sys.meta_path[:] = before, finders
    importlib.invalidate_caches()
    site.addsitedir(folder)
    spec = importlib.util.find_spec("mine._C")
    print(json.dumps(spec and spec.origin), flush=True)
    for name in set(sys.modules) - known:
        del sys.modules[name]
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """A wrong library and a right one."""
    folder = tmp_path_factory.mktemp("built")
    return build(folder, [WRONG], name="w.so").read_bytes(), build(folder, [VOID], name="r.so").read_bytes()


def finder(site: Path, base: Path, line: str, module: str, table: str, lookup: str) -> None:
    """A module that puts a finder of its own before Python's, and the `.pth` file that calls it."""
    (site / f"{module}.pth").write_text(f"{line}\n")
    text = FINDER.format(table=table.format(base=base), lookup=lookup)
    (site / f"{module}.py").write_text(text + ("" if ".install" in line else "install()\n"))


def direct(site: Path, base: Path) -> Path:
    return site


def by_pth(text: str) -> Callable[[Path, Path], Path]:
    def way(site: Path, base: Path) -> Path:
        (site / "mine.pth").write_text(text.format(base=base, relative=os.path.relpath(base, site)))
        return base

    return way


def by_finder(line: str, module: str, table: str, lookup: str) -> Callable[[Path, Path], Path]:
    def way(site: Path, base: Path) -> Path:
        finder(site, base, line, module, table, lookup)
        return base

    return way


def linked(site: Path, base: Path) -> Path:
    (base / "mine").mkdir(parents=True)
    (site / "mine").symlink_to(base / "mine")
    return base


def egg(site: Path, base: Path) -> Path:
    (site / "easy-install.pth").write_text("./mine-1.0.egg\n")
    return site / "mine-1.0.egg"


def spread(site: Path, base: Path) -> Path:
    """A namespace package of two folders, of which the second holds the library."""
    (site / "mine").mkdir()
    (site / "mine.pth").write_text(f"{base}\n")
    return base


PACKAGE = "name == 'mine' and os.path.join(BASE, 'mine', '__init__.py')"
WAYS: dict[str, Callable[[Path, Path], Path]] = {
    "direct": direct,
    "absolute": by_pth("{base}\n"),
    "relative": by_pth("# more\n{relative}\n"),
    "a line that is run": by_pth("import sys; sys.path.insert(0, {base!r})\n".replace("{base!r}", "'{base}'")),
    "setuptools": by_finder(
        "import __editable___mine_finder; __editable___mine_finder.install()", "__editable___mine_finder",
        "MAPPING: dict[str, str] = {{'mine': '{base}/mine'}}", "name in MAPPING and MAPPING[name] + '/__init__.py'",
    ),
    "hatchling": by_finder(
        "import _editable_impl_mine", "_editable_impl_mine", "KNOWN = dict([('mine', '{base}/mine/__init__.py')])",
        "KNOWN.get(name)",
    ),
    "scikit-build": by_finder("import _mine_editable", "_mine_editable", "BASE = '{base}'", PACKAGE),
    "meson": by_finder("import _mine_editable_loader", "_mine_editable_loader", "BASE = '{base}'", PACKAGE),
    "reckoned": by_finder(
        "import _reckoned", "_reckoned", "BASE = os.path.join(os.path.dirname(__file__), *['..', 'elsewhere'])", PACKAGE,
    ),
    "linked": linked,
    "egg": egg,
    "spread": spread,
}  # fmt: skip


def passed(report: Report) -> bool:
    """Whether a place is called right, all together."""
    return bool(report.checked) and not report.findings and not report.errors


def test_what_python_would_import_is_what_is_judged(tmp_path: Path, built: tuple[bytes, bytes]) -> None:
    wrong, right = built
    sites: dict[str, tuple[Path, ...]] = {}
    for (way, place), names, turned in itertools.product(WAYS.items(), NAMES, (False, True)):
        if turned and len(names) == 1:
            continue
        top = tmp_path / str(len(sites))
        site = top / "site-packages"
        site.mkdir(parents=True)
        package = place(site, top / "elsewhere") / "mine"
        package.mkdir(parents=True, exist_ok=True)
        if way != "spread":
            (package / "__init__.py").touch()
        for name, data in zip(names, (right, wrong) if turned else (wrong, right), strict=False):
            (package / name).write_bytes(data)
        (site / "right.so").write_bytes(right)
        sites[f"{way}, {' beside '.join(names)}{', turned' if turned else ''}"] = (site, package)
    asked = json.dumps([str(site) for site, _ in sites.values()])
    said = subprocess.run([sys.executable, "-c", TRUTH], input=asked, capture_output=True, text=True, check=True)
    loaded = [json.loads(line) for line in said.stdout.splitlines()]
    assert len(loaded) == len(sites) > 100
    bad = {way: path for way, path in zip(sites, loaded, strict=True) if Path(path).read_bytes() == wrong}
    assert len(bad) > 60
    false = [way for way in bad if passed(survey.survey([str(sites[way][0])], require=[OP]))]
    assert not false


NAMED = (
    "_C.SO",
    "kernels.bin",
    "kernels",
    "libx.dylib",
    "x.so.debug",
    "data.npy",
)  # as torch.ops.load_library takes it


@pytest.mark.parametrize("place", ["folder", "wheel", "tree", "image"])
def test_a_library_of_any_name_is_judged(tmp_path: Path, built: tuple[bytes, bytes], place: str) -> None:
    wrong, right = built
    for name in NAMED:
        files = {f"{SITE}/mine/_C.so": right, f"{SITE}/mine/{name}": wrong}
        path = tmp_path / f"{name}.whl"
        if place == "folder":
            for at, data in files.items():
                (tmp_path / name / at).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / name / at).write_bytes(data)
            path = tmp_path / name
        elif place == "wheel":
            with zipfile.ZipFile(path, "w") as archive:
                for at, data in files.items():
                    archive.writestr(at, data)
        else:
            path.write_bytes(docker([tar(files)]) if place == "image" else tar(files))
        assert survey.survey([str(path)]).exit_code == 1, name


def test_programs_and_objects_are_no_trouble(tmp_path: Path, built: tuple[bytes, bytes]) -> None:
    (tmp_path / "_C.so").write_bytes(built[1])
    (tmp_path / "cut").write_bytes(built[0][:900])
    (tmp_path / "x.o").write_bytes(built[0][:16] + b"\1\0" + built[0][18:])
    (tmp_path / "python").symlink_to(sys.executable)
    report = survey.survey([str(tmp_path)], require=[OP])
    assert (report.exit_code, report.errors) == (0, ())


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("kind", ["docker", "oci"])
def test_each_of_several_images_is_judged(
    tmp_path: Path, built: tuple[bytes, bytes], kind: str, order: tuple[int, int]
) -> None:
    layers = [tar({f"{SITE}/mine/_C.so": built[number]}) for number in order]
    one, two = (docker([layer]) if kind == "docker" else oci([layer], "") for layer in layers)
    path = tmp_path / "both.tar"
    path.write_bytes(both(one, two, "manifest.json" if kind == "docker" else "index.json"))
    report = survey.survey([str(path)], require=[OP])
    assert [row.verdict.value for row in report.checked].count("wrong") == 1
    assert report.exit_code == 1


def both(one: bytes, two: bytes, index: str) -> bytes:
    """Two images in one archive, as `docker save a b` and images for two platforms are."""
    files: dict[str, bytes] = {}
    indices = []
    for data in (one, two):
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            members = {member.name: archive.extractfile(member) for member in archive}
        read = {name: file.read() for name, file in members.items() if file}
        indices.append(json.loads(read.pop(index)))
        files |= read
    joined = (
        indices[0] + indices[1]
        if isinstance(indices[0], list)
        else {"manifests": [row for one in indices for row in one["manifests"]]}
    )
    return tar(files | {index: json.dumps(joined).encode()})


def test_what_was_written_through_a_link_stays_when_the_link_goes(tmp_path: Path, built: tuple[bytes, bytes]) -> None:
    wrong, right = built
    ok = {f"{SITE}/ok/_C.so": right}
    through = tar(ok | {"opt/mine": f"->/{SITE}/mine".encode(), "opt/mine/_C.so": wrong})
    below = [tar(ok | {"opt/mine": f"->/{SITE}/mine".encode()}), tar({"opt/mine/_C.so": wrong})]
    gone = tar({"opt/.wh.mine": b""})
    folder = [*below[:1], tar({f"{SITE}/mine/_C.so": wrong}), tar({"opt/mine": None}), tar({"opt/mine/_C.so": right})]
    for number, layers in enumerate(([through, gone], [*below, gone], folder)):
        path = tmp_path / f"{number}.tar"
        path.write_bytes(docker(layers))
        assert survey.survey([str(path)], require=[OP]).exit_code == 1, number


def test_a_layer_that_is_no_tar_is_no_layer_less(tmp_path: Path, built: tuple[bytes, bytes]) -> None:
    image = oci([tar({f"{SITE}/mine/_C.so": built[1]}), built[0]], "")
    path = tmp_path / "i.tar"
    old = hashlib.sha256(built[0]).hexdigest().encode()
    with tarfile.open(fileobj=io.BytesIO(image)) as archive:
        read = {member.name: file.read() for member in archive if (file := archive.extractfile(member))}
    kinds = [name for name, data in read.items() if old in data and b"layers" in data]
    for name in kinds:  # the last layer's type is that of a file system
        head, _, tail = read[name].rpartition(b"layer.v1.tar")
        read[name] = head + b"layer.v1.erofs" + tail
        digest = hashlib.sha256(read[name]).hexdigest()
        read = {
            (f"blobs/sha256/{digest}" if at == name else at): data.replace(name[13:].encode(), digest.encode())
            for at, data in read.items()
        }
    inner = next(name for name, data in read.items() if b"manifests" in data and name != "index.json")
    digest = hashlib.sha256(read[inner]).hexdigest()
    read["index.json"] = read["index.json"].replace(inner[13:].encode(), digest.encode())
    read[f"blobs/sha256/{digest}"] = read.pop(inner)
    path.write_bytes(tar(read))
    (error,) = survey.survey([str(path)]).errors
    assert "erofs" in error.message


def test_a_member_of_a_type_that_nobody_knows_is_a_file(tmp_path: Path, built: tuple[bytes, bytes]) -> None:
    data = bytearray(tar({f"{SITE}/ok/_C.so": built[1], f"{SITE}/bad/_C.so": built[0]}))
    at = data.index(f"{SITE}/bad".encode())
    data[at + 156] = ord("Z")
    data[at + 148 : at + 156] = b" " * 8
    data[at + 148 : at + 156] = b"%06o\0 " % sum(data[at : at + 512])
    (tmp_path / "x.tar").write_bytes(data)
    assert survey.survey([str(tmp_path / "x.tar")]).exit_code == 1


@pytest.mark.parametrize("name", ["libwrong.so", "libdl-wrong.so", "libm.wrong.so"])
@pytest.mark.parametrize("through", [False, True])
def test_what_a_library_brings_is_read_or_named(tmp_path: Path, name: str, through: bool) -> None:
    folder = tmp_path / "deps"
    build(folder, [WRONG], name=name, flags=[f"-Wl,-soname,{name}"])
    last, flags = name, [f"-L{folder}", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN", "-Wl,-rpath,$ORIGIN/deps"]
    if through:
        build(folder, name="libthrough.so", flags=[*flags, "-Wl,-soname,libthrough.so", f"-l:{name}"], more="int x;")
        last = "libthrough.so"
    library = build(tmp_path, [VOID], name="_C.so", flags=[*flags, f"-l:{last}"])
    (error,) = survey.survey([str(library)]).errors
    assert name in error.message


TAKES = """
#include <stddef.h>
#include <stdint.h>
int aoti_torch_library_init_def(const char *, const char *, uint32_t, void **);
int aoti_torch_library_def(void *, const char *);
%s
__attribute__((constructor)) static void registers(void) {
  void *library;
  char text[300];
  aoti_torch_library_init_def("custom_esimd_kernels_vllm", "x.cpp", 1, &library);
  %s
}
"""
# What a library has of its own, by a name that a process has before, and what it registers with it.
TAKEN = {
    "getpid": ("int getpid(void) { return 0; }", "aoti_torch_library_def(library, getpid() ? WRONG : RIGHT);"),
    "strcpy": (
        "char *strcpy(char *to, const char *from) { size_t n = 0; do to[n] = RIGHT[n]; while (RIGHT[n++]); return to; }",
        "strcpy(text, WRONG); aoti_torch_library_def(library, text);",
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_function_that_every_process_has_is_not_the_librarys_own(tmp_path: Path, name: str) -> None:
    more = f"#define RIGHT {json.dumps(VOID)}\n#define WRONG {json.dumps(WRONG)}\n{TAKES % TAKEN[name]}"
    flags = ("-fno-builtin", "-O2", "-w")
    (error,) = survey.survey([str(build(tmp_path, more=more, flags=flags))]).errors
    assert f"a process has {name} before" in error.message
    bound = build(tmp_path, more=more, flags=(*flags, "-Wl,-Bsymbolic"), name="bound.so")  # to its own, for all time
    assert passed(survey.survey([str(bound)]))
