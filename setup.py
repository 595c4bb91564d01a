"""Chooses how the native extension `esimd_ops._C` is built, and with it what the package depends on.

All else about the package is in pyproject.toml.

    none  pure Python: no torch, no C++ compiler, or no SYCL runtime
    host  g++ and the SYCL runtime of the PyPI package intel-sycl-rt; operators run on CPU tensors
    xpu   torch with XPU and icpx; kernels are compiled ahead of time for TORCH_XPU_ARCH_LIST (bmg unless set)

ESIMD_OPS_BUILD=none|host|xpu forces one of them.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent
TOOLCHAIN = "2025.3"  # the oneAPI release whose libsycl.so.8 and compiler front end the sources are written for
RUNTIME = "libsycl.so.8"
REGISTRATION = runpy.run_path(str(ROOT / "csrc/registration.py"))
MODES = ("xpu", "host", "none")
# torch is not among them in a pure build: which build of it is installed is never a resolver's choice.
DEPENDENCIES = (
    "click>=8.1",
    "iced-x86>=1.21",
    "lief>=0.16",
    "msgspec>=0.19",
    "pyelftools>=0.31",
    "pyyaml>=6",
    "rich>=13",
    "tomli>=2; python_version < '3.11'",
    "tree-sitter==0.26.1",
    "tree-sitter-cpp==0.23.4",
    "zstandard>=0.22",
)


class Environment(NamedTuple):
    """What the machine offers; None where it offers nothing."""

    torch: str | None = None  # version
    site_packages: str | None = None  # where torch and its headers are
    torch_has_xpu: bool = False
    cxx: str | None = None
    icpx: str | None = None  # version
    sycl_rt: str | None = None  # version
    sycl_include: str | None = None
    sycl_library: str | None = None
    forced: str | None = None


class BuildPlan(NamedTuple):
    """How to build, as data."""

    mode: str
    reason: str
    dependencies: tuple[str, ...] = DEPENDENCIES
    sources: tuple[str, ...] = ()
    macros: tuple[tuple[str, str | None], ...] = ()
    include_dirs: tuple[str, ...] = ()
    cxx_args: tuple[str, ...] = ()
    sycl_args: tuple[str, ...] = ()
    library_dirs: tuple[str, ...] = ()
    link_args: tuple[str, ...] = ()


def lacks(env: Environment, mode: str) -> str | None:
    """Why `mode` cannot be built here, or None."""
    if mode == "none":
        return None
    if env.torch is None:
        return "torch is not installed"
    if env.cxx is None:
        return "no C++ compiler was found"
    if mode == "xpu":
        if not env.torch_has_xpu:
            return "this torch has no XPU support"
        if not (env.icpx or "").startswith(TOOLCHAIN):
            return f"icpx {TOOLCHAIN}.x is needed, found {env.icpx or 'none'}"
    elif not (env.sycl_rt or "").startswith(TOOLCHAIN) or not env.sycl_include:
        return f"intel-sycl-rt {TOOLCHAIN}.x is needed, found {env.sycl_rt or 'none'}"
    return None


def build_plan(env: Environment) -> BuildPlan:
    """Choose a mode and say why. A forced mode that cannot be built is a ValueError, never another mode."""
    if env.forced and env.forced not in MODES:
        raise ValueError(f"ESIMD_OPS_BUILD: expected one of {', '.join(MODES)}, found {env.forced!r}")
    if env.forced and (reason := lacks(env, env.forced)):
        raise ValueError(f"ESIMD_OPS_BUILD={env.forced}, but {reason}")

    mode = env.forced or next(mode for mode in MODES if lacks(env, mode) is None)
    refused = [f"not {other}: {lacks(env, other)}" for other in MODES[: MODES.index(mode)]]
    reason = "ESIMD_OPS_BUILD asks for it" if env.forced else "; ".join(refused) or "torch with XPU and icpx found"
    if mode == "none":
        return BuildPlan(mode, reason)

    host_side = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("csrc/**/*.cpp"))
    device_side = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("csrc/*/*.sycl"))
    plan = BuildPlan(
        mode,
        reason,
        sources=(REGISTRATION["WRITTEN"], *host_side),
        macros=(("ESIMD_OPS_KERNEL_SOURCES_DIGEST", f'"{kernel_sources_digest()}"'),),
        include_dirs=(str(ROOT / "csrc"), str(ROOT)),
        # Host code checks and launches: the kernels do the work. -g0: the interpreter may ask for debug information.
        cxx_args=("-O1", "-g0", "-Wall", "-Wextra", *path_maps(env), f"-Wa,-I{ROOT / 'csrc'}"),
        # Relative, so that a wheel finds torch and the runtime in whatever environment it lands in.
        link_args=("-Wl,--enable-new-dtags,-rpath,$ORIGIN/../torch/lib:$ORIGIN/../../..",),
    )
    if mode == "xpu":
        embedding = "csrc/kernel_sources.cpp"  # there is no front end at run time to read them
        return plan._replace(
            sources=tuple(s for s in plan.sources if s != embedding) + tuple(device_side),
            # Its XPU half is in the local part of the version: a +cpu build of the same number does not fit.
            dependencies=(*DEPENDENCIES, f"torch=={env.torch}"),
            # The host's compiler sees SYCL's headers too, in runtime.cpp, which has no device code.
            macros=(*plan.macros, ("ESIMD_OPS_AHEAD_OF_TIME", None), ("SYCL_DISABLE_FSYCL_SYCLHPP_WARNING", None)),
            sycl_args=("-DESIMD_OPS_AHEAD_OF_TIME", "-O2", "-fsycl-device-code-split=per_kernel", *path_maps(env)),
            library_dirs=tuple(filter(None, (env.sycl_library,))),
        )
    assert env.torch  # `lacks` has seen to it,
    assert env.sycl_include  # and to this
    runtime = (f"{name}=={TOOLCHAIN}.*" for name in ("intel-sycl-rt", "intel-opencl-rt"))
    return plan._replace(
        dependencies=(*DEPENDENCIES, f"torch=={env.torch.partition('+')[0]}", *runtime),
        cxx_args=(*plan.cxx_args, "-isystem", env.sycl_include),
        library_dirs=tuple(filter(None, (env.sycl_library,))),
        link_args=(*plan.link_args, f"-l:{RUNTIME}"),
    )


def path_maps(env: Environment) -> tuple[str, ...]:
    """Compiler arguments that keep paths of this machine out of the binary; of several that fit, the last counts."""
    return (
        f"-ffile-prefix-map={ROOT}=.",
        *([f"-ffile-prefix-map={env.site_packages}=site-packages"] if env.site_packages else []),
    )


def own_search_path(words: list[str], configured: str) -> list[str]:
    """A linker command without the run paths that the interpreter was itself linked with: no wheel's business."""
    of_interpreter = {word for word in shlex.split(configured) if word.startswith("-Wl,-rpath,")}
    return [word for word in words if word not in of_interpreter]


