"""Archives read in one go: trees, sdists, and images of Docker and OCI with layers and whiteouts."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from elf_files import ALIAS, OTHER, VOID, WRONG, build

from schema_patch.model import Report
from schema_patch.verify import survey

SITE = "usr/lib/python3/site-packages"
Files = dict[str, bytes | None]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("libraries")
    made = {"void": [VOID], "alias": [ALIAS], "wrong": [WRONG], "other": [OTHER]}
    found = {name: build(folder / name, texts).read_bytes() for name, texts in made.items()}
    found["nine"] = build(folder / "nine", [VOID], needed=("libsycl.so.9",)).read_bytes()
    return found


def tar(files: Files | list[tuple[str, bytes]]) -> bytes:
    """A tar archive; None is a directory, and bytes that begin with `->` or `=>` make a link."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items() if isinstance(files, dict) else files:
            member = tarfile.TarInfo(name)
            if data is None:
                member.type = tarfile.DIRTYPE
            elif data.startswith(b"=>"):
                member.type, member.linkname = tarfile.LNKTYPE, data[2:].decode()
            elif data.startswith(b"->"):
                member.type, member.linkname = tarfile.SYMTYPE, data[2:].decode()
            else:
                member.size = len(data)
            archive.addfile(member, io.BytesIO(data or b""))
    return buffer.getvalue()


def docker(layers: list[bytes], *, names: list[str] | None = None) -> bytes:
    names = names or [f"blobs/sha256/{hashlib.sha256(layer).hexdigest()}" for layer in layers]
    manifest = [{"Config": "blobs/sha256/c0", "RepoTags": ["kernels:1"], "Layers": names}]
    # The manifest comes last, as docker save writes it.
    return tar(
        {
            **dict(zip(names, layers, strict=True)),
            "blobs/sha256/c0": b"{}",
            "manifest.json": json.dumps(manifest).encode(),
        }
    )


def oci(layers: list[bytes], packing: str) -> bytes:
    def blob(data: bytes) -> dict[str, object]:
        digest = hashlib.sha256(data).hexdigest()
        files[f"blobs/sha256/{digest}"] = data
        return {"digest": f"sha256:{digest}", "size": len(data)}

    files: Files = {"oci-layout": b"{}"}
    rows = [{**blob(layer), "mediaType": f"application/vnd.oci.image.layer.v1.tar{packing}"} for layer in layers]
    manifest = blob(json.dumps({"layers": rows}).encode())
    attestation = blob(json.dumps({"layers": [{**blob(b"{}"), "mediaType": "application/vnd.in-toto+json"}]}).encode())
    inner = blob(json.dumps({"manifests": [manifest, attestation]}).encode())
    files["index.json"] = json.dumps({"manifests": [inner]}).encode()
    return tar(files)


def told(path: Path, data: bytes) -> Report:
    path.write_bytes(data)
    return survey.survey([str(path)])


def rows(report: Report) -> list[tuple[str, str]]:
    return [(row.location.path.partition(".tar/")[2], row.verdict.value.split(",")[0]) for row in report.checked]


def layers_of(libraries: dict[str, bytes]) -> list[bytes]:
    return [
        tar({f"{SITE}/mine/a.so": libraries["wrong"], f"{SITE}/mine/b.so": libraries["wrong"], "opt/x/c.so": libraries["wrong"],
             "opt/y/d.so": libraries["wrong"], f"{SITE}/mine-1.0.dist-info/RECORD": b"mine/a.so,,\n"}),
        tar({f"./{SITE}/mine/a.so": libraries["void"], f"{SITE}/mine/.wh.b.so": b"", "opt/.wh.x": b"", "opt/y/.wh..wh..opq": b"",
             "opt/y/e.so": libraries["alias"], f"{SITE}/mine-1.0.dist-info/RECORD": b"mine/a.so,,\n"}),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["docker", "old docker", "oci", "oci gzip", "oci zstd"])
def test_the_top_layer_counts(tmp_path: Path, libraries: dict[str, bytes], kind: str) -> None:
    layers = layers_of(libraries)
    packers: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstandard.compress}
    packing = kind.partition(" ")[2] if kind.startswith("oci") else ""
    if kind == "docker":
        data = docker(layers)
    elif kind == "old docker":
        data = docker(layers, names=["aa/layer.tar", "bb/layer.tar"])
    else:
        data = oci([packers.get(packing, bytes)(layer) for layer in layers], f"+{packing}" if packing else "")
    report = told(tmp_path / "image.tar", data)
    assert report.errors == ()
    assert rows(report) == [("opt/y/e.so", "right"), (f"{SITE}/mine/a.so", "right")]
    owners = {library["path"].rpartition("/")[2]: library["owner"] for library in report.facts["libraries"]}  # type: ignore[attr-defined]
    assert owners == {"a.so": "mine 1.0", "e.so": ""}


