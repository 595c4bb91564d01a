"""What a server tells of itself: what it serves, its counters, and that a run says when either is not what it was."""

from pathlib import Path

import pytest
import recorded
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from running import Soak, events, plan
from server import ENGLISH, Faults, Served

from esimd_soak.judge import drafts
from esimd_soak.load import identity, watch
from esimd_soak.load.sessions import Sessions
from esimd_soak.model import ToolError
from esimd_soak.store.records import Event

VERSION = {"/version": {"version": "0.21.1"}, "/props": {"chat_template": "{{ x }}" * 100, "build_info": "b1"}}


def test_what_is_served_is_written_down_and_a_change_is_told(soak: Soak, tmp_path: Path) -> None:
    info = '# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{block_size="16",num_gpu_blocks="77"} 1.0\n'
    with Served(Faults(pages={**VERSION, "/metrics": info}, delay=0.002)) as served:
        path = plan(tmp_path, {"url": served.url, "name": "s"}, concurrency=2, max_tokens=40, stop={"seconds": 60})
        assert soak("run", path, "--generations", 8, "-o", tmp_path / "r") == 0
        (told,) = events(tmp_path / "r", "served")
        assert told.facts["model"] == "tiny"
        assert told.facts["version"] == "0.21.1"
        assert told.facts["vllm:cache_config_info.block_size"] == "16"
        assert told.facts["props.chat_template"].startswith("sha256 ")
        assert "vllm:cache_config_info.num_gpu_blocks" not in told.facts
        assert "run / s says: model tiny, version 0.21.1" in soak.out
        assert soak("run", path, "--generations", 12, "-o", tmp_path / "r") == 0
        assert len(events(tmp_path / "r", "served")) == 1
        served.state.faults.pages["/version"] = {"version": "0.22.0"}
        assert soak("run", path, "--generations", 16, "-o", tmp_path / "r") == 2
        assert "NOT TO BE TRUSTED: run / s: what is served changed: version: 0.21.1, then 0.22.0" in soak.out


def test_a_model_that_changed_on_resume(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(delay=0.002)) as served:
        path = plan(tmp_path, {"url": served.url, "name": "s"}, concurrency=2, max_tokens=40, stop={"seconds": 60})
        assert soak("run", path, "--generations", 8, "-o", tmp_path / "r") == 0
        served.state.faults.model = "another"
        assert soak("run", path, "--generations", 12, "-o", tmp_path / "r") == 2
    assert "model: tiny, then another" in soak.out


def test_arms_that_serve_different_things(soak: Soak, tmp_path: Path) -> None:
    for name, version in (("a", "0.21.1"), ("b", "0.22.0")):
        with Served(Faults(pages={"/version": {"version": version}})) as served:
            server = {"url": served.url, "name": "s", "compile_cache": name}
            keys = {"name": name, "concurrency": 4, "max_tokens": 40, "stop": {"generations": 20}}
            assert soak("run", plan(tmp_path, server, **keys), "-o", tmp_path / name) == 0
    assert soak("compare", tmp_path / "a", tmp_path / "b") == 0
    assert "the arms differ in what they serve: version: 0.21.1, then 0.22.0" in soak.out


