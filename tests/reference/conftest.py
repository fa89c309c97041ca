"""What the golden tests share."""

from pathlib import Path

import pytest

from tests.support.golden import DATA, import_trained


@pytest.fixture(
    scope="session", params=["own", pytest.param("shared", marks=pytest.mark.shared)]
)
def golden(request: pytest.FixtureRequest) -> Path:
    """The original tools' output of this project's text, and of real text beside it.

    The folders are called ``data`` and ``golden``.
    """
    if request.param == "own":
        return DATA
    shared: Path = request.getfixturevalue("shared")
    return shared / "golden"


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model file of fairseq's small trained network, with dropout 0."""
    return import_trained(tmp_path_factory.mktemp("trained"), dropout=0.0)
