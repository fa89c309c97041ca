"""What several unit tests share."""

import shutil
from pathlib import Path

import pytest

from convs2s.training.run import TrainingJob, train
from tests.unit import tiny


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    path = folder / "model.safetensors"
    train(TrainingJob(tiny.prepare(folder / "task"), tiny.settings(), 1, path, None, "cpu", 1))
    return path


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    """A folder with the configuration, to be changed."""
    shutil.copytree(root / "config", tmp_path / "config")
    shutil.copy(root / "config.yaml", tmp_path)
    return tmp_path
