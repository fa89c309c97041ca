"""What the tests of the configuration share."""

import shutil
from pathlib import Path

import pytest

from convs2s.config.load import load
from convs2s.config.settings import Settings


@pytest.fixture(scope="session")
def settings(root: Path) -> Settings:
    """The configuration as it comes."""
    return load(root, {})


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    """A folder with the configuration, to be changed."""
    shutil.copytree(root / "config", tmp_path / "config")
    shutil.copy(root / "config.yaml", tmp_path)
    return tmp_path
