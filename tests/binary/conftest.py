import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `stable` and `sites`
import sites
import stable


@pytest.fixture(autouse=True)
def no_compile_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORCHINDUCTOR_CACHE_DIR", "VLLM_CACHE_ROOT", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "no-caches" / name))


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with three operators of the table and one that no table knows; not to be written."""
    folder = tmp_path_factory.mktemp("built")
    return stable.build(folder / "_C.so", stable.source(stable.quoted("fp16", "norm", "add", "other")))


@pytest.fixture
def site(tmp_path: Path, library: Path) -> Path:
    return sites.make(tmp_path / "lib" / "site-packages", library)
