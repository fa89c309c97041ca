"""What the tests against fairseq share."""

from pathlib import Path

import pytest


@pytest.fixture
def folder(shared: Path) -> Path:
    """fairseq's vectors."""
    return shared / "golden" / "fairseq"
