"""What the tests of a release share."""

from pathlib import Path

import pytest

from tests.support.wheel import Release, build


@pytest.fixture(scope="session")
def release(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Release:
    return build(root, tmp_path_factory.mktemp("release"))