def test_a_prompts_file_is_what_it_holds(soak: Soak, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('"one"\n"two"\n')
    with Served() as served:
        keys = {"concurrency": 2, "max_tokens": 40, "stop": {"seconds": 60}, "prompts": str(tmp_path / "p.jsonl")}
        path = plan(tmp_path, {"url": served.url, "name": "s"}, **keys)
        assert soak("run", path, "--generations", 8, "-o", tmp_path / "a") == 0
        (tmp_path / "p.jsonl").write_text('"one"\n"three"\n')
        assert soak("run", path, "--generations", 12, "-o", tmp_path / "a") == 2
        assert "run of another plan" in soak.err
        assert soak("run", path, "--generations", 8, "-o", tmp_path / "b") == 0
    assert soak("compare", tmp_path / "a", tmp_path / "b") == 2
    assert "different prompts: content" in soak.err


@given(
    st.recursive(st.none() | st.floats() | st.text(max_size=5), lambda x: st.lists(x) | st.dictionaries(st.text(), x))
)
def test_no_page_of_a_server_breaks_what_is_written_down(told: object) -> None:
    facts = dict(identity._flat(told, "page"))
    assert all(isinstance(key, str) and isinstance(value, str) for key, value in facts.items())
    assert identity.differences(facts, facts) == []


def test_sessions_leave_out_pauses_and_standing_still() -> None:
    told = [("began", 100.0), ("health", 160.0), ("began", 500.0), ("ended", 530.0)]
    found = [Event(t, kind) for kind, t in told] + [Event(520.0, "paused", values={"seconds": 12.0})]
    assert Sessions.of(found).seconds == 60 + 30 - 12


# ------------------------------------------------------------------ merging


def test_one_seed_twice_is_refused(soak: Soak, tmp_path: Path) -> None:
    a = recorded.run(tmp_path / "a", {"0": (3, 300)}, seed=1)
    b = recorded.run(tmp_path / "b", {"0": (2, 200)}, seed=1)
    c = recorded.run(tmp_path / "c", {"1": (2, 200)}, seed=1)
    d = recorded.run(tmp_path / "d", {"0": (2, 200)}, seed=2)
    assert soak("merge", a, b, "-o", tmp_path / "m") == 2
    assert "so the same prompts, and one server" in soak.err
    assert soak("merge", a, b, "--same-prompts", "-o", tmp_path / "m") == 2
    assert soak("merge", a, c, "-o", tmp_path / "m") == 2
    assert soak("merge", a, c, "--same-prompts", "-o", tmp_path / "m") == 0
    assert soak("merge", a, d, "-o", tmp_path / "n") == 0


# ------------------------------------------------------------------ speculation, told by others than vLLM


def test_llama_cpp_tells_its_drafts_in_its_answers_and_its_log(soak: Soak, tmp_path: Path) -> None:
    async def answer(request: web.Request, n: int) -> web.StreamResponse:
        timings = {"draft_n": 12, "draft_n_accepted": 9}
        return web.json_response({"choices": [{"text": ENGLISH, "finish_reason": "stop"}], "timings": timings})

    page = "# TYPE llamacpp:requests_processing gauge\nllamacpp:requests_processing 3\nllamacpp:requests_deferred 2\n"
    with Served(Faults(script=answer, pages={"/metrics": page})) as served:
        path = plan(tmp_path, {"url": served.url, "name": "s"}, concurrency=2, max_tokens=40, stop={"generations": 10})
        assert soak("run", path, "-o", tmp_path / "r") == 0
        assert "up to 3 running, 2 waiting; drafts accepted 75.00 %, length not told: healthy" in soak.out
        assert soak("acceptance", "--plan", path, "-o", tmp_path / "p") == 0
        assert "90 of 120 draft tokens = 75.00 %, length not told" in soak.out
        assert soak("acceptance", "--plan", path, "-o", tmp_path / "q", "--loads", "1,x") == 2
    log = "slot 0 | draft acceptance rate = 0.57576 (  171 accepted /   297 generated)\n"
    positions = (
        "draft acceptance = 0.02 (    2 accepted /   100 generated) acceptance rate per position = (0.04, 0.00)\n"
    )
    (tmp_path / "log").write_text(log * 2)
    assert soak("acceptance", tmp_path / "log") == 0
    assert "342 of 594 draft tokens = 57.58 %" in soak.out
    (tmp_path / "log").write_text(positions)
    assert soak("acceptance", tmp_path / "log") == 1
    assert "2 of 100 draft tokens in 50 drafts" in soak.out


def test_sglang_tells_averages(soak: Soak, tmp_path: Path) -> None:
    labels = '{model_name="m",tp_rank="0"}'
    page = "".join(
        f"# TYPE sglang:{name} {kind}\nsglang:{name}{labels} {value}\n"
        for name, kind, value in (
            ("spec_accept_length", "gauge", 2.8),
            ("spec_accept_rate", "gauge", 0.6),
            ("num_running_reqs", "gauge", 7),
            ("generation_tokens_total", "counter", 9000),
        )
    )
    assert watch.counters(page)[watch.RUNNING] == 7
    (tmp_path / "page").write_text(page)
    assert soak("acceptance", tmp_path / "page") == 0
    assert "= 60.00 %, length 2.80" in soak.out
    dead = page.replace("2.8", "1.0").replace("0.6", "0.0") + f"sglang:spec_verify_calls_total{labels} 400\n"
    (tmp_path / "page").write_text(dead)
    assert soak("acceptance", tmp_path / "page") == 1
    assert "0 of 400 draft tokens in 400 drafts" in soak.out


@pytest.mark.parametrize(
    "page",
    [
        "vllm:spec_decode_num_drafts_total 5\n",
        "vllm:spec_decode_num_drafts_total NaN\nvllm:spec_decode_num_draft_tokens_total NaN\n",
        "vllm:spec_decode_num_drafts_total 5\nvllm:spec_decode_num_draft_tokens_total 15\n"
        "vllm:spec_decode_num_accepted_tokens_total NaN\n",
        "sglang:spec_accept_rate 0.0\nsglang:spec_accept_length 1.0\n",
        "sglang:spec_accept_rate NaN\n",
        '{"spec_decode_num_drafts": NaN}',
        '{"spec_decode_num_drafts": 1e999, "spec_decode_draft_tokens": 3, "spec_decode_accepted_tokens": 1}',
        '{"spec_decode_num_drafts": 3, "spec_decode_draft_tokens": [], "spec_decode_accepted_tokens": 1}',
        "----Speculative Decoding----\nDrafts: 1.2.3\nDraft tokens: 3\nAccepted tokens: 1\n",
        "SpecDecoding metrics: x, Accepted: 3 tokens, Drafted: 9 tokens, Per-position acceptance rate: nan, nan, Avg",
        "[" * 5000,
        "{" * 5000,
    ],
)
def test_counters_that_are_partial_or_no_numbers(soak: Soak, tmp_path: Path, page: str) -> None:
    (tmp_path / "page").write_text(page)
    assert soak("acceptance", tmp_path / "page") == 2
    assert soak.err.startswith(("error: ", str(tmp_path)))
    with pytest.raises(ToolError):
        drafts.read(page)