def apart(sources: list[str], objects: list[str]) -> list[str]:
    """Object names by which a family's host side and device side, both called norm.o, are two files."""
    device_side = [str(source).endswith(".sycl") for source in sources]
    return [f"{name[:-2]}.sycl.o" if other else name for name, other in zip(objects, device_side, strict=True)]


def wrong_runtime(needed: tuple[str, ...]) -> str | None:
    """What is wrong with the SYCL runtime that a library needs, or None."""
    found = [name for name in needed if re.match(r"libsycl\b.*\.so", name)]
    if found == [RUNTIME]:
        return None
    return f"expected to need {RUNTIME} and no other SYCL runtime, found {', '.join(found) or 'none'}"


def kernel_sources_digest() -> str:
    """A digest of the device sources: in the command line, it makes a changed kernel recompile what embeds it."""
    digest = hashlib.sha256()
    for path in sorted([*ROOT.glob("csrc/*/*.sycl"), *ROOT.glob("csrc/*/*.h")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def inspect_machine() -> Environment:
    """The only function here that looks at the machine."""
    # A build in isolation hides the packages of the environment it builds for: torch and the SYCL runtime among them.
    site_packages = sysconfig.get_paths()["purelib"]
    if site_packages not in sys.path:
        sys.path.append(site_packages)
    # torch's builder looks for ninja here, also when the environment is not activated.
    os.environ["PATH"] = os.pathsep.join((sysconfig.get_paths()["scripts"], os.environ.get("PATH", "")))

    torch_version, torch_has_xpu, site = None, False, None
    forced = os.environ.get("ESIMD_OPS_BUILD") or None
    if forced != "none" and importlib.util.find_spec("torch"):  # whose import takes its time
        import torch

        torch_version, torch_has_xpu = torch.__version__, torch.xpu._is_compiled()
        site = str(Path(torch.__file__).parents[1])
    icpx = shutil.which("icpx")
    banner = subprocess.run([icpx, "--version"], capture_output=True, text=True, check=False).stdout if icpx else ""
    version = re.search(r"\d+\.\d+\.\d+", banner)
    env = Environment(
        torch=torch_version,
        site_packages=site,
        torch_has_xpu=torch_has_xpu,
        cxx=shutil.which(shlex.split(os.environ.get("CXX") or "c++")[0]),
        icpx=version.group() if version else None,
        forced=forced,
    )
    for distribution in importlib.metadata.distributions(name="intel-sycl-rt"):
        for file in distribution.files or ():
            if file.name == "sycl.hpp" and file.parent.name == "sycl":
                include = Path(file.locate()).resolve().parent.parent
                env = env._replace(sycl_include=str(include))
            elif file.name == "libsycl.so.8":
                env = env._replace(sycl_library=str(Path(file.locate()).resolve().parent))
        return env._replace(sycl_rt=distribution.version)
    return env


def extension_arguments(plan: BuildPlan) -> dict[str, Any]:
    """Arguments for setup(): the extension and the command that builds it."""
    if plan.mode == "none":
        return {}
    REGISTRATION["write"](ROOT)
    from torch.utils import cpp_extension
    from torch.utils.cpp_extension import CppExtension, SyclExtension

    create: Any = CppExtension
    flags = {"cxx": list(plan.cxx_args)}
    if plan.mode == "xpu":
        os.environ.setdefault("TORCH_XPU_ARCH_LIST", "bmg")
        create = SyclExtension
        flags["sycl"] = list(plan.sycl_args)
    extension = create(
        name="esimd_ops._C",
        sources=list(plan.sources),
        define_macros=list(plan.macros),
        include_dirs=list(plan.include_dirs),
        # icpx finds its own runtime; the host's linker, which links the extension, must be told.
        library_dirs=[*plan.library_dirs, *([f"{cpp_extension.SYCL_HOME}/lib"] if plan.mode == "xpu" else [])],
        extra_compile_args=flags,
        extra_link_args=[*plan.link_args, f"-Wl,-soname,_C{sysconfig.get_config_var('EXT_SUFFIX')}"],
        depends=sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("csrc/**/*.*")),
    )
    command = build_command(cpp_extension.BuildExtension, built_with(plan))
    return {"ext_modules": [extension], "cmdclass": {"build_ext": command}}


def built_with(plan: BuildPlan) -> str:
    """The record of a build, which `--version` shows, as JSON."""
    exact = [word for word in plan.dependencies if word.startswith(("torch==", "intel-sycl-rt=="))]
    toolchain = exact if plan.mode == "host" else [f"icpx {TOOLCHAIN}", f"for {os.environ['TORCH_XPU_ARCH_LIST']}"]
    return json.dumps({"mode": plan.mode, "with": toolchain}) + "\n"


def build_command(base: Any, record: str) -> type:
    """torch's build_ext, with a look at what was linked: a library with the wrong runtime fails far from here.

    The record of the build goes beside the package that shows it.
    """

    class Build(base):  # type: ignore[misc]  # torch's is not typed
        def build_extensions(self) -> None:
            for linker, variable in (("linker_so", "LDSHARED"), ("linker_so_cxx", "LDCXXSHARED")):
                words = getattr(self.compiler, linker, None)
                if words:
                    kept = own_search_path(words, sysconfig.get_config_var(variable) or "")
                    self.compiler.set_executable(linker, kept)
            name_objects = self.compiler.object_filenames
            self.compiler.object_filenames = lambda sources, *words, **more: apart(
                sources, name_objects(sources, *words, **more)
            )
            super().build_extensions()

        def build_extension(self, extension: Any) -> None:
            super().build_extension(extension)
            sys.path.insert(0, str(ROOT))
            from schema_patch.elf import reader  # which needs the standard library alone

            path = self.get_ext_fullpath(extension.name)
            if why := wrong_runtime(reader.read(path, linked=True).needed):
                Path(path).unlink()
                raise SystemExit(f"esimd_ops: {path}: {why}")
            editable = getattr(self, "editable_mode", False)  # then the packages stay where they are
            beside = (ROOT if editable else Path(path).parents[1]) / "schema_patch"
            beside.mkdir(exist_ok=True)
            (beside / "built.json").write_text(record, "utf-8")

    return Build


if __name__ == "__main__":
    from setuptools import setup

    try:
        plan = build_plan(inspect_machine())
    except ValueError as error:
        raise SystemExit(f"esimd_ops: {error}") from None
    # What files in a wheel are dated with, the earliest it can hold: two builds of one commit are the same bytes.
    os.environ.setdefault("SOURCE_DATE_EPOCH", "315532800")
    print(f"esimd_ops: build mode {plan.mode} ({plan.reason})", file=sys.stderr)
    setup(install_requires=list(plan.dependencies), **extension_arguments(plan))
