"""A registration cannot be got round: more data, other kinds, an early end, a look in between, a part of an arm."""

import json
from pathlib import Path

import pytest
import recorded
from running import Soak, generations, plan
from server import Faults, Served

from esimd_soak.judge.registration import Preregistration


def register(soak: Soak, path: Path, size: int = 400, *words: object) -> dict[str, object]:
    told = ["--hypothesis", "(a!) lowers the rate", "-a", "a", "-b", "b", "--size", size, "--stop", "at size"]
    assert soak("register", path, *told, *words) == 0
    return dict(json.loads(path.read_bytes()))


def arms(
    tmp_path: Path, sealed: dict[str, object], a: tuple[int, int], b: tuple[int, int], **keys: object
) -> list[Path]:
    return [
        recorded.run(tmp_path / name, {"0": counts}, name=name, registration=sealed, cache=f"/c/{name}", **keys)  # type: ignore[arg-type]
        for name, counts in (("a", a), ("b", b))
    ]


def test_kept_to_it_has_a_verdict(soak: Soak, tmp_path: Path) -> None:
    pair = arms(tmp_path, register(soak, tmp_path / "reg"), (40, 400), (8, 400))
    assert soak("compare", *pair, "--registration", tmp_path / "reg") == 1
    assert soak.out.splitlines()[-1] == "different"
    assert "NOT AS REGISTERED" not in soak.out
    assert soak("compare", *pair, "--registration", tmp_path / "reg", "--format", "json") == 1
    found = json.loads(soak.out)
    assert (found["as_registered"], found["different"]) == (True, True)
    assert soak("compare", *pair) == 1
    assert "these runs belong to a registration, by which this comparison is not made" in soak.out


@pytest.mark.parametrize(
    ("a", "b", "words", "told"),
    [
        ((40, 410), (8, 400), [], "a has 410 of the registered 400: more than was registered"),
        ((40, 400), (8, 300), [], "b has 300 of the registered 400: stopped early, or not yet complete"),
        ((40, 400), (8, 400), ["--kinds", "run"], "a is counted by run"),
        ((40, 400), (8, 400), ["--card-a", "0", "--card-b", "0"], "only card 0 of a is compared"),
    ],
)
def test_departures_are_named_everywhere(
    soak: Soak, tmp_path: Path, a: tuple[int, int], b: tuple[int, int], words: list[str], told: str
) -> None:
    pair = arms(tmp_path, register(soak, tmp_path / "reg"), a, b)
    assert soak("compare", *pair, "--registration", tmp_path / "reg", *words) == 2
    assert f"NOT AS REGISTERED: {told}" in soak.out
    assert "so no verdict" in soak.out.splitlines()[-1]
    assert soak("compare", *pair, "--registration", tmp_path / "reg", *words, "--format", "json") == 2
    found = json.loads(soak.out)
    assert (found["as_registered"], found["different"]) == (False, None)
    if "registered" in told:
        wrong = pair[0] if told.startswith("a") else pair[1]
        soak("report", wrong, "--html", tmp_path / "page.html")
        assert f"NOT AS REGISTERED: {told}" in soak.out
        assert f"NOT AS REGISTERED: {told}" in (tmp_path / "page.html").read_text()
        soak("report", wrong, "--format", "json")
        assert told in json.loads(soak.out)["departed"]


def test_kinds_that_were_registered_are_the_ones_that_count(soak: Soak, tmp_path: Path) -> None:
    pair = arms(tmp_path, register(soak, tmp_path / "reg", 400, "--kinds", "run,nan"), (40, 400), (8, 400))
    assert soak("compare", *pair, "--registration", tmp_path / "reg", "--kinds", "run,nan") == 1
    assert soak("compare", *pair, "--registration", tmp_path / "reg") == 2
    assert soak("register", tmp_path / "x", "--hypothesis", "x", "-a", "a", "-b", "a", "--size", 1, "--stop", "x") == 2


def test_looks_that_were_registered(soak: Soak, tmp_path: Path) -> None:
    sealed = register(soak, tmp_path / "reg", 4000, "--looks", 4)
    pair = arms(tmp_path, sealed, (10, 1000), (8, 1000))
    assert soak("compare", *pair, "--registration", tmp_path / "reg") == 0
    assert "look 1 of 4, at 1,000 an arm: different below p = 1.5e-05" in soak.out
    for name in "ab":
        (tmp_path / name).rename(tmp_path / f"first-{name}")
    pair = arms(tmp_path, sealed, (20, 3000), (90, 3000))
    assert soak("compare", *pair, "--registration", tmp_path / "reg") == 1
    assert "look 3 of 4" in soak.out
    for name in "ab":
        (tmp_path / name).rename(tmp_path / f"second-{name}")
    pair = arms(tmp_path, sealed, (20, 3100), (90, 3000))
    assert soak("compare", *pair, "--registration", tmp_path / "reg") == 2
    assert "between two looks" in soak.out


def test_a_run_ends_at_the_registered_size_and_resumes(soak: Soak, tmp_path: Path) -> None:
    register(soak, tmp_path / "reg", 60)
    with Served(Faults(delay=0.005)) as served:
        keys = {"name": "a", "concurrency": 4, "max_tokens": 40}
        path = plan(tmp_path, {"url": served.url, "name": "s"}, **keys, stop={"seconds": 60})
        words = [path, "-o", tmp_path / "r"]
        assert soak("run", *words, "--registration", tmp_path / "reg", "--generations", 20) == 0
        assert "NOT AS REGISTERED: a has 20 of the registered 60: stopped early" in soak.out
        assert soak("run", *words, "--registration", tmp_path / "reg", "--generations", 40) == 0
        assert soak("run", *words) == 0, "the run's own registration binds it, named or not"
        assert len(generations(tmp_path / "r")) == 60
        assert "NOT AS REGISTERED" not in soak.out
        assert soak("run", *words, "--generations", 61) == 2
        assert "more data than registered is another experiment" in soak.err
        assert soak("run", *words, "--collapses", 3) == 2
        assert "not at a number of collapses" in soak.err
        path = plan(tmp_path, {"url": served.url, "name": "s"}, **{**keys, "name": "c"}, stop={"seconds": 60})
        assert soak("run", path, "-o", tmp_path / "c", "--registration", tmp_path / "reg") == 2
        assert "this plan is named c" in soak.err


def test_a_registration_from_before_looks_existed_is_still_sealed() -> None:
    old = Preregistration("h", "a", "b", 40, "at size", test="two-proportion")
    # As the version before wrote it: neither `looks` in the file nor in its hash.
    assert old.seal() == "89a7e703fb1fff01dba5b0efff2cb0e0296b383d1bbbeb68659ce452fd204a0c"
