"""The cluster that the tests of this folder share."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from snakemake.utils import available_cpu_count

from tests.support.slurm import Slurm, missing_programs, running_slurm


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    """A running single-machine Slurm; its folder is near the root as sockets' paths are short.

    Its nodes claim to have more CPUs than the machine, for jobs that ask for that many.
    """
    missing = missing_programs()
    if missing:
        pytest.skip(f"Slurm is not installed here: no {', '.join(missing)}")
    with tempfile.TemporaryDirectory(prefix="slurm-") as name:
        folder = Path(name)
        with running_slurm(folder, cpus=max(8, available_cpu_count() + 1)) as running:
            yield running
