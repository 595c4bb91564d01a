"""The front end of a SYCL runtime, called through its own C interface in a process of its own.

    python jit.py < JOB > ANSWER

The interface is declared in intel/llvm, sycl-jit/jit-compiler/include/RTC.h: compileSYCL takes a source text and
options, and gives device images with their property sets. A front end that runs out of memory, or meets a bug of its
own, ends this process and not the build. Uses the standard library alone.
"""

import ctypes
import json
import os
import sys
from collections.abc import Sequence
from ctypes import POINTER, c_bool, c_char_p, c_int, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

SPIRV = 2  # BinaryFormat; only releases from 2026 on are asked for a format


class File(ctypes.Structure):
    _fields_ = (("path", c_char_p), ("contents", c_char_p))


class View(ctypes.Structure):
    _fields_ = (("begin", c_void_p), ("size", c_size_t))


class Array(ctypes.Structure):
    _fields_ = (("values", c_void_p), ("size", c_size_t))

    def of(self, kind: Any) -> Any:
        """The elements, each a value of `kind` where the front end has it."""
        return (kind * self.size).from_address(self.values) if self.size else ()

    def bytes(self) -> bytes:
        return ctypes.string_at(self.values, self.size) if self.size else b""


class Property(ctypes.Structure):
    _fields_ = (("name", c_char_p), ("is_integer", c_bool), ("integer", c_uint32), ("data", Array))


class PropertySet(ctypes.Structure):
    _fields_ = (("name", c_char_p), ("values", Array))


class NativeImage(ctypes.Structure):
    _fields_ = (
        ("format", c_uint32), ("address_bits", c_uint64), ("start", POINTER(c_uint8)), ("size", c_uint64),
        ("symbols", Array), ("properties", Array),
    )  # fmt: skip


class NativeResult(ctypes.Structure):
    _fields_ = (("error", c_int), ("images", Array), ("options", c_char_p), ("bitcode", Array), ("log", c_char_p))


class Digest(ctypes.Structure):
    # C++ returns it in memory, as it has a destructor; the last field makes it too large for C to use registers.
    _fields_ = (("text", c_char_p), ("is_digest", c_bool), ("unused", c_uint64))


def main() -> None:
    job = json.load(sys.stdin)
    answer_to = os.fdopen(os.dup(1), "w")
    if "out" in job:  # what the front end prints is for a file
        os.dup2(os.open(Path(job["out"], "said"), os.O_CREAT | os.O_WRONLY), 1)
    library = ctypes.CDLL(job["library"])
    inputs = (File, View, View)
    library.calculateHash.restype, library.calculateHash.argtypes = Digest, (*inputs, c_uint32)
    library.compileSYCL.restype = NativeResult
    library.compileSYCL.argtypes = (*inputs, View, c_bool, c_uint32)
    source = File(job["name"].encode(), job["text"].encode("utf-8", "surrogateescape"))
    nothing = View(None, 0)
    if job["action"] == "digest":
        words = _words(job["words"])
        found = library.calculateHash(source, nothing, words, SPIRV)
        text = (found.text or b"").decode("utf-8", "replace")
        json.dump({"digest": text if found.is_digest else "", "log": "" if found.is_digest else text}, answer_to)
        return
    words = _words(job["words"])
    result = library.compileSYCL(source, nothing, words, nothing, job["bitcode"], SPIRV)
    answer = {"error": result.error, "log": (result.log or b"").decode("utf-8", "replace"), "images": []}
    out = Path(job["out"])
    if not result.error:
        answer["images"] = [_image(image, out / f"{i}.spv") for i, image in enumerate(result.images.of(NativeImage))]
        if job["bitcode"]:
            (out / "module.bc").write_bytes(result.bitcode.bytes())
    json.dump(answer, answer_to)


def _words(words: Sequence[str]) -> View:
    encoded = [word.encode("utf-8", "surrogateescape") for word in words]
    array = (c_char_p * len(encoded))(*encoded)
    view = View(ctypes.addressof(array), len(encoded))
    view.kept = array  # as long as the view is used
    return view


def _image(image: NativeImage, path: Path) -> dict[str, Any]:
    path.write_bytes(ctypes.string_at(image.start, image.size))
    return {
        "path": str(path),
        "format": image.format,
        "entries": [symbol.decode() for symbol in image.symbols.of(c_char_p)],
        "properties": [
            [group.name.decode(), [_property(value) for value in group.values.of(Property)]]
            for group in image.properties.of(PropertySet)
        ],
    }


def _property(value: Property) -> list[Any]:
    name = value.name.decode()
    return [name, value.integer] if value.is_integer else [name, value.data.bytes().hex()]


if __name__ == "__main__":
    main()
