"""What the package may know, what its parsers must bear, and that its examples are true."""

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import esimd_soak
from esimd_soak import plan
from esimd_soak.experiments import guard, matrix
from esimd_soak.load import protocol, watch
from esimd_soak.load.health import Health, trouble
from esimd_soak.load.lane import Lane
from esimd_soak.load.prompts import Prompts, lengths
from esimd_soak.load.protocol import Reply
from esimd_soak.plan import Client, Server
from esimd_soak.model import ToolError

PACKAGE = Path(esimd_soak.__file__).parent
EXAMPLES = PACKAGE.parent / "examples" / "soak"


def test_it_knows_no_torch_no_operators_and_only_the_model() -> None:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                assert name.split(".")[0] not in ("torch", "esimd_ops", "lief", "tree_sitter"), path
                assert not name.startswith("schema_patch") or name == "schema_patch.model", path


def test_the_examples_are_plans() -> None:
    assert plan.load(str(EXAMPLES / "plan.toml")).server[1].card == "B70-1"
    assert guard.load(str(EXAMPLES / "guard.toml"))[1].needed == 2
    made = matrix.load(str(EXAMPLES / "matrix.toml"))
    assert [mode.name for mode in made.mode] == ["eager", "torch.compile", "torch.compile + XPU graph"]
    plan.make({**made.load, "server": [{"url": made.url}]}, "matrix")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "text", "usage", "error", "delta", "logprobs", "content"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(st.binary(max_size=60) | JSON.map(lambda x: json.dumps(x).encode()), st.sampled_from([200, 500]))
def test_no_answer_breaks_the_parser(data: bytes, status: int) -> None:
    whole = Reply(status=status)
    protocol.take_body(whole, data)
    assert whole.error or whole.pieces
    stream = Reply()
    for line in (b"data: " + data.replace(b"\n", b" "), b": comment", b"", b"event: x"):
        protocol.take_line(stream, line)
    protocol.end_stream(stream)
    assert stream.error or stream.pieces


def test_a_nan_in_json_is_read_and_seen() -> None:
    reply = Reply()
    protocol.take_body(reply, b'{"choices":[{"text":"a","logprobs":{"token_logprobs":[null,NaN]}}]}')
    assert reply.nan
    assert not reply.error
    reply = Reply()
    protocol.take_line(reply, b'data: {"choices":[{"delta":{"content":"a"},"logprobs":{"content":[{"logprob":NaN}]}}]}')
    assert reply.nan


def test_a_stream_that_ends_in_good_order_but_early_was_cut() -> None:
    piece, last = b'data: {"choices":[{"text":"a"}]}', b'data: {"choices":[{"text":"b","finish_reason":"stop"}]}'
    for lines, error in (
        ([piece], "cut: the stream ended after 1 pieces"),
        ([piece, last], ""),
        ([piece, b"data: [DONE]"], ""),
        ([b"data: [DONE]"], "json: the stream held no choices"),
        ([piece, b'data: {"error": {"message": "engine died"}}'], "server: engine died"),
    ):
        reply = Reply()
        for line in lines:
            protocol.take_line(reply, line)
        protocol.end_stream(reply)
        assert reply.error.startswith(error)
        assert bool(reply.error) == bool(error)


def test_thinking_is_scored_too() -> None:
    reply = Reply()
    for part in ("reasoning_content", "reasoning", "content"):
        protocol.take_line(reply, b'data: {"choices":[{"delta":{"%s":"!"}}]}' % part.encode())
    assert reply.text == "!!!"


@given(st.lists(st.integers(-5, 60), unique=True), st.integers(0, 80))
def test_a_lane_sends_what_is_missing_and_nothing_twice(done: list[int], limit: int) -> None:
    lane = Lane(Server("http://x"), max(limit, 1))
    lane.resume(done)
    sent = []
    while (n := lane.next()) is not None:
        sent.append(n)
    finished = {n for n in done if n >= 0}
    assert len(set(sent)) == len(sent)
    assert not finished & set(sent)
    assert finished | set(sent) >= set(range(max(limit, 1)))


def test_prompts_follow_from_seed_and_number(tmp_path: Path) -> None:
    def prompts(**keys: object) -> Prompts:
        return Prompts(plan.make({"server": [{"url": "http://x"}], "batches": 1, **keys}, "here"))

    assert prompts(seed=1)[7] == prompts(seed=1)[7] != prompts(seed=2)[7]
    ids = prompts(prompts="ids", prompt_lengths="3,5", vocabulary=10)
    assert [len(ids[n]) for n in range(4)] == [3, 5, 3, 5]
    assert all(1 <= token < 10 for n in range(20) for token in ids[n])
    path = tmp_path / "p.jsonl"
    path.write_text('"one"\n{"prompt": [1, 2]}\n')
    assert [prompts(prompts=str(path))[n] for n in range(3)] == ["one", [1, 2], "one"]
    path.write_text('"one"\n{"promp": 1}\n')
    with pytest.raises(ToolError, match="line 2"):
        prompts(prompts=str(path))
    assert lengths("1-3, 9") == [1, 2, 3, 9]


def test_a_hiccup_voids_nothing_slowness_does() -> None:
    health = Health(Client(late_ms=10))
    for _ in range(100):
        health.delay(0.001)
    health.delay(0.5)
    health.delay(0.5)
    assert trouble(health.values()) == ""
    for _ in range(5):
        health.delay(0.5)
    assert "requests went out late" in trouble(health.values())


def test_counters_of_two_engines_add_up_and_a_restart_is_no_delta() -> None:
    name = "vllm:corrupted_requests"
    text = f'# TYPE {name} counter\n{name}_total{{engine="0"}} 2.0\n{name}_total{{engine="1"}} 3.0\n'
    assert watch.counters(text) == {name: 5.0}
    with pytest.raises(ToolError, match="restarted"):
        watch.deltas({name: 5.0}, {name: 1.0})
    with pytest.raises(ToolError, match="Prometheus text"):
        watch.counters(f'{name}_total{{engine="0" 2.0\n')
