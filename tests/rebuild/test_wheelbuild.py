"""The build's environment, what its log tells a user, and the end of its processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from schema_patch.build import wheelbuild
from schema_patch.build.wheelbuild import Settings
from schema_patch.model import ToolError

from .recorded import stand_in

# What pip prints of a build by torch's ninja, and by icpx.
LOG = """\
Building wheel for kit (pyproject.toml): started
  building 'kit._C' extension
  [1/3] c++ -MMD -MF build/a.o.d -O3 -fPIC -I/x/csrc -c -c /x/csrc/a b.cpp -o /x/build/a.o -std=c++20
  [2/3] icpx -O3 -fPIC -c -fsycl -c -x c++ /x/csrc/kernel.sycl -o /x/build/kernel.sycl.o -fsycl-targets=spir64
  ninja: no work to do of [9/9]
  [3/3] icpx /x/build/a.o /x/build/kernel.sycl.o -o /x/build/sycl_dlink.o -fsycl -fsycl-link -Xs "-device bmg"
  [1/1] c++ -MMD -c /x/csrc/other.cc -o /x/build/other.o
"""


class Heard:
    """A progress that notes what it is told."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.counts: list[int] = []

    def __call__(self, path: str) -> None:
        self.paths.append(path)

    def expect(self, count: int) -> None:
        self.counts.append(count)


def settings(python: Path, **changes: object) -> Settings:
    return Settings(**{"python": str(python), "scripts": "/env/bin", "jobs": 3, "epoch": 7, **changes})  # type: ignore[arg-type]


def built(tmp_path: Path, said: str, code: int = 0, wheels: int = 1) -> tuple[Path, Heard, Path]:
    into, log, heard = tmp_path / "wheel", tmp_path / "build.log", Heard()
    into.mkdir()
    made = "; ".join(f"touch {into}/{number}.whl" for number in range(wheels)) or ":"
    python = stand_in(tmp_path / "tools", "python", said, code, script=made)
    return wheelbuild.build(tmp_path, into, log, settings(python), Path("mine"), heard, heard.expect), heard, log


def test_each_step_is_told(tmp_path: Path) -> None:
    wheel, heard, log = built(tmp_path, LOG)
    assert wheel.name == "0.whl"
    assert heard.counts == [3, 1]
    assert [path for path in heard.paths if not path.startswith("icpx")][:2] == ["b.cpp", "kernel.sycl"]
    assert len(heard.paths) == 4
    assert heard.paths[-1] == "other.cc"
    assert log.read_text().splitlines()[1:] == LOG.splitlines()


@pytest.mark.parametrize(
    ("code", "wheels", "expected"), [(3, 1, "exit code 3"), (0, 0, "found none"), (0, 2, "0.whl, 1.whl")]
)
def test_no_wheel_is_an_error(tmp_path: Path, code: int, wheels: int, expected: str) -> None:
    with pytest.raises(ToolError, match=expected):
        built(tmp_path, "x.cpp:1:1: error: what it was\n" + "and so on\n" * 30, code, wheels)


def test_a_failure_shows_the_first_errors_and_the_end(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as raised:
        built(tmp_path, "x.cpp:1:1: error: what it was\n" + "and so on\n" * 30, 1)
    assert "x.cpp:1:1: error: what it was" in raised.value.message
    assert raised.value.message.count("and so on") == wheelbuild.LAST_WORDS


# What pip prints of a build by ninja in which two of three steps fail, one of them twice tried.
FAILING = """\
  [1/4] icpx -c {0}/csrc/a.sycl -o a.o
  FAILED: [code=1] /x/a.o
  icpx -c {0}/csrc/a.sycl -o a.o
  {0}/csrc/a.sycl:7:27: error: use of undeclared identifier 'x'
      7 | int a() {{ return x; }}
        |                  ^
  [2/4] c++ -c b.cpp -o b.o
  [3/4] icpx -fsycl-link a.o -o dlink.o
  FAILED: dlink.o
  icpx -fsycl-link a.o -o dlink.o
  icpx: error: ocloc ended with exit code 245 for bmg, kernel k
  undefined reference to `f'
  FAILED: [code=1] /x/a.o
  icpx -c {0}/csrc/a.sycl -o a.o
  {0}/csrc/a.sycl:7:27: error: use of undeclared identifier 'x'
      7 | int a() {{ return x; }}
        |                  ^
  ninja: build stopped: subcommand failed.
  Traceback (most recent call last):
  RuntimeError: Error compiling objects for extension
  error: subprocess-exited-with-error
"""


def test_what_compilers_have_said_is_told_once_at_the_users_path(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as raised:
        built(tmp_path, FAILING.format(tmp_path), 1)
    assert (
        raised.value.message
        == """\
the build failed with exit code 1; what failed said:
    mine/csrc/a.sycl:7:27: error: use of undeclared identifier 'x'
        7 | int a() { return x; }
          |                  ^
    icpx: error: ocloc ended with exit code 245 for bmg, kernel k
    undefined reference to `f'"""
    )


def test_the_environment(tmp_path: Path) -> None:
    chosen = settings(tmp_path, arch="bmg", prefix="/env", libraries="/oneapi/lib")
    env = wheelbuild.environment(tmp_path / "a b", chosen, {"PATH": "/bin", "CPPFLAGS": "-DX", "LIBRARY_PATH": "/mine"})
    assert env == {
        "PATH": "/env/bin:/bin", "SOURCE_DATE_EPOCH": "7", "PYTHONHASHSEED": "0", "MAX_JOBS": "3",
        "CPPFLAGS": f"-DX -ffile-prefix-map=/env=python '-ffile-prefix-map={tmp_path}/a b=.'",
        "TORCH_XPU_ARCH_LIST": "bmg", "LIBRARY_PATH": "/mine:/oneapi/lib",
    }  # fmt: skip
    own = settings(tmp_path, prefix="/env", variables=(("CMPLR_ROOT", "/work/compiler"),))
    maps = wheelbuild.environment(tmp_path, own, {})["CPPFLAGS"].split()  # of several that fit, the last counts
    assert [word.rpartition("=")[2] for word in maps] == ["python", "compiler", "."]
    assert "-ffile-prefix-map=/work/compiler=compiler" in maps  # it lies where a wheel is put, elsewhere each time
    plain = wheelbuild.environment(tmp_path, settings(tmp_path), {"TORCH_XPU_ARCH_LIST": "pvc"})
    assert (plain["TORCH_XPU_ARCH_LIST"], plain.get("LIBRARY_PATH")) == ("pvc", None)
