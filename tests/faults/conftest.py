"""What the tests of faults share."""

from pathlib import Path

import pytest

from tests.support import tiny


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "downloads" / "a.tgz"


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.trained_model(tmp_path_factory.mktemp("model"))
