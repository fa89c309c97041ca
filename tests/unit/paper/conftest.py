"""What tests of the papers' exhibits share; no test changes the settings."""

from pathlib import Path

import pytest

from convs2s.config.load import load
from convs2s.config.settings import Settings


@pytest.fixture(scope="session")
def paper(root: Path) -> Settings:
    return load(root, {"scale": "paper"})


@pytest.fixture(scope="session")
def demo(root: Path) -> Settings:
    return load(root, {"scale": "demo"})


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test in its own folder: a scale's paths are relative."""
    monkeypatch.chdir(tmp_path)
