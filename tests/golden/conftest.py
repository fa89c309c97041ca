"""What the tests against the peer implementation share."""

from pathlib import Path

import pytest


@pytest.fixture
def folder(shared: Path) -> Path:
    """The peer's vectors."""
    return shared / "golden" / "fairseq"
