"""The cluster that the tests of this folder share."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.slurm import Slurm, missing_programs, running_slurm


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    """A running single-machine Slurm; its folder is near the root as sockets' paths are short."""
    missing = missing_programs()
    if missing:
        pytest.skip(f"Slurm is not installed here: no {', '.join(missing)}")
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, running_slurm(Path(folder)) as it:
        yield it
