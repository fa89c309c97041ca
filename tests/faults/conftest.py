"""What the tests of faults share."""

from pathlib import Path

import pytest


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "downloads" / "a.tgz"
