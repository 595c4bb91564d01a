"""Reports and comparisons of runs whose counts are those of the origin reports."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import recorded
from running import Soak

from esimd_soak.judge import analysis
from esimd_soak.model import ToolError
from esimd_soak.plan import make
from esimd_soak.store import folder, table
from esimd_soak.store.records import Event, Generation


def register(soak: Soak, path: Path, a: str = "shipped", b: str = "rebuilt", size: int = 400) -> dict[str, object]:
    words = ["--hypothesis", "(a!) lowers the rate", "-a", a, "-b", b, "--size", size, "--stop", "at size"]
    assert soak("register", path, *words) == 0
    return dict(json.loads(path.read_bytes()))


def test_every_number_stands_with_its_parts(soak: Soak, tmp_path: Path) -> None:
    recorded.run(tmp_path / "r", {"0": (42, 12960), "1": (0, 7296)}, facts={"mode": "graph"})
    assert soak("report", tmp_path / "r") == 1
    assert (
        "run / s0 on 0: 42 in 12,960: 0.324 %, 95 % 0.23 % to 0.45 % (by 40 blocks); 100.0% of 12,960 judged"
        in soak.out
    )
    assert "design effect 1.0; were each collapse alone: exact 0.23 % to 0.44 %; Wilson 0.24 % to 0.44 %" in soak.out
    assert "0 in 7,296: below 0.041 % at 95 %, one-sided; two-sided 0.0505 %" in soak.out
    assert "20,256" not in soak.out
    assert "mode graph" in soak.out
    assert "s0 on 0: no sign of bursts" in soak.out


def test_bursts_are_seen_in_a_report(soak: Soak, tmp_path: Path) -> None:
    recorded.run(tmp_path / "r", {"0": (0, 4000)}, bad=lambda i: 1000 <= i < 1012 or 3000 <= i < 3012)
    soak("report", tmp_path / "r")
    assert "s0 on 0: in bursts: dispersion" in soak.out


def test_the_time_line_adds_up(tmp_path: Path) -> None:
    found = analysis.analyse(table.read([recorded.run(tmp_path / "r", {"0": (26, 2000)})]))
    line = found.servers[0].line
    assert line is not None
    assert sum(line.tokens) * line.width == pytest.approx(2000 * 300, rel=1e-4)
    assert (sum(line.generations), sum(line.collapses), len(line.moments)) == (2000, 26, 26)
    assert max(line.tokens[3:-3]) == pytest.approx(1200, rel=0.06)  # 300 tokens every quarter of a second
    assert min(line.tokens[3:-3]) == pytest.approx(1200, rel=0.06)
    assert line.steps[-1][1] == 26


def test_json_holds_the_same(soak: Soak, tmp_path: Path) -> None:
    recorded.run(tmp_path / "r", {"0": (26, 10560)})
    assert soak("report", tmp_path / "r", "--format", "json") == 1
    found = json.loads(soak.out)
    assert found["version"] == 2
    assert found["servers"][0]["collapses"]["events"] == 26
    assert [(f["code"], f["server"]) for f in found["findings"]] == [("collapse", "s0")]
    assert soak("report", tmp_path / "r", "--kinds", "nan") == 0
    assert soak("report", tmp_path / "r", "--kinds", "nam") == 2


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)
        self.outside += [value or "" for key, value in attrs if key in ("src", "href", "xlink:href")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(soak: Soak, tmp_path: Path) -> None:
    recorded.run(tmp_path / "r", {"0": (26, 2000), "<b>1": (0, 1500)})
    assert soak("report", tmp_path / "r", "--html", tmp_path / "r.html") == 1
    text = (tmp_path / "r.html").read_text()
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.outside == []
    assert "<script" not in text
    assert "@import" not in text
    assert "url(" not in text
    assert "&lt;b&gt;1" in text
    assert "<b>1" not in text
    assert text.count('<svg class="wide"') == text.count('<svg class="narrow"') == 4
    assert "26 / 2,000" in text
    assert "Well, then: !!!!" in text


def test_nothing_measured_is_not_clean(soak: Soak, tmp_path: Path) -> None:
    recorded.run(tmp_path / "r", {"0": (0, 0)})
    assert soak("report", tmp_path / "r") == 2
    assert "nothing measured" in soak.out
    assert soak("report", tmp_path) == 2
    assert "expected a run" in soak.err


def test_a_broken_line_is_an_error_a_torn_last_one_is_not(soak: Soak, tmp_path: Path) -> None:
    recorded.run(tmp_path / "r", {"0": (0, 30)})
    path = folder.segments(tmp_path / "r", "generations")[0]
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert soak("report", tmp_path / "r") == 0
    assert "0 in 29" in soak.out
    path.write_bytes(whole[:100] + b"\n" + whole[100:])
    assert soak("report", tmp_path / "r") == 2
    assert "line 1 is not a record" in soak.err


def test_a_client_that_was_late_voids_the_report(soak: Soak, tmp_path: Path) -> None:
    recorded.run(tmp_path / "r", {"0": (0, 30)})
    with folder.segments(tmp_path / "r", "events")[0].open("ab") as file:
        file.write(
            b'{"t":1800000000,"kind":"health","values":{"lag_p99_ms":500,"lag_limit_ms":100,"lag_over":9,"cpu":0.99}}\n'
        )
    assert soak("report", tmp_path / "r") == 2
    assert "NOT TO BE TRUSTED: run: the client was the bottleneck: the event loop came round late" in soak.out


def test_bare_counts_reproduce_the_origin_reports(soak: Soak) -> None:
    assert soak("compare", "--counts", "42/12960", "32/13056") == 0
    assert "two-proportion z = 1.20, p = 0.23" in soak.out
    assert "post hoc" in soak.out
    assert soak("compare", "--counts", "22/10176", "15/10176") == 0
    assert "p = 0.25" in soak.out
    assert soak("compare", "--counts", "42/12,960", "24/12,960") == 1
    assert "z = 2.22, p = 0.027" in soak.out
    assert soak("compare", "--counts", "42/12960", "x") == 2
    assert soak("compare", "--counts", "2/1", "0/1") == 2
    assert soak("compare") == 2


def test_power_says_how_many(soak: Soak) -> None:
    assert soak("power", "--rate", 0.0025, "--ratio", 1.5, "--generations", 13000) == 0
    need = int(re.search(r"([\d,]+) generations an arm", soak.out)[1].replace(",", ""))  # type: ignore[index]
    assert 31000 < need < 32000
    assert "13,000 an arm find it with a chance of 4" in soak.out
    assert soak("power", "--rate", 2) == 2


def test_a_registered_comparison(soak: Soak, tmp_path: Path) -> None:
    sealed = register(soak, tmp_path / "reg.json")
    a = recorded.run(tmp_path / "a", {"0": (20, 400)}, name="shipped", registration=sealed, cache="/c/a")
    b = recorded.run(tmp_path / "b", {"0": (5, 400)}, name="rebuilt", registration=sealed, cache="/c/b")
    assert soak("compare", a, b, "--registration", tmp_path / "reg.json") == 1
    assert "post hoc" not in soak.out
    assert "different" in soak.out.splitlines()[-1]
    assert soak("compare", a, b) == 1
    assert "post hoc" in soak.out
    assert soak("compare", b, a, "--registration", tmp_path / "reg.json") == 2
    other = recorded.run(tmp_path / "c", {"0": (5, 400)}, name="rebuilt", cache="/c/b")
    assert soak("compare", a, other, "--registration", tmp_path / "reg.json") == 2
    assert "was not run under this registration" in soak.err
    short = recorded.run(tmp_path / "d", {"0": (5, 300)}, name="rebuilt", registration=sealed, cache="/c/b")
    soak("compare", a, short, "--registration", tmp_path / "reg.json")
    assert "300 of the registered 400: stopped early" in soak.out
    text = (tmp_path / "reg.json").read_text()
    (tmp_path / "reg.json").write_text(text.replace('"size": 400', '"size": 300'))
    assert soak("compare", a, b, "--registration", tmp_path / "reg.json") == 2
    assert "changed after it was sealed" in soak.err
    assert (
        soak("register", tmp_path / "reg.json", "--hypothesis", "x", "-a", "a", "-b", "b", "--size", 1, "--stop", "x")
        == 2
    )


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ({"cards": {"0": (3, 300), "1": (2, 300)}}, {"cards": {"0": (3, 300)}}, "aggregate of several cards"),
        ({"concurrency": 48}, {"concurrency": 96}, "different concurrency: 48 and 96"),
        ({"cache": "/c/shared"}, {"cache": "/c/shared"}, "shared a compile cache (/c/shared)"),
        ({"max_tokens": 512}, {"max_tokens": 128}, "different max_tokens"),
        ({"temperature": 0.0}, {}, "different temperature"),
        ({"cards": {"0": (0, 0)}}, {}, "nothing was scored"),
    ],
)
def test_what_must_not_be_compared_is_refused(
    soak: Soak, tmp_path: Path, a: dict[str, object], b: dict[str, object], message: str
) -> None:
    made = [
        recorded.run(tmp_path / name, **{"cards": {"0": (3, 300)}, "name": name, "cache": f"/c/{name}", **keys})  # type: ignore[arg-type]
        for name, keys in (("a", a), ("b", b))
    ]
    assert soak("compare", *made) == 2
    assert message in soak.err
    assert soak.out == ""


def test_one_card_of_two_against_one_is_allowed(soak: Soak, tmp_path: Path) -> None:
    a = recorded.run(tmp_path / "a", {"0": (3, 300), "1": (2, 300)}, name="a", cache="/c/a")
    b = recorded.run(tmp_path / "b", {"0": (3, 300)}, name="b", cache="/c/b")
    assert soak("compare", a, b, "--card-a", "0") == 0
    assert "a on 0: 3/300" in soak.out
    assert soak("compare", a, b, "--card-a", "7") == 2
    assert "no card 7" in soak.err


def test_merge_is_the_sum_and_refuses_doubles(soak: Soak, tmp_path: Path) -> None:
    a = recorded.run(tmp_path / "a", {"0": (3, 300)}, seed=1)
    b = recorded.run(tmp_path / "b", {"1": (2, 200)}, seed=2)
    assert soak("merge", a, b, "-o", tmp_path / "m") == 0
    assert soak("report", tmp_path / "m") == 1
    assert "s0 on 0 3/300; run / s1 on 1 2/200" in soak.out
    assert sum(1 for _ in folder.read(tmp_path / "m", "generations", Generation)) == 500
    assert sum(1 for _ in folder.read(tmp_path / "m", "events", Event)) == 6
    assert soak("merge", a, a, "-o", tmp_path / "n") == 2
    assert "given twice" in soak.err
    assert soak("merge", a, tmp_path / "m", "-o", tmp_path / "n") == 2
    assert soak("report", a, tmp_path / "m") == 2
    assert "counts once" in soak.err
    other = recorded.run(tmp_path / "o", {"2": (2, 200)}, concurrency=7)
    assert soak("merge", a, other, "-o", tmp_path / "n") == 2
    assert "differs from that of" in soak.err
    assert "concurrency" in soak.err
    assert soak("merge", a, b, "-o", tmp_path / "m") == 2
    assert "new or empty folder" in soak.err


def test_parquet_holds_every_field(soak: Soak, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    recorded.run(tmp_path / "a", {"0": (3, 300)}, name="one")
    assert soak("export", tmp_path / "a", "-o", tmp_path / "a.parquet") == 0
    found = pq.read_table(tmp_path / "a.parquet").to_pylist()
    records = list(folder.read(tmp_path / "a", "generations", Generation))
    assert len(found) == len(records) == 300
    for row, record in zip(found, records, strict=True):
        assert row.pop("run_name") == "one"
        row |= {"kinds": tuple(row["kinds"]), "gaps": dict(row["gaps"])}
        assert row == {f: getattr(record, f) for f in record.__struct_fields__}


def test_text_that_exists_is_scored(soak: Soak, tmp_path: Path) -> None:
    good, bad = "All is well on the river.", "!" * 120
    lines = [{"text": good}, bad, {"choices": [{"text": good}, {"message": {"content": bad}}]}, {"output": good}]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    assert soak("score", tmp_path / "a.jsonl") == 1
    assert "2 in 5: 40.0 %" in soak.out
    assert "a.jsonl:3.choices[1]: run, entropy: longest run 120 of '!'" in soak.out
    bench = {"generated_texts": [good, good, bad], "completed": 3}
    (tmp_path / "bench.json").write_text(json.dumps(bench, indent=2))
    assert soak("score", tmp_path / "bench.json", "--format", "json") == 1
    assert json.loads(soak.out)["place"].endswith("generated_texts[2]")
    (tmp_path / "plain.txt").write_text(f"{good}\n{good}\n")
    assert soak("score", tmp_path / "plain.txt", "--text") == 0
    assert "0 in 2" in soak.out
    (tmp_path / "other.json").write_text('{"completed": 3}')
    assert soak("score", tmp_path / "other.json", tmp_path / "plain.txt") == 2
    assert "found completed" in soak.err
    (tmp_path / "empty").write_text("")
    assert soak("score", tmp_path / "empty") == 2
    assert soak("score", tmp_path / "missing") == 2
    assert "cannot read" in soak.err


def test_a_run_of_the_format_before_can_be_reported_on_but_not_gone_on_with(soak: Soak, tmp_path: Path) -> None:
    run = recorded.run(tmp_path / "r", {"0": (3, 300)}, cache="/c/r")
    meta = json.loads((run / "meta.json").read_bytes())
    known = ("server", "name", "seed", "concurrency", "max_tokens", "count", "stop", "limits", "facts")
    meta |= {"version": 1, "plan": {key: meta["plan"][key] for key in known}}
    meta["plan"]["limits"] = {"run": 80, "cycle": 192, "copies": 3, "period": 128, "entropy": 1.0, "tail": 256}
    (run / "meta.json").write_text(json.dumps(meta))
    with folder.segments(run, "generations")[0].open("a") as file:
        old = {"n": 300, "server": "s0", "card": "0", "position": 300, "planned": 1.0, "start": 1.0, "end": 2.0}
        file.write(json.dumps(old | {"error": "http 500: x"}) + "\n")
    assert soak("report", run) == 1
    assert "3 in 300" in soak.out
    assert "http 500 1" in soak.out
    with pytest.raises(ToolError, match="begun with format 1"):
        folder.open_run(run, make({"server": [{"url": "http://x"}], "batches": 1}, "here"))
    meta["version"] = 9
    (run / "meta.json").write_text(json.dumps(meta))
    assert soak("report", run) == 2