def test_an_image_is_all_there_is(tmp_path: Path, libraries: dict[str, bytes]) -> None:
    image = {"opt/k.so": libraries["nine"], "usr/lib/libsycl.so.8": b"->libsycl.so.8.0.0"}
    report = told(tmp_path / "i.tar", docker([tar(image)]))
    assert [f.code for f in report.failed] == ["SP201", "SP207"]
    assert "found libsycl.so.8" in report.failed[1].message
    image["usr/lib/libsycl.so.9"] = b"->libsycl.so.9.0.0"
    assert [f.code for f in told(tmp_path / "i.tar", docker([tar(image)])).findings] == ["SP201"]


@pytest.mark.parametrize("name", ["t.tar", "t.tar.gz", "t.tar.bz2", "t.tar.zst"])
def test_a_tree_in_a_tar(tmp_path: Path, libraries: dict[str, bytes], name: str) -> None:
    data = tar(
        {
            "root": None,
            "root/x.so.1": libraries["void"],
            "root/notes.txt": b"x",
            "root/script.so": b"INPUT(libm.so)" * 9,
        }
    )
    packers: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.compress,
        ".bz2": bz2.compress,
        ".zst": zstandard.compress,
    }
    report = told(tmp_path / name, packers.get(name[5:], bytes)(data))
    assert [(row.op, row.location.path) for row in report.checked] == [
        ("esimd_gemv_int4", f"{tmp_path}/{name}/root/x.so.1")
    ]
    assert report.exit_code == 0


def test_an_sdist_is_judged_by_its_source(tmp_path: Path) -> None:
    code = f'#include <torch/library.h>\nTORCH_LIBRARY(esimd_ops, m) {{ m.def("{WRONG}"); }}\n'.encode()
    files: Files = {"p-1.0/PKG-INFO": b"Name: p\n", "p-1.0/csrc/r.cpp": code, "p-1.0/csrc/x.cpp": b"int x;"}
    report = told(tmp_path / "p-1.0.tar.gz", gzip.compress(tar(files)))
    (finding,) = report.findings
    assert (finding.code, str(finding.location)) == ("SP101", f"{tmp_path}/p-1.0.tar.gz/p-1.0/csrc/r.cpp:2:37")
    assert report.exit_code == 1


def test_what_python_registers_in_an_sdist_is_judged_too(tmp_path: Path) -> None:
    code = f'import torch\nlib = torch.library.Library("esimd_ops", "DEF")\nlib.define("{WRONG}")\n'.encode()
    report = told(tmp_path / "p-1.0.tar.gz", gzip.compress(tar({"p-1.0/PKG-INFO": b"Name: p\n", "p-1.0/p/a.py": code})))
    (finding,) = report.findings
    assert (finding.code, str(finding.location)) == ("SP101", f"{tmp_path}/p-1.0.tar.gz/p-1.0/p/a.py:3:1")
    assert report.exit_code == 1


@pytest.mark.parametrize("target", ["root/.cache/x/_C.so", "var/cas/0a1b2c"])
@pytest.mark.parametrize("link", ["=>{}", "->/{}", "-> symlink in a folder"])
def test_links_lead_to_what_python_would_load(
    tmp_path: Path, libraries: dict[str, bytes], target: str, link: str
) -> None:
    bad = f"{SITE}/bad/_C.so"
    files: Files = {f"{SITE}/ok/_C.so": libraries["void"], target: libraries["wrong"]}
    layers = [files]
    if link.startswith("=>"):
        files[bad] = link.format(target).encode()
        folder, base = target.rsplit("/", 1)
        layers.append({f"{folder}/.wh.{base}": b""})  # which takes nothing from a hard link
    elif link.startswith("->/"):
        files[bad] = link.format(target).encode()
    else:
        files["opt/new"] = f"->/{target.rsplit('/', 1)[0]}".encode()
        files[bad] = f"->../../../../../opt/new/{target.rsplit('/', 1)[1]}".encode()
    report = told(tmp_path / "i.tar", docker([tar(layer) for layer in layers]))
    assert report.exit_code == 1
    if target.startswith("var") or link.startswith("=>"):
        assert f"{SITE}/bad/_C.so" in [path for path, _ in rows(report)]


