"""What the tests of faults share."""

from pathlib import Path

import pytest

from convs2s.training.run import train
from tests.support import tiny


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "downloads" / "a.tgz"


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    path = folder / "model.safetensors"
    train(tiny.job(tiny.prepare(folder / "task"), path))
    return path
