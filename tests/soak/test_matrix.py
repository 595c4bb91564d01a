"""The matrix: a server for each mode, under one load or one command, and the table of the origin report."""

import socket
import sys
from pathlib import Path

from running import Soak


def test_the_matrix_differs_in_the_two_switches_and_prints_the_table(soak: Soak, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve = f"{sys.executable} {Path(__file__).with_name('server.py')} --port {port}"
    load = "{concurrency = 4, max_tokens = 20, stop = {generations = 200}}"
    text = f'launch = "{serve} --spec"\nurl = "http://127.0.0.1:{port}"\nload = {load}\nready_seconds = 20\n'
    (tmp_path / "matrix.toml").write_text(text)
    assert soak("acceptance", "--matrix", tmp_path / "matrix.toml", "-o", tmp_path / "m") == 1
    lines = soak.out.splitlines()
    assert lines[0].startswith("| run | mode | mean ITL | output tok/s | acceptance rate | length | position")
    assert "| A | eager | " in lines[2]
    assert "85.67 % (514 of 600 in 200 drafts) | 3.57 | 91.00 / 86.00 / 80.00 |" in lines[3]
    assert "| C | torch.compile + XPU graph | " in lines[4]
    assert "0.17 % (1 of 600 in 200 drafts) | 1.00 | 0.50 / 0.00 / 0.00 |" in lines[4]
    assert lines[5].startswith("C (torch.compile + XPU graph): collapse")
    commands = [(tmp_path / "m" / run / "command.txt").read_text() for run in "ABC"]
    plain = [c.replace(" --enforce-eager", "").replace("{'VLLM_XPU_ENABLE_XPU_GRAPH': '1'}", "{}") for c in commands]
    assert plain[0] == plain[1] == plain[2]
    (tmp_path / "matrix.toml").write_text(text.replace("--spec", "--fail"))
    assert soak("acceptance", "--matrix", tmp_path / "matrix.toml", "-o", tmp_path / "n") == 2
    assert "the server ended with 1 before it was ready" in soak.err
    assert "no card found" in soak.err


def test_a_mode_is_measured_by_a_command_too(soak: Soak, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "bench.py").write_text(
        "import json, sys, urllib.request\n"
        f"url = 'http://127.0.0.1:{port}/v1/completions'\n"
        "body = json.dumps({'model': 'tiny', 'prompt': 'a', 'max_tokens': 9, 'stream': False}).encode()\n"
        "for _ in range(60):\n"
        "    asked = urllib.request.Request(url, body, {'Content-Type': 'application/json'})\n"
        "    urllib.request.urlopen(asked).read()\n"
        "json.dump({'mean_itl_ms': 12.34, 'output_throughput': 56.7}, open(sys.argv[1], 'w'))\n"
        "sys.exit(int(sys.argv[2]))\n"
    )
    serve = f"{sys.executable} {Path(__file__).with_name('server.py')} --port {port} --spec"
    work = f"{sys.executable} {tmp_path / 'bench.py'} {{result}}"
    text = f'launch = "{serve}"\nurl = "http://127.0.0.1:{port}"\nready_seconds = 20\nmode = [{{name = "plain"}}]\n'
    (tmp_path / "matrix.toml").write_text(f'{text}workload = "{work} 0"\n')
    assert soak("acceptance", "--matrix", tmp_path / "matrix.toml", "-o", tmp_path / "m") == 0
    assert "| A | plain | 12.3 ms | 56.7 | 100.00 % (180 of 180 in 60 drafts) |" in soak.out
    (tmp_path / "matrix.toml").write_text(f'{text}workload = "{work} 3"\n')
    assert soak("acceptance", "--matrix", tmp_path / "matrix.toml", "-o", tmp_path / "n") == 2
    assert "the workload ended with 3" in soak.err
