"""What the golden tests share."""

from pathlib import Path

import pytest

from tests.support.golden import DATA


@pytest.fixture
def folder() -> Path:
    """fairseq's vectors over random weights."""
    return DATA / "fairseq_random"
