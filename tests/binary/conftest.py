import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `stable`


@pytest.fixture(autouse=True)
def no_compile_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORCHINDUCTOR_CACHE_DIR", "VLLM_CACHE_ROOT", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "no-caches" / name))
