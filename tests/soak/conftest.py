import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))  # for `running`, `recorded` and `server`

from running import Soak

settings.register_profile("soak", deadline=None)  # a busy machine is no defect
settings.load_profile("soak")


@pytest.fixture
def soak(capsys: pytest.CaptureFixture[str]) -> Soak:
    return Soak(capsys)
