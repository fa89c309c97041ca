"""What the tests of the configuration share."""

from pathlib import Path

import pytest

from convs2s.config.load import load
from convs2s.config.settings import Settings


@pytest.fixture(scope="session")
def settings(root: Path) -> Settings:
    """The configuration as it comes, at scale paper."""
    return load(root, {})
