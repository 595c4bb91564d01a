"""Chooses how the native extension `esimd_ops._C` is built; all else about the package is in pyproject.toml.

    none  pure Python: no torch, no C++ compiler, or no SYCL runtime
    host  g++ and the SYCL runtime of the PyPI package intel-sycl-rt; operators run on CPU tensors
    xpu   torch with XPU and icpx; kernels are compiled ahead of time for TORCH_XPU_ARCH_LIST (bmg unless set)

ESIMD_OPS_BUILD=none|host|xpu forces one of them.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent
TOOLCHAIN = "2025.3"  # the oneAPI release whose libsycl.so.8 and compiler front end the sources are written for
MODES = ("xpu", "host", "none")


class Environment(NamedTuple):
    """What the machine offers; None where it offers nothing."""

    torch: str | None = None
    torch_has_xpu: bool = False
    cxx: str | None = None
    icpx: str | None = None  # version
    sycl_rt: str | None = None  # version
    sycl_include: str | None = None
    sycl_library: str | None = None
    forced: str | None = None


class Plan(NamedTuple):
    """How to build, as data."""

    mode: str
    reason: str
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


def build_plan(env: Environment) -> Plan:
    """Choose a mode and say why. A forced mode that cannot be built is a ValueError, never another mode."""
    if env.forced and env.forced not in MODES:
        raise ValueError(f"ESIMD_OPS_BUILD: expected one of {', '.join(MODES)}, found {env.forced!r}")
    if env.forced and (reason := lacks(env, env.forced)):
        raise ValueError(f"ESIMD_OPS_BUILD={env.forced}, but {reason}")

    mode = env.forced or next(mode for mode in MODES if lacks(env, mode) is None)
    refused = [f"not {other}: {lacks(env, other)}" for other in MODES[: MODES.index(mode)]]
    reason = "ESIMD_OPS_BUILD asks for it" if env.forced else "; ".join(refused) or "torch with XPU and icpx found"
    if mode == "none":
        return Plan(mode, reason)

    host_side = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("csrc/**/*.cpp"))
    device_side = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("csrc/*/*.sycl"))
    plan = Plan(
        mode,
        reason,
        sources=tuple(host_side),
        macros=(("ESIMD_OPS_KERNEL_SOURCES_DIGEST", f'"{kernel_sources_digest()}"'),),
        include_dirs=(str(ROOT / "csrc"), str(ROOT)),
        # Host code checks and launches: the kernels do the work. -g0: the interpreter may ask for debug information.
        cxx_args=("-O1", "-g0", "-Wall", "-Wextra", f"-ffile-prefix-map={ROOT}=.", f"-Wa,-I{ROOT / 'csrc'}"),
        # Relative, so that a wheel finds torch and the runtime in whatever environment it lands in.
        link_args=("-Wl,--enable-new-dtags,-rpath,$ORIGIN/../torch/lib:$ORIGIN/../../..",),
    )
    if mode == "xpu":
        embedding = "csrc/kernel_sources.cpp"  # there is no front end at run time to read them
        return plan._replace(
            sources=tuple(s for s in plan.sources if s != embedding) + tuple(device_side),
            macros=(*plan.macros, ("ESIMD_OPS_XPU", None)),
            sycl_args=("-DESIMD_OPS_AHEAD_OF_TIME", "-O2"),
        )
    return plan._replace(
        cxx_args=(*plan.cxx_args, "-isystem", env.sycl_include),
        library_dirs=(env.sycl_library,),
        link_args=(*plan.link_args, "-l:libsycl.so.8"),
    )


def kernel_sources_digest() -> str:
    """A digest of the device sources: in the command line, it makes a changed kernel recompile what embeds it."""
    digest = hashlib.sha256()
    for path in sorted([*ROOT.glob("csrc/*/*.sycl"), *ROOT.glob("csrc/device/*.h")]):
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

    torch_version, torch_has_xpu = None, False
    if importlib.util.find_spec("torch"):
        import torch

        torch_version, torch_has_xpu = torch.__version__, torch.xpu._is_compiled()
    icpx = shutil.which("icpx")
    banner = subprocess.run([icpx, "--version"], capture_output=True, text=True, check=False).stdout if icpx else ""
    version = re.search(r"\d+\.\d+\.\d+", banner)
    env = Environment(
        torch=torch_version,
        torch_has_xpu=torch_has_xpu,
        cxx=shutil.which(shlex.split(os.environ.get("CXX") or "c++")[0]),
        icpx=version.group() if version else None,
        forced=os.environ.get("ESIMD_OPS_BUILD") or None,
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


def extension_arguments(plan: Plan) -> dict:
    """Arguments for setup(): the extension and the command that builds it."""
    if plan.mode == "none":
        return {}
    from torch.utils.cpp_extension import BuildExtension, CppExtension, SyclExtension

    if plan.mode == "xpu":
        os.environ.setdefault("TORCH_XPU_ARCH_LIST", "bmg")
        create, flags = SyclExtension, {"cxx": list(plan.cxx_args), "sycl": list(plan.sycl_args)}
    else:
        create, flags = CppExtension, {"cxx": list(plan.cxx_args)}
    extension = create(
        name="esimd_ops._C",
        sources=list(plan.sources),
        define_macros=list(plan.macros),
        include_dirs=list(plan.include_dirs),
        library_dirs=list(plan.library_dirs),
        extra_compile_args=flags,
        extra_link_args=[*plan.link_args, f"-Wl,-soname,_C{sysconfig.get_config_var('EXT_SUFFIX')}"],
        depends=sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("csrc/**/*.*")),
    )
    return {"ext_modules": [extension], "cmdclass": {"build_ext": BuildExtension}}


if __name__ == "__main__":
    from setuptools import setup

    try:
        plan = build_plan(inspect_machine())
    except ValueError as error:
        raise SystemExit(f"esimd_ops: {error}") from None
    print(f"esimd_ops: build mode {plan.mode} ({plan.reason})", file=sys.stderr)
    setup(**extension_arguments(plan))
