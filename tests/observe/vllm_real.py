"""A real vLLM server on a CPU, observed under load: `python tests/observe/vllm_real.py VENV`, which `make test-vllm` runs.

Not collected by pytest. VENV is the environment that tests/soak/vllm_real.py makes. Nothing of the kit is in the server
but its entry point of torch's; the engine, which calls the operators, is another process than the one that is started.
vLLM's own operators must agree with their schemas; that something was seen at all is part of it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "soak"))

from vllm_real import PORT, URL, environment, model, wait  # noqa: E402

LEAST = 5  # operators that a decoder of this kind calls on a CPU
BLOCKS = "256"  # of its cache: of one of gigabytes a watched call would read all
OPTIONS = "namespace=_C,vllm budget=0.1"


def main(home: Path) -> int:
    python = environment(home)
    with tempfile.TemporaryDirectory(prefix="vllm-observed-") as scratch:
        seen = Path(scratch) / "seen.json"
        serve(python, home, entry(Path(scratch)), seen)
        words = [sys.executable, "-m", "esimd_ops", "observe", "--from", str(seen)]
        table = ["-o", str(Path(scratch) / "vllm.toml")]
        print(subprocess.run([*words, *table], check=False, capture_output=True, text=True).stdout, flush=True)
        done = subprocess.run([*words, "--format", "json"], check=False, capture_output=True, text=True)
    report = json.loads(done.stdout)
    facts, verdicts = report["facts"], [row["verdict"] for row in report["checked"]]
    judged = len(verdicts) - verdicts.count("unknown")
    print(f"{facts['processes']} processes; watching took {facts['spent_s']:.1f} s of {facts['ran_s']:.1f} s")
    failed = 0
    for words_, true in (
        (f"{judged} operators judged, {LEAST} at least", judged >= LEAST),
        (f"{verdicts.count('wrong')} contradict their schemas", "wrong" not in verdicts),
        ("each process told what it saw", not report["errors"]),
    ):
        failed += not true
        print(f"{'ok  ' if true else 'FAIL'} {words_}")
    return int(failed > 0)


def entry(folder: Path) -> Path:
    """What makes the kit's entry point known, and nothing else of it."""
    metadata = folder / "entry" / "schema_kit_entry-0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: schema-kit-entry\nVersion: 0\n")
    (metadata / "entry_points.txt").write_text("[torch.backends]\nschema_kit = esimd_ops.door:enter\n")
    for package in ("esimd_ops", "schema_patch"):
        shutil.copytree(
            ROOT / package, folder / "entry" / package, ignore=shutil.ignore_patterns("*.so", "__pycache__")
        )
    return folder / "entry"


def serve(python: Path, home: Path, kit: Path, seen: Path) -> None:
    """Starts the server, has it generate, and stops it as an operator of it would."""
    words = [python.with_name("vllm"), "serve", model(home), "--host", "127.0.0.1", "--port", str(PORT)]
    settings = {
        **os.environ, "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "PYTHONPATH": str(kit),
        "SCHEMA_KIT_OBSERVE": str(seen), "SCHEMA_KIT_OBSERVE_OPTIONS": OPTIONS,
    }  # fmt: skip
    with (home / "observed.log").open("wb") as log:
        server = subprocess.Popen(
            [*words, "--max-model-len", "1024", "--dtype", "bfloat16", "--num-gpu-blocks-override", BLOCKS],
            env=settings, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        wait(server, home / "observed.log")
        load = ["--url", URL, "--concurrency", "8", "--generations", "64", "--max-tokens", "128"]
        folder = home / "runs" / "observed"
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "esimd_soak", "run", *load, "-o", str(folder)], check=False)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("expected the folder of vLLM's virtual environment, outside the repository")
    raise SystemExit(main(Path(sys.argv[1]).resolve()))
