"""What the tests of a release share."""

from pathlib import Path

import pytest

from convs2s.training.run import train
from tests.support import tiny
from tests.support.wheel import Release, build


@pytest.fixture(scope="session")
def release(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Release:
    return build(root, tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model file of a tiny training, in a folder with its records."""
    folder = tmp_path_factory.mktemp("trained")
    path = folder / "models/tiny/seed1/model.safetensors"
    train(tiny.job(tiny.prepare(folder / "task"), path))
    return path