def test_a_link_that_leads_nowhere_is_not_clean_where_something_is_required(
    tmp_path: Path, libraries: dict[str, bytes]
) -> None:
    image = docker([tar({f"{SITE}/ok/_C.so": libraries["void"], f"{SITE}/bad/_C.so": b"->/gone/x"})])
    assert told(tmp_path / "i.tar", image).exit_code == 0
    assert survey.survey([str(tmp_path / "i.tar")], require=("esimd_gemv_int4",)).exit_code == 2
    hard = docker([tar({f"{SITE}/ok/_C.so": libraries["void"], f"{SITE}/bad/_C.so": b"=>gone/x"})])
    assert told(tmp_path / "h.tar", hard).exit_code == 2


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_layers_compressed_in_parts(
    tmp_path: Path, libraries: dict[str, bytes], pack: Callable[[bytes], bytes]
) -> None:
    layer = tar({"ok.so": libraries["void"], "bad.so": libraries["wrong"]})
    end = b"\x50\x2a\x4d\x18\x04\0\0\0abcd" if pack is zstandard.compress else b""  # a frame to be skipped
    report = told(tmp_path / "i.tar", docker([pack(layer[:4096]) + pack(layer[4096:]) + end]))
    assert (report.errors, [path for path, _ in rows(report)]) == ((), ["bad.so", "ok.so"])


@pytest.mark.parametrize("keep", [0.5, 0.98])
@pytest.mark.parametrize("packer", [bytes, gzip.compress, zstandard.compress])
def test_a_cut_archive_is_an_error(
    tmp_path: Path, libraries: dict[str, bytes], keep: float, packer: Callable[[bytes], bytes]
) -> None:
    data = packer(docker(layers_of(libraries)).rstrip(b"\0"))
    report = told(tmp_path / "cut.tar", data[: int(len(data) * keep)])
    assert report.exit_code == 2
    assert report.errors


def test_an_archive_cut_between_two_members_is_an_error(tmp_path: Path, libraries: dict[str, bytes]) -> None:
    data = tar({"a.so": libraries["void"], "b.so": libraries["wrong"]})
    size = 512 + -len(libraries["void"]) % 512 + len(libraries["void"])
    report = told(tmp_path / "t.tar", data[:size])
    assert report.exit_code == 2
    assert "it was cut" in report.errors[0].message


def test_a_layer_must_have_the_hash_of_its_name(tmp_path: Path, libraries: dict[str, bytes]) -> None:
    layer = tar({"x.so": libraries["void"]})
    wrong = docker([layer], names=["blobs/sha256/" + "0" * 64])
    assert "the SHA-256 of its name" in told(tmp_path / "i.tar", wrong).errors[0].message
    manifest = json.dumps([{"Layers": ["blobs/sha256/" + "1" * 64]}]).encode()
    missing = tar({f"blobs/sha256/{hashlib.sha256(layer).hexdigest()}": layer, "manifest.json": manifest})
    assert "expected the layer blobs/sha256/1" in told(tmp_path / "i.tar", missing).errors[0].message
    for broken in (b"[", b"[{}]", b'{"a": 1}', b"[1]"):
        assert "manifest of an image" in told(tmp_path / "i.tar", tar({"manifest.json": broken})).errors[0].message


def test_a_damaged_library_in_a_layer(tmp_path: Path, libraries: dict[str, bytes]) -> None:
    layers = [
        tar({"x.so": libraries["void"][:-1], "y.so": b"\0" * 99, "z.whl": b"PK\3\4"}),
        tar({"ok.so": libraries["void"]}),
    ]
    report = told(tmp_path / "i.tar", docker(layers))
    assert report.exit_code == 2
    assert sorted(str(error.where).rpartition("/")[2] for error in report.errors) == ["x.so", "y.so"]
    assert report.facts["skipped"][0]["why"] == "a wheel inside an archive: not looked into"  # type: ignore[index]
    report = told(tmp_path / "i.tar", docker([*layers, tar({".wh.x.so": b"", ".wh.y.so": b""})]))
    assert report.exit_code == 0


@pytest.mark.parametrize("kind", ["image", "library", "wheel", "noise"])
def test_standard_input(tmp_path: Path, libraries: dict[str, bytes], kind: str) -> None:
    import zipfile

    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("p/_C.so", libraries["void"])
        archive.writestr("p-1.0.dist-info/RECORD", "p/_C.so,,\n")
    inputs = {
        "image": docker(layers_of(libraries)),
        "library": libraries["void"],
        "wheel": wheel.getvalue(),
        "noise": b"noise",
    }
    command = [
        sys.executable,
        "-c",
        "import sys; from schema_patch.commands import main as cli; sys.exit(cli.main_verify())",
        "-",
        "--format",
        "json",
    ]
    done = subprocess.run(command, input=inputs[kind], capture_output=True, check=False, cwd=tmp_path)
    report = json.loads(done.stdout)
    if kind == "noise":
        assert done.returncode == 2
        return
    assert done.returncode == 0, done.stderr
    paths = [row["path"] for row in report["checked"]]
    assert paths == {"image": ["standard input/opt/y/e.so", f"standard input/{SITE}/mine/a.so"], "library": ["standard input"],
                     "wheel": ["standard input/p/_C.so"]}[kind]  # fmt: skip
