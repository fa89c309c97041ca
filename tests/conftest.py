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
    """The folder of golden outputs and real text, beside the repository or where CONVS2S_SHARED says."""
    folder = Path(os.environ.get("CONVS2S_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no golden data: {folder} is absent (set CONVS2S_SHARED to its place)")
    return folder
