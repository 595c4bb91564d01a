"""Device images -> the assembly of an object that gives them to the SYCL runtime when its library is loaded.

Sections, tables and property sets as icpx's offload wrapper writes them, so that tools that read its libraries read
these. The layout is that of intel/llvm: sycl/source/detail/compiler.hpp and sycl/doc/design/PropertySets.md. Releases
that have libsycl.so.8 write descriptors of version 2, those that have libsycl.so.9 of version 3, without a manifest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .frontend import Properties

OFFLOAD_KIND = 4  # SYCL
INTEGER, BYTES = 1, 2  # types of a property
COMPRESSED = 4  # format of an image that is a zstd frame; 0: the runtime looks at how it begins
SMALLEST = 512  # bytes: what is smaller is not compressed
# What icpx writes for its SPIR-V images: on Ponte Vecchio the driver may choose the size of the register file.
OPTIONS = {"spir64": "-ftarget-register-alloc-mode=pvc:-ze-intel-enable-auto-large-GRF-mode"}
SECTIONS = {"8": "__CLANG_OFFLOAD_BUNDLE__sycl-{target}", "9": "OFFLOAD_DEVICE_CODE"}
VERSIONS = {"8": 2, "9": 3}
# What the front end adds for its own runtime compilation and icpx leaves out for these targets: the names are those of
# the entries, and what the other says of a kernel is in its code and among the device requirements.
LEFT_OUT = frozenset({"SYCL/kernel names", "SYCL/program metadata"})


@dataclass(frozen=True, slots=True)
class Carried:
    """One image as a library carries it."""

    target: str  # spir64 or spir64_gen
    data: bytes
    entries: tuple[str, ...]
    properties: Properties


def assembly(images: Sequence[Carried], major: str, compress: int | None, work: str) -> str:
    """Assembly text; the images themselves are written to files in `work`. `compress`: zstd's level, None for not."""
    writer = _Writer(VERSIONS[major], SECTIONS[major])
    for index, image in enumerate(images):
        data, form = image.data, 0
        if compress is not None and len(data) >= SMALLEST:
            import zstandard

            data, form = zstandard.ZstdCompressor(level=compress).compress(data), COMPRESSED
        path = os.path.join(work, f"{index}.image")
        Path(path).write_bytes(data)
        writer.image(index, image, path, form)
    return "\n".join(writer.finish(len(images))) + "\n"


class _Writer:
    """Collects the parts of the tables; each string is there once."""

    def __init__(self, version: int, section: str) -> None:
        self.version = version
        self.section = section
        self.strings: dict[str, str] = {}
        self.constants: list[str] = []
        self.code: list[str] = []
        self.tables: list[str] = []
        self.binaries: list[str] = []
        self.places: list[str] = []
        self.symbols: list[str] = []

    def image(self, index: int, image: Carried, path: str, form: int) -> None:
        name = f".Limage{index}"
        section = self.section.format(target=image.target)
        self.code += [
            f'.section {section},"a",@progbits',
            ".p2align 4",
            f"{name}:",
            f'.incbin "{path}"',
            f"{name}_end:",
        ]
        entries, entries_end = self._entries(index, image.entries)
        sets, sets_end = self._sets(index, image.properties)
        text = [self._text(image.target), self._text(OPTIONS.get(image.target, "")), self._text("")]
        manifest = ["0", "0"] if self.version < 3 else []
        pointers = [*text, *manifest, name, f"{name}_end", entries, entries_end, sets, sets_end]
        self.binaries += [f".short {self.version}", f".byte {OFFLOAD_KIND}", f".byte {form}", ".zero 4",
                          *(f".quad {pointer}" for pointer in pointers)]  # fmt: skip
        self.places += [f".quad {name}", f".quad {name}_end-{name}"]
        self.symbols += [f".asciz {quoted(f'sycl-{image.target}-unknown-unknown.{entry}')}" for entry in image.entries]

    def finish(self, count: int) -> Iterator[str]:
        yield '.file "offload.wrapper.object"'
        yield from self.code
        yield '.section .rodata,"a",@progbits'
        for text, label in self.strings.items():
            yield f"{label}: .asciz {quoted(text)}"
        yield from self.constants
        yield '.section .data.rel.ro,"aw",@progbits'
        yield ".p2align 3"
        yield from self.tables
        yield from self._object(".sycl_offloading.device_images", self.binaries)
        descriptor = [".short 1", f".short {count}", ".zero 4", '.quad ".sycl_offloading.device_images"',
                      ".quad 0", ".quad 0"]  # fmt: skip
        yield from self._object(".sycl_offloading.descriptor", descriptor)
        yield from ('.section .tgtimg,"aw",@progbits', ".p2align 4", *self.places)
        yield from ('.section .tgtsym,"",@progbits', *self.symbols)
        yield '.section .text.startup,"ax",@progbits'
        for name, call, where in (
            ("sycl.descriptor_reg", "__sycl_register_lib", ".init_array.1"),
            ("sycl.descriptor_unreg", "__sycl_unregister_lib", ".fini_array.1"),
        ):
            yield from (f".type {name},@function", f"{name}:", 'leaq ".sycl_offloading.descriptor"(%rip), %rdi',
                        f"jmp {call}@PLT", f".size {name}, .-{name}")  # fmt: skip
            kind = "init_array" if "init" in where else "fini_array"
            yield from (f'.pushsection {where},"aw",@{kind}', ".p2align 3", f".quad {name}", ".popsection")
        yield '.section .note.GNU-stack,"",@progbits'

    def _object(self, name: str, rows: Sequence[str]) -> Iterator[str]:
        yield from (f'.type "{name}",@object', f'"{name}":', *rows, f'.size "{name}", .-"{name}"')

    def _entries(self, index: int, names: Sequence[str]) -> tuple[str, str]:
        label = f".Lentries{index}"
        rows = [line for name in names for line in (".quad 0", f".quad {self._text(name)}", ".quad 0", ".long 0, 0")]
        self.tables += [f"{label}:", *rows, f"{label}_end:"]
        return label, f"{label}_end"

    def _sets(self, index: int, groups: Properties) -> tuple[str, str]:
        rows = []
        for number, (group, values) in enumerate(groups):
            if group in LEFT_OUT:
                continue
            label = f".Lproperties{index}_{number}"
            self.tables.append(f"{label}:")
            for name, value in values:
                self.tables += self._property(name, value)
            self.tables.append(f"{label}_end:")
            rows += [f".quad {self._text(group)}", f".quad {label}", f".quad {label}_end"]
        label = f".Lsets{index}"
        self.tables += [f"{label}:", *rows, f"{label}_end:"]
        return label, f"{label}_end"

    def _property(self, name: str, value: int | bytes) -> list[str]:
        """An integer is kept where the size of other values is."""
        if isinstance(value, int):
            return [f".quad {self._text(name)}", ".quad 0", f".quad {INTEGER}", f".quad {value}"]
        label = f".Lbytes{len(self.constants)}"
        self.constants.append(f"{label}: " + (f".byte {','.join(map(str, value))}" if value else ".byte 0"))
        return [f".quad {self._text(name)}", f".quad {label}", f".quad {BYTES}", f".quad {len(value)}"]

    def _text(self, text: str) -> str:
        return self.strings.setdefault(text, f".Lstring{len(self.strings)}")


def quoted(text: str) -> str:
    """A string of the assembler."""
    shown = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:03o}" for b in text.encode())
    return f'"{shown}"'
