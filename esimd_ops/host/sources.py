"""What of a tree is compiled for the host: kernels, what registers them, and the helpers that these may need.

Knows what a source announces in its lines: namespaces, Python modules, sub-group widths, includes. Parses no C++ beyond
that, and runs nothing.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from schema_patch.model import ToolError
from schema_patch.text.files import walk

HOST_SUFFIXES = (".cc", ".cpp", ".cxx")
HEADERS = (".h", ".hpp", ".hh", ".inc", ".inl")
NO_KERNELS = {"build", "dist", "tests", "test"}  # what earlier builds left, and what registers for itself
EXTENSION = "TORCH_EXTENSION_NAME"  # the build's name for a module: here its file's

_START = r"^[ \t]*"
_NAME = r"\s*\(\s*(\w+(?:\s*\([^()]*\))?)"  # a word, or a macro that joins several to one
_REGISTRATION = re.compile(rf"{_START}(?:STABLE_)?TORCH_LIBRARY(?:_FRAGMENT|_IMPL|_EXPAND|_IMPL_EXPAND)?{_NAME}", re.M)
_DEFINITION = re.compile(rf"{_START}(?:STABLE_)?TORCH_LIBRARY(?:_FRAGMENT|_EXPAND)?{_NAME}", re.M)
_MODULE = re.compile(rf"{_START}(?:PYBIND11_MODULE|REGISTER_EXTENSION){_NAME}", re.M)
_PYBIND = re.compile(r"\bPYBIND11_MODULE\b|\bpybind11\b|\bpy::")
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
_INCLUDE_ANY = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)
_TORCH = re.compile(r"^\s*#\s*include\s*[<\"](?:ATen|c10|torch)/", re.M)
_KERNELS = re.compile(r"\bsycl::|\b(?:at|torch|c10)::|SYCL_EXTERNAL|SYCL_ESIMD")
_SUB_GROUP = re.compile(r"\b(?:\w*reqd_)?sub_group_size\s*(?:\(|<)\s*([\w:]+)\s*[)>]")
_CONSTANT = r"(?:\b(?:constexpr|const|enum)\b[\w\s:<>]*\b{0}\s*=|#\s*define\s+{0}\b|\b\w+\s+{0}\s*=)\s*\(?\s*([\w:]+)"


@dataclass(frozen=True)
class HostSource:
    """One C++ file of a tree.

    name        its path within the tree
    extension   what TORCH_EXTENSION_NAME is for it: its file's name, with its folders' where another is called alike
    namespaces  torch.ops namespaces that it defines or implements operators of
    defines     those of them whose schemas it holds
    modules     Python modules that it is
    helper      it names neither SYCL nor torch: compiled, but missed only where a symbol of it is
    """

    path: Path
    name: str
    extension: str
    namespaces: tuple[str, ...]
    defines: tuple[str, ...]
    modules: tuple[str, ...]
    pybind: bool
    helper: bool

    @property
    def registers(self) -> bool:
        return bool(self.namespaces or self.modules)


def _read(path: Path, root: Path, alone: bool) -> HostSource:
    text = path.read_text("utf-8", "replace")
    inner = path.relative_to(root).with_suffix("")
    extension = path.stem if alone else "_".join(inner.parts)

    def names(pattern: re.Pattern[str]) -> tuple[str, ...]:
        found = ("".join(re.findall(r"\w+", name.partition("(")[2] or name)) for name in pattern.findall(text))
        return tuple(dict.fromkeys(name.replace(EXTENSION, extension) for name in found))

    return HostSource(
        path=path,
        name=path.relative_to(root).as_posix(),
        extension=extension,
        namespaces=names(_REGISTRATION),
        defines=names(_DEFINITION),
        modules=names(_MODULE),
        pybind=bool(_PYBIND.search(text)),
        helper=path.suffix != ".sycl" and not any(p.search(text) for p in (_KERNELS, _TORCH, _REGISTRATION, _MODULE)),
    )


def sources(tree: Path, only: Sequence[str] = ()) -> tuple[HostSource, ...]:
    """The C++ sources of a tree, in its order. Raises ToolError where none is a kernel or registers anything."""
    if not tree.is_dir():
        raise ToolError("no such directory", str(tree))
    paths: list[Path] = []
    for folder, folders, names in walk(str(tree)):
        folders[:] = [name for name in folders if name not in NO_KERNELS]
        paths += (Path(folder, name) for name in names if name.endswith((".sycl", *HOST_SUFFIXES)))
    stems = Counter(path.stem for path in paths)
    found = [_read(path, tree, stems[path.stem] == 1) for path in paths]
    kernels = [source for source in found if not source.helper]
    if not any(source.registers or source.path.suffix == ".sycl" for source in kernels):
        raise ToolError(
            "expected .sycl sources or C++ files with TORCH_LIBRARY or PYBIND11_MODULE, found neither", str(tree)
        )
    chosen = [s for s in found if not only or any(fnmatch.fnmatch(s.name, pattern) for pattern in only)]
    if not any(not source.helper for source in chosen):
        raise ToolError(f"none of {len(kernels)} sources matches {', '.join(only)}", str(tree))
    return tuple(chosen)


def include_folders(tree: Path, files: Iterable[Path]) -> tuple[Path, ...]:
    """Where the headers lie that the sources include by a name that is not relative to themselves."""
    headers = [Path(folder, name) for folder, _, names in walk(str(tree)) for name in names if name.endswith(HEADERS)]
    folders: dict[Path, None] = {}
    for path in [*files, *headers]:
        for name in _INCLUDE.findall(path.read_text("utf-8", "replace")):
            if (path.parent / name).exists():
                continue
            for header in headers:
                if header.as_posix().endswith("/" + name):
                    folders[Path(header.as_posix()[: -len(name) - 1])] = None
                    break
    return tuple(folders)


def read_with_headers(path: Path, folders: Sequence[Path]) -> str:
    """A source and the headers of the tree that it includes, one after the other."""
    pending, known, texts = [path], {path}, []
    while pending:
        one = pending.pop()
        text = one.read_text("utf-8", "replace")
        texts.append(text)
        for name in _INCLUDE_ANY.findall(text):
            found = next((f / name for f in (one.parent, *folders) if (f / name).is_file()), None)
            if found and found not in known:
                known.add(found)
                pending.append(found)
    return "\n".join(texts)


def uses_torch(text: str) -> bool:
    return bool(_TORCH.search(text))


def sub_groups(text: str) -> tuple[list[int], list[str]]:
    """The widths of sub-groups that kernels ask for, and the names of those whose number is not in the text."""
    widths, unknown, pending, known = set[int](), set[str](), _SUB_GROUP.findall(text), set[str]()
    while pending:
        word = pending.pop()
        name = word.rpartition(":")[2]
        if name.isdecimal():
            widths.add(int(name))
        elif name not in known:
            known.add(name)
            found = [value.rstrip("uUlL") for value in re.findall(_CONSTANT.format(name), text)]
            pending += found
            unknown |= set() if found else {word}
    return sorted(widths), sorted(unknown)
