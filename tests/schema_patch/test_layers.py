"""Links across the layers of an image: what a container would load, against what is read of the archive.

The truth is a folder that the layers are laid into one after the other, as a container's runtime does it.
"""

from __future__ import annotations

import io
import os
import random
import shutil
from pathlib import Path

from test_archives import SITE, docker, tar

from schema_patch.elf.reader import ElfFacts
from schema_patch.installed import archives

FOLDERS = (f"{SITE}/a", f"{SITE}/b", "opt/store", "var/cas")
NAMES = ("_C.so", "_D.so", "blob")
Files = list[tuple[str, bytes]]  # in the order of the tar, in which a path may be there twice


def content(number: int) -> bytes:
    return b"\x7fELF" + b"%08d" % number


def drawn(chance: random.Random) -> list[Files]:
    """Up to four layers with files, links to what may be anywhere, and what takes away."""
    layers: list[Files] = []
    made: list[str] = []
    for depth in range(chance.randint(1, 4)):
        files: Files = []
        for number in range(chance.randint(1, 5)):
            path = f"{chance.choice(FOLDERS)}/{chance.choice(NAMES)}"
            other = chance.choice(made or [path])
            made.append(path)
            folder, base = path.rsplit("/", 1)
            kind = chance.randrange(9)
            if kind < 2 or (kind in (5, 6, 7) and not depth):
                files.append((path, content(100 * depth + number)))
            elif kind == 8:
                files.append((f"{chance.choice(('./', '/', 'opt/../'))}{path}", content(100 * depth + number)))
            elif kind == 7:  # a folder, or what was in its place, becomes a link
                files.append((folder, f"->/{chance.choice([one for one in FOLDERS if one != folder])}".encode()))
            elif kind == 6:
                files.append((f"{folder}/.wh..wh..opq", b""))
            elif kind == 2:
                files.append((path, f"=>{other}".encode()))
            elif kind == 3:
                files.append((path, f"->/{other}".encode()))
            elif kind == 4:
                files.append((path, f"->{os.path.relpath(other, folder)}".encode()))
            else:
                files.append((f"{folder}/.wh.{base}", b""))
        layers.append(files)
    return layers


def laid(root: Path, layers: list[Files]) -> bool:
    """Lays the layers into a folder; False where a runtime would refuse them."""
    for files in layers:
        for path, _ in files:
            folder, base = path.rsplit("/", 1)
            if base == ".wh..wh..opq":
                if (root / folder).is_symlink():
                    return False  # runtimes differ
                shutil.rmtree(root / folder, ignore_errors=True)
            elif base.startswith(".wh."):
                (root / folder / base[4:]).unlink(missing_ok=True)
        for path, data in files:
            target = root / os.path.normpath(path).lstrip("/")
            if target.name.startswith(".wh."):
                continue
            if target.parent.is_symlink() and not target.parent.is_dir():
                return False
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            elif target.is_symlink() or target.exists():
                target.unlink()
            if data and data.startswith(b"=>"):
                source = root / data[2:].decode()
                if not source.exists() or source.is_symlink():
                    return False
                os.link(source, target)
            elif data and data.startswith(b"->"):
                place = data[2:].decode()
                target.symlink_to(f"{root}{place}" if place.startswith("/") else place)
            else:
                target.write_bytes(data or b"")
    return True


def loadable(root: Path) -> dict[str, bytes]:
    """What Python may load there: by path, the content behind links."""
    paths = [path for folder in FOLDERS[:2] for path in (root / folder).glob("*.so")]
    return {str(path.relative_to(root)): path.read_bytes() for path in paths if path.exists()}


def read(path: str, where: str) -> ElfFacts:
    """The facts of a file that is no library: its content in the place of a run path."""
    data = Path(path).read_bytes()
    return ElfFacts(where, "x86-64", len(data), (), data.decode("latin-1"), False, ())


def test_what_a_container_would_load_is_what_is_read(tmp_path: Path) -> None:
    chance, links = random.Random(1), 0
    for number in range(200):
        root, layers = tmp_path / str(number), drawn(chance)
        root.mkdir()
        while not laid(root, layers):
            shutil.rmtree(root)
            root.mkdir()
            layers = drawn(chance)
        stream = io.BufferedReader(io.BytesIO(docker([tar(files) for files in layers])))
        found = archives.find(stream, "image", read)
        told = {one.key: found.facts[one.path].runpath.encode("latin-1") for one in found.libraries}
        for path, data in loadable(root).items():
            behind = os.path.relpath(os.path.realpath(root / path), root)
            links += behind != path or os.stat(root / path).st_nlink > 1
            assert data in told.values(), (path, layers)
        assert not found.errors, layers
        shutil.rmtree(root)
    assert links > 80
