"""What every test can ask for."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of golden outputs and real text: CONVS2S_SHARED, or beside the repository."""
    folder = Path(os.environ.get("CONVS2S_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no golden data: {folder} is absent (set CONVS2S_SHARED to its place)")
    return folder
