"""What several tests of trainings share."""

from pathlib import Path

import pytest

from tests.support import tiny


@pytest.fixture(scope="session")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny task, prepared once; no test changes it."""
    return tiny.prepare(tmp_path_factory.mktemp("task"))
