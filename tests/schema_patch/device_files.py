"""Device images as Intel's compilers write them, and libraries that carry them."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

PVC, G21, G31 = (12, 60, 7), (20, 1, 0), (20, 2, 0)


def zebin(kernels: Sequence[str], device: tuple[int, int, int] | None, *, body: bytes = b"\x61" * 64) -> bytes:
    """An ELF file of machine code: a section for each kernel, and notes that name the device."""
    notes = b""
    if device:
        number = device[0] << 22 | device[1] << 14 | device[2]
        for kind, value in ((1, 1271), (6, number)):
            notes += struct.pack("<III8sI", 8, 4, kind, b"IntelGT\0", value)
    sections = [(f".text.{name}", 1, body) for name in kernels] + [(".note.intelgt.compat", 7, notes)]
    return _elf(205, 1, sections)


def generic_ir(kernels: Sequence[str]) -> bytes:
    """SPIR-V as it lies in an archive of images."""
    return _elf(0, 0xFF02, [("SPIRV Object", 0xFF000009, spirv(kernels))])


def spirv(kernels: Sequence[str]) -> bytes:
    """A module with these entry points and nothing in them."""
    words = struct.pack("<5I", 0x07230203, 0x00010400, 0, 100, 0)
    words += struct.pack("<HHI", 17, 2, 4) + struct.pack("<HHII", 14, 3, 2, 2)
    for number, name in enumerate(kernels):
        text = name.encode() + b"\0" * (4 - len(name) % 4)
        words += struct.pack("<HHII", 15, 3 + len(text) // 4, 6, number + 10) + text
    return words + struct.pack("<HHII", 19, 2, 1, 0x00020013)[:8]


def archive(members: dict[str, bytes]) -> bytes:
    """A fat image: a member for each target, with padding between."""
    data = b"!<arch>\n"
    for index, (name, content) in enumerate(members.items()):
        for title, body in ((f"pad_{index}/", b" " * 8), (f"{name}/", content)):
            data += (
                f"{title:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(body):<10}`\n".encode() + body + b"\n" * (len(body) % 2)
            )
    return data


def library(
    folder: Path, images: Sequence[bytes], *, name: str = "libdev.so", section: str = "OFFLOAD_DEVICE_CODE",
    table: bool = True, more: str = "", flags: Sequence[str] = (),
) -> Path:  # fmt: skip
    """A library with images in a section, and the linker's table of them."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f'.section {section},"a",@progbits']
    for index, image in enumerate(images):
        (folder / f"{index}.img").write_bytes(image)
        lines += [".balign 16", f"image{index}:", f'.incbin "{folder / f"{index}.img"}"', f"end{index}:"]
    if table:
        lines.append('.section .tgtimg,"aw",@progbits')
        lines += [f".quad image{index}, end{index} - image{index}" for index in range(len(images))]
    assembly = "\\n".join(line.replace('"', '\\"') for line in lines)
    source = folder / f"{name}.c"
    source.write_text(f'__asm__("{assembly}\\n.text\\n");\n{more}\n')
    subprocess.run(["cc", "-shared", "-fPIC", *flags, str(source), "-o", folder / name], check=True)
    source.unlink()
    return folder / name


def _elf(machine: int, kind: int, sections: Sequence[tuple[str, int, bytes]]) -> bytes:
    names = b"\0"
    body = b""
    rows = [struct.pack("<IIQQQQIIQQ", *(0,) * 10)]
    for name, section, content in [*sections, (".shstrtab", 3, b"")]:
        at = len(names)
        names += name.encode() + b"\0"
        data = names if name == ".shstrtab" else content
        rows.append(struct.pack("<IIQQQQIIQQ", at, section, 0, 0, 64 + len(body), len(data), 0, 0, 1, 0))
        body += data
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", kind, machine, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64,
        len(rows), len(rows) - 1,
    )  # fmt: skip
    return header + body + b"".join(rows)
