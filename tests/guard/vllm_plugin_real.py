"""The plugin in a real vLLM on a CPU: `python tests/guard/vllm_plugin_real.py VENV`, which `make test-vllm` runs.

Not collected by pytest. VENV is the environment that tests/soak/vllm_real.py makes. The kit is installed into a folder
of its own, so that a process has it, plugin and all, exactly where that folder is on PYTHONPATH, and differs in nothing
else: vLLM's cache keys see its other settings. Every program runs in a fresh process with vLLM's own compilation
backend forced (`in_vllm/model.py`); its operators are C++, with the schemas as published. Prints what was tried and
what came out; exit code 1 if anything is not as it should be, and that includes what must be wrong.

Three kinds of process: `bare` has no kit; `guarded` has it installed; `withheld` is guarded, but its digest is kept out
of vLLM's cache key: what then comes back shows that the cache really holds the wrong graph.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "soak"))

from vllm_real import environment, model  # noqa: E402  both scripts use the same

# vLLM's three ways to keep what it compiled: AOT and mega artifact, AOT alone, and before AOT.
MODES = {
    "mega": {"VLLM_USE_AOT_COMPILE": "1", "VLLM_USE_MEGA_AOT_ARTIFACT": "1"},
    "aot": {"VLLM_USE_AOT_COMPILE": "1", "VLLM_USE_MEGA_AOT_ARTIFACT": "0"},
    "legacy": {"VLLM_USE_AOT_COMPILE": "0", "VLLM_USE_MEGA_AOT_ARTIFACT": "0"},
}
# In the first the operators are bound by nobody before the model is traced, which is after vLLM asked for its key.
LATE = "plugin,operators,fakes"
ORDERS = {
    "mega": "operators,fakes,plugin",
    "aot": "operators,plugin,fakes",
    "legacy": "guard,operators,fakes,plugin",
}
FACTOR = "VLLM_SCHEMA_PATCH_DIGEST"
BUILD = """
import sys
from torch.utils.cpp_extension import load
load("published_ops", [sys.argv[1]], build_directory=sys.argv[2], is_python_module=False, extra_cflags=["-O1"])
"""


class Bench:
    """Runs programs in vLLM's environment and keeps the table."""

    def __init__(self, home: Path, scratch: Path) -> None:
        self.python = environment(home)
        self.home, self.scratch = home, scratch
        self.failed = 0
        self.kit = self._install()
        self.operators = self._build()

    def _install(self) -> Path:
        """The kit as pip installs it, without its native extension; the tree is copied, so that nothing is built in it."""
        source, target = self.scratch / "source", self.scratch / "kit"
        no_part = shutil.ignore_patterns(".*", "*.so", "*.egg-info", "build", "dist", "tests", "examples", "fuzz")
        shutil.copytree(ROOT, source, ignore=no_part)
        pip = [self.python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
        words = [*pip, "--no-build-isolation", "--target", target, source]
        subprocess.run(words, check=True, env={**os.environ, "ESIMD_OPS_BUILD": "none"})
        return target

    def _build(self) -> Path:
        folder = self.home / "published_ops"
        folder.mkdir(exist_ok=True)
        settings = {**os.environ, "PATH": f"{self.python.parent}:{os.environ['PATH']}", "MAX_JOBS": "1"}
        source = HERE / "in_vllm" / "published_ops.cpp"
        subprocess.run([self.python, "-c", BUILD, source, folder], check=True, env=settings, stdout=subprocess.DEVNULL)
        return folder / "published_ops.so"

    def run(self, mode: str, cache: str, kind: str, steps: str) -> dict[str, Any]:
        """What one fresh process of in_vllm/model.py told, with vLLM's log of it under "log"."""
        folder = self.scratch / cache
        settings = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTHONPATH")}
        settings |= MODES[mode] | {
            "PUBLISHED_OPS": str(self.operators),
            "VLLM_CACHE_ROOT": str(folder / "vllm"),
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "torch"),
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "HF_HUB_OFFLINE": "1",
        }
        if kind != "bare":
            settings["PYTHONPATH"] = str(self.kit)
        return self._told(settings, "model.py", steps, *(["withheld"] if kind == "withheld" else []))

    def engine(self, kind: str, mode: str) -> dict[str, Any]:
        """What in_vllm/engine.py told: in_vllm/served_ops.py is installed as in a serving image, and the kit unless bare."""
        served = self.scratch / "served"
        if not served.exists():
            information = served / "served_ops-1.dist-info"
            information.mkdir(parents=True)
            for name in ("served_ops.py", "esimd_fake_ops.py"):
                shutil.copy(HERE / "in_vllm" / name, served)
            (information / "METADATA").write_text("Metadata-Version: 2.1\nName: served-ops\nVersion: 1\n")
            (information / "entry_points.txt").write_text("[vllm.general_plugins]\nserved = served_ops:register\n")
        settings = {name: value for name, value in os.environ.items() if name != "CI"} | {
            "PUBLISHED_OPS": str(self.operators),
            "PYTHONPATH": os.pathsep.join(map(str, [served] if kind == "bare" else [self.kit, served])),
            "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",  # a function is sent to the worker
            "VLLM_CACHE_ROOT": str(self.scratch / "engine"),
            "TORCHINDUCTOR_CACHE_DIR": str(self.scratch / "engine" / "torch"),
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_WORKER_MULTIPROCESSING_METHOD": "spawn",
            "HF_HUB_OFFLINE": "1",
        }
        return self._told(settings, "engine.py", str(model(self.home)), mode)

    def _told(self, settings: dict[str, str], program: str, *words: str) -> dict[str, Any]:
        argv = [self.python, HERE / "in_vllm" / program, *words]
        done = subprocess.run(argv, env=settings, cwd=self.scratch, check=False, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{program} {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        told: dict[str, Any] = json.loads(next(s for s in reversed(done.stdout.splitlines()) if s.startswith("{")))
        told["log"] = [line for line in (done.stdout + done.stderr).splitlines() if "schema-kit: " in line]
        return told

    def expect(self, mode: str, what: str, found: str, true: bool) -> None:
        self.failed += not true
        print(f"{'ok  ' if true else 'FAIL'} {mode:7} {what:78} {found}", flush=True)


def answer(told: dict[str, Any]) -> str:
    verdict = "right" if not told["wrong"] else "WRONG" if told["wrong"] == told["of"] else "some wrong"
    return f"{verdict}, {'from disk' if told['from_disk'] else 'compiled'}"


def over_one_cache(bench: Bench, mode: str) -> None:
    """A cache written without the guard, and what each later process makes of it."""

    def step(what: str, kind: str, expected: str) -> dict[str, Any]:
        told = bench.run(mode, f"{mode}-bare-first", kind, LATE)
        bench.expect(mode, what, answer(told), answer(told) == expected)
        return told

    bare = step("without the kit: the control", "bare", "WRONG, compiled")
    bench.expect(mode, "... in several pieces, as on a GPU", f"{bare['pieces']} pieces", bare["pieces"] == 3)
    bench.expect(mode, "... and the fake lies", str(bare["right_fake"]), not bare["right_fake"])
    guarded = step("the kit installed, over that cache", "guarded", "right, compiled")
    bench.expect(mode, "... two operators guarded", str(len(guarded["guarded"])), len(guarded["guarded"]) == 2)
    bench.expect(mode, "... one line in vLLM's log", f"{len(guarded['log'])} lines", len(guarded["log"]) == 1)
    bench.expect(mode, "... the fake is right", str(guarded["right_fake"]), guarded["right_fake"])
    names = [Path(told["directory"]).relative_to(bench.scratch).parts[3] for told in (bare, guarded)]
    bench.expect(mode, "... in another cache directory", " and ".join(names), names[0] != names[1])
    if MODES[mode]["VLLM_USE_AOT_COMPILE"] == "1":
        kept = bench.scratch / f"{mode}-bare-first" / "vllm" / "torch_compile_cache" / "torch_aot_compile"
        names = sorted(path.name[:10] for path in kept.iterdir())
        bench.expect(mode, "... and in another directory of AOT artifacts", " and ".join(names), len(names) == 2)
    different = {
        name
        for name in bare["factors"] | guarded["factors"]
        if bare["factors"].get(name) != guarded["factors"].get(name)
    }
    bench.expect(
        mode, "... and nothing but the digest sets the keys apart", ", ".join(different), different == {FACTOR}
    )
    step("the kit installed, again", "guarded", "right, from disk")
    step("guarded, its digest withheld from the key: the cache does poison", "withheld", "WRONG, from disk")
    step("without the kit, again", "bare", "WRONG, from disk")


def guarded_first(bench: Bench, mode: str) -> None:
    """A cache written with the guard does not serve a process without it; and another order of loading."""
    order = ORDERS[mode]
    guarded = bench.run(mode, f"{mode}-guarded-first", "guarded", order)
    bench.expect(mode, f"{order}, a new cache", answer(guarded), answer(guarded) == "right, compiled")
    bench.expect(mode, "... the fake is right", str(guarded["right_fake"]), guarded["right_fake"])
    bench.expect(mode, "... one line in vLLM's log", f"{len(guarded['log'])} lines", len(guarded["log"]) == 1)
    bare = bench.run(mode, f"{mode}-guarded-first", "bare", order.replace("guard,", ""))
    bench.expect(mode, "without the kit, over that cache", answer(bare), answer(bare) == "WRONG, compiled")


def absent(bench: Bench) -> None:
    """Where the operators are not, the plugin is loaded and nothing is different."""
    bare, guarded = (bench.run("mega", "none", kind, "plugin") for kind in ("bare", "guarded"))
    print(f"vLLM {bare['vllm']}, torch {bare['torch']}", flush=True)
    loaded = guarded.get("guarded") == [] and "guarded" not in bare
    bench.expect("absent", "the plugin is loaded and guards nothing", str(guarded.get("guarded")), loaded)
    bench.expect("absent", "it says nothing", f"{len(guarded['log'])} lines", not guarded["log"])
    same = bare["factors"] == guarded["factors"]
    bench.expect("absent", "vLLM's cache key is what it is without the kit", str(same), same)


def served(bench: Bench) -> None:
    """A real engine: its worker is another process, to which nobody brings the guard but vLLM's own plugin loader."""
    eager, wrong, right = (
        bench.engine(*how) for how in (("guarded", "eager"), ("bare", "compiled"), ("guarded", "compiled"))
    )
    for mode, told in (("eager", eager), ("served", right)):
        worker = told["worker"]
        apart = worker["spawned"] and worker["pid"] != told["pid"]
        bench.expect(mode, "its worker is a spawned process", str(worker["pid"]), apart)
        count = len(worker["guarded"])
        bench.expect(mode, "... where two operators are guarded", str(count), count == 2)
        agreed = worker["digest"] is not None and worker["factor"] == worker["digest"]
        bench.expect(mode, "... and the digest is in vLLM's cache key", str(worker["factor"]), agreed)
        lines = [line for line in told["log"] if f"pid={worker['pid']}" in line]
        bench.expect(mode, "... which says so in one line of the log", f"{len(lines)} lines", len(lines) == 1)
    unguarded = "guarded" not in wrong["worker"]
    same = "the text of eager" if wrong["said"] == eager["said"] else "another text than eager"
    bench.expect(
        "served", "a compiled model without the kit: the control", same, unguarded and wrong["said"] != eager["said"]
    )
    same = "the text of eager" if right["said"] == eager["said"] else "another text than eager"
    bench.expect("served", "a compiled model that is guarded", same, right["said"] == eager["said"])


def main(home: Path) -> int:
    with tempfile.TemporaryDirectory(prefix="vllm-plugin-") as scratch:
        bench = Bench(home, Path(scratch))
        absent(bench)
        served(bench)
        for mode in MODES:
            over_one_cache(bench, mode)
            guarded_first(bench, mode)
    print(f"{bench.failed} failed" if bench.failed else "all as they should be")
    return int(bench.failed > 0)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("expected the folder of vLLM's virtual environment, outside the repository")
    raise SystemExit(main(Path(sys.argv[1]).resolve()))
