"""What the package may know, what its parsers must bear, and that its examples are true."""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import Soak

import esimd_soak
from esimd_soak import plan
from esimd_soak.experiments import guard, matrix
from esimd_soak.load import protocol, watch
from esimd_soak.load.health import Health, trouble
from esimd_soak.load.lane import Lane
from esimd_soak.load.prompts import Prompts, lengths
from esimd_soak.load.protocol import Reply
from esimd_soak.model import ToolError
from esimd_soak.plan import Client, Server

PACKAGE = Path(esimd_soak.__file__).parent
EXAMPLES = PACKAGE.parent / "examples" / "soak"


def test_it_knows_no_torch_no_operators_and_nothing_of_the_kit() -> None:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                assert name.split(".")[0] not in ("torch", "esimd_ops", "schema_patch", "lief", "tree_sitter"), path


def test_the_examples_are_plans() -> None:
    assert plan.load(str(EXAMPLES / "plan.toml")).server[1].card == "B70-1"
    assert guard.load(str(EXAMPLES / "guard.toml"))[1].needed == 2
    made = matrix.load(str(EXAMPLES / "matrix.toml"))
    assert [mode.name for mode in made.mode] == ["eager", "torch.compile", "torch.compile + XPU graph"]
    plan.make({**made.load, "server": [{"url": made.url}]}, "matrix")


def test_a_nan_in_json_is_read_and_seen() -> None:
    reply = Reply()
    protocol.take_body(reply, b'{"choices":[{"text":"a","logprobs":{"token_logprobs":[null,NaN]}}]}')
    assert reply.nan
    assert not reply.error
    assert streamed(b'{"choices":[{"delta":{"content":"a"},"logprobs":{"content":[{"logprob":NaN}]}}]}').nan


def streamed(*events: bytes) -> Reply:
    reply = Reply()
    stream = protocol.Stream(reply)
    for event in events:
        stream.feed(b"data: " + event + b"\n\n", 0.0)
    stream.end()
    return reply


def test_a_stream_that_ends_in_good_order_but_early_was_cut() -> None:
    piece, last = b'{"choices":[{"text":"a"}]}', b'{"choices":[{"text":"b","finish_reason":"stop"}]}'
    for events, error in (
        ([piece], "cut: the stream ended after 1 pieces"),
        ([piece, last], ""),
        ([piece, b"[DONE]"], ""),
        ([b"[DONE]"], "json: the stream held no choices"),
        ([piece, b'{"error": {"message": "engine died"}}'], "server: engine died"),
        ([piece, b'{"choices":[{"text":"b","finish_reason":"abort"}]}'], "server: it ended the answer"),
    ):
        reply = streamed(*events)
        assert reply.error.startswith(error)
        assert bool(reply.error) == bool(error)


@given(st.data())
def test_a_stream_is_the_same_however_it_is_cut_and_whatever_ends_its_lines(data: st.DataObject) -> None:
    end = data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    piece = b'data: {"choices":[{"text":"caf\xc3\xa9 "}]}'
    several = b'data: {"choices":' + end + b'data: [{"text":"two","finish_reason":"stop"}]}'
    whole = end.join([b": ping", b"", piece, b"", b"event: x", several, b"", b"data: [DONE]", b"", b""])
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=12)))
    reply = Reply()
    stream = protocol.Stream(reply)
    for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        stream.feed(whole[a:b], 0.0)
    stream.end()
    assert (reply.text, reply.finish, reply.error, reply.done) == ("café two", "stop", "", True)


def test_what_is_said_apart_stays_apart() -> None:
    reply = streamed(
        b'{"choices":[{"index":0,"delta":{"reasoning_content":"hm"}},{"index":1,"delta":{"content":"!"}}]}',
        b'{"choices":[{"index":0,"delta":{"reasoning":"!"}},{"index":1,"delta":{"content":"!"}}]}',
        b'{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"good"}]}}]}',
        b'{"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},'
        b'"finish_reason":"tool_calls"}]}',
        b"[DONE]",
    )
    assert reply.texts == [("reasoning", "hm!"), ("text", "good"), ("tool", "f{}"), ("text", "!!")]
    assert reply.choices == 2


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
    assert watch.counters(text) == {name: 5.0, f"{name}@engine 0": 2.0, f"{name}@engine 1": 3.0}
    with pytest.raises(ToolError, match="restarted"):
        watch.deltas({name: 5.0}, {name: 1.0})
    with pytest.raises(ToolError, match="Prometheus text"):
        watch.counters(f'{name}_total{{engine="0" 2.0\n')


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run", "expected a plan, or --url of a server"),
        ("guard", "expected a plan with a [guard] table"),
        ("compare --counts 1/9 2/9 a b", "bare counts stand alone"),
        ("compare --burst 2 a b", "--burst is for bare counts"),
        ("compare --counts 1/9", "requires 2 arguments"),
        ("register x.json --hypothesis h -a a -b b --size 9 --stop s --alpha 2", "expected alpha between 0 and 1"),
        ("acceptance x --min-rate nan", "expected finite numbers"),
        ("acceptance --matrix {file}", "the matrix is wrong"),
        ("acceptance --plan {two} -o {out}", "expected one server, found 2"),
        ("acceptance --candidate {file} --baseline {file}", "expected a `vllm bench serve` result"),
        ("run {nobody}", "expected at least one [[server]]"),
        ("run {ids}", "prompts as token ids need the completions API"),
        ("run {empty} -o {out}", "expected at least one prompt, found none"),
        ("run {key} -o {out}", "which is not set"),
        ("run missing.toml", "cannot read the plan"),
        ("agree http://a http://a --max-tokens 2", "cannot be judged"),
        ("compare --counts 1/9 2/9 --registration {file}", "bare counts stand alone"),
        ("compare {file} {file} --registration {file}", "expected a run"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_a_2(soak: Soak, tmp_path: Path, words: str, said: str) -> None:
    (tmp_path / "file").write_text("odd = 1\n")
    (tmp_path / "prompts").write_text("")
    one, stop = '[[server]]\nurl = "http://127.0.0.1:9"\n', "stop = {generations = 1}\n"
    for name, text in (
        ("two", f"{stop}{one}name = 'a'\n{one}name = 'b'\n"),
        ("nobody", f"{stop}server = []\n"),
        ("ids", f"{stop}prompts = 'ids'\n{one}api = 'chat'\n"),
        ("empty", f"{stop}prompts = '{tmp_path / 'prompts'}'\n{one}"),
        ("key", f"{stop}{one}key_env = 'NOBODY_SET_THIS'\n"),
    ):
        (tmp_path / name).write_text(text)
    names = {path.name: path for path in tmp_path.iterdir()}
    assert soak(*(word.format(**names, out=tmp_path / "out") for word in words.split())) == 2
    assert said in soak.err
    assert "Traceback" not in soak.err
