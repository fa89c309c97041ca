"""What the golden tests share."""

from pathlib import Path

import pytest

from tests.support.golden import DATA
from tests.support.trained import import_trained


@pytest.fixture
def folder() -> Path:
    """fairseq's vectors over random weights."""
    return DATA / "fairseq_random"


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model file of fairseq's small trained network, with dropout 0."""
    return import_trained(tmp_path_factory.mktemp("trained"), dropout=0.0)
