"""A command line of icpx's shape -> what is to be done, as a value. Runs nothing.

Every option is known by name with the parts of the build that it is for, or it is refused: an option that is ignored
builds something else than was asked for.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from schema_patch.model import ToolError

from .known import ONE, REFUSED, TWO, For

SOURCES = frozenset({".cpp", ".cc", ".cxx", ".c++", ".C", ".cp", ".sycl"})
OBJECTS = frozenset({".o", ".obj", ".a", ".so"})
TARGETS = ("spir64", "spir64_gen")


class Action(Enum):
    COMPILE = "compile"
    DEVICE_LINK = "device link"
    LINK = "link"
    VERSION = "version"


@dataclass(frozen=True, slots=True)
class Compilation:
    """What a command line asks for. Words keep their order, in which include folders are searched."""

    action: Action = Action.LINK
    sycl: bool = False
    sources: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()  # and, in their order, what is for the linker
    output: str = ""
    both: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    device: tuple[str, ...] = ()
    host_only: tuple[str, ...] | None = None  # of -fsycl-host-compiler-options, in the place of `both` and `host`
    targets: tuple[str, ...] = ("spir64",)
    devices: tuple[str, ...] = ()  # what machine code is made for, as ocloc calls it
    backend: tuple[str, ...] = ()  # further options for ocloc's compiler
    compress: bool = False
    level: int = 10
    depfile: str | None = None  # empty: beside the object
    depnames: tuple[str, ...] = ()
    system_depends: bool = True
    phony: bool = False
    jobs: int = 0
    dry: bool = False


@dataclass(slots=True)
class _Reading:
    parts: dict[For, list[str]] = field(default_factory=lambda: {part: [] for part in For})
    sources: list[str] = field(default_factory=list)
    said: list[tuple[str, str]] = field(default_factory=list)  # of the driver: name, value
    language: str = ""


def parse(argv: Sequence[str]) -> Compilation:
    """Raises ToolError for what is not known, with its name."""
    reading = _Reading()
    words = iter(argv)
    for word in words:
        _word(word, words, reading)
    if not argv:
        raise ToolError("expected options and source files, found none: `--version` says what this is")
    plan = _driver(reading)
    if plan.action is not Action.VERSION and not (reading.sources or reading.parts[For.LINK]):
        raise ToolError("no input files")
    return replace(
        plan, sources=tuple(reading.sources), objects=tuple(reading.parts[For.LINK]),
        both=tuple(reading.parts[For.BOTH]), host=tuple(reading.parts[For.HOST]),
        device=tuple(reading.parts[For.DEVICE]),
    )  # fmt: skip


def _word(word: str, words: Iterator[str], into: _Reading) -> None:
    if not word.startswith("-") or word == "-":
        suffix = os.path.splitext(word)[1]
        if into.language == "c++" or suffix in SOURCES:
            into.sources.append(word)
        elif suffix in OBJECTS or re.search(r"\.so[.\d]*$", word):
            into.parts[For.LINK].append(word)
        else:
            raise ToolError(f"expected C++ or SYCL source or an object file, found {word}; -x c++ says it is source")
        return
    if word in REFUSED:
        raise ToolError(f"option {word} is refused: {REFUSED[word]}")
    for part, names in TWO:
        for name in names:
            if word == name or (name.startswith("-Xsycl-target") and word.startswith(f"{name}=")):
                _sort(part, word, _value(word, words), into)
                return
    for part, pattern in ONE:
        if re.fullmatch(pattern, word, re.DOTALL):
            _sort(part, word, None, into)
            return
    raise ToolError(f"option {word} is not known here, and nothing that is not understood is built")


def _value(name: str, words: Iterator[str]) -> str:
    value = next(words, None)
    if value is None:
        raise ToolError(f"option {name} expects a value, and is the last word")
    return value


def _sort(part: For, word: str, value: str | None, into: _Reading) -> None:
    if part is For.DRIVER:
        if word in ("-x", "-xc++"):
            if value not in (None, "c++", "none"):
                raise ToolError(f"option -x: expected c++, found {value}")
            into.language = value or "c++"
        else:
            into.said.append((word, value or ""))
        return
    # The front end reads option names of another compiler driver too, and takes -O3 for a file of that name.
    place = into.parts[part]
    if word.startswith("-Xsycl-target-frontend"):
        place += shlex.split(value or "")
    else:
        place += [word] if value is None else [word, value]


ACTIONS = {"-c": Action.COMPILE, "-fsycl-link": Action.DEVICE_LINK, "--version": Action.VERSION}


def _driver(reading: _Reading) -> Compilation:
    plan = Compilation()
    backend: list[str] = []
    for word, value in reading.said:
        if word.startswith("-Xs") and word != "-Xspirv-translator":
            backend += _for_ocloc(word, value)
        else:
            plan = replace(plan, **_asked(word, value, plan))
    return _offline(plan, backend)


def _asked(word: str, value: str, plan: Compilation) -> dict[str, Any]:
    """What one word changes of the plan; nothing, where it asks for what is so anyhow."""
    name, _, joined = word.partition("=")
    match name.replace("--", "-"):
        case "-c" | "-fsycl-link" | "-version":
            return {"action": ACTIONS[name]}
        case "-fsycl":
            return {"sycl": True}
        case "-fsycl-targets":
            return {"targets": tuple(joined.split(","))}
        case "-fsycl-host-compiler-options":
            return {"host_only": _host_words(joined)}
        case "-offload-compress" | "-no-offload-compress":
            return {"compress": "no-" not in word}
        case "-offload-compression-level":
            return {"level": int(joined)}
        case "-fsycl-max-parallel-link-jobs":
            return {"jobs": int(joined)}
        case "-MD" | "-MMD":
            return {"depfile": plan.depfile or "", "system_depends": word == "-MD"}
        case "-MF":
            return {"depfile": value}
        case "-MT" | "-MQ":
            return {"depnames": (*plan.depnames, value)}
        case "-MP":
            return {"phony": True}
        case "-###":
            return {"dry": True}
        # Extensions that it may use: what code needs and the front end does not write is refused where it is compiled.
        case "-Xspirv-translator" if not re.fullmatch(r"-spirv-ext=\+\w+(,\+\w+)*", value):
            raise ToolError(f"option {word}: expected -spirv-ext=+NAME,…, found {value}")
    return {"output": value or word[2:]} if word.startswith("-o") else {}


def _for_ocloc(word: str, value: str) -> Sequence[str]:
    """Words of -Xs, -XsOPTION and of -Xsycl-target-backend for the target that has machine code."""
    if word == "-Xsycl-target-linker":
        raise ToolError(f"option {word} is refused: the offline compiler links one module at a time")
    if not word.startswith("-Xsycl"):
        return shlex.split(value if word == "-Xs" else f"-{word[3:]}")
    target = word.partition("=")[2]
    if target in ("", "spir64_gen") or target.startswith("intel_gpu_"):
        return shlex.split(value)
    if target not in TARGETS:
        raise ToolError(f"option {word}: expected one of {', '.join(TARGETS)}, found {target}")
    return ()


def _offline(plan: Compilation, backend: Sequence[str]) -> Compilation:
    """The devices and options that ocloc is given, from the words for it; `-device X` and `-options "…"` are known."""
    devices: list[str] = []
    options: list[str] = []
    words = iter(backend)
    for word in words:
        if word == "-device":
            devices += [name for name in _value("-Xs -device", words).split(",") if name]
        elif word in ("-options", "-internal_options"):
            options += shlex.split(_value(f"-Xs {word}", words))
        elif re.fullmatch(r"-(doubleGRF|vc-codegen|cl-.*|ze-.*|igc_opts.*|Xfinalizer|library-compilation|g)", word):
            options.append(word)
        else:
            raise ToolError(f"option -Xs {word} is not known here: -device and -options are")
    for target in plan.targets:
        if target.startswith("intel_gpu_"):
            devices.append(target.removeprefix("intel_gpu_").replace("_", "-"))
        elif target not in TARGETS:
            raise ToolError(f"option -fsycl-targets: expected spir64, spir64_gen or intel_gpu_*, found {target!r}")
    return replace(plan, devices=tuple(dict.fromkeys(devices)), backend=tuple(options))


def _host_words(text: str) -> tuple[str, ...]:
    """The words of -fsycl-host-compiler-options, quoted once more than for the shell.

    torch up to 2.8 quotes them twice, as releases of icpx before 2025.2 have asked for.
    """
    reading = _Reading()
    twice = '"' in text and not re.search(r'(?<!\\\\)"', text)
    words = iter(shlex.split(text.replace(r'\\"', r"\"") if twice else text))
    for word in words:
        _word(word, words, reading)
    # setuptools counts -c among its compiler's options.
    odd = [*reading.parts[For.DEVICE], *(word for word, _ in reading.said if word != "-c"), *reading.sources]
    if odd:
        raise ToolError(f"option -fsycl-host-compiler-options: expected options of a host compiler, found {odd[0]}")
    return (*reading.parts[For.BOTH], *reading.parts[For.HOST])
