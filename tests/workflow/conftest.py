"""The cluster that some tests of this folder share."""

from collections.abc import Iterator

import pytest
from snakemake.utils import available_cpu_count

from tests.workflow.slurm import Slurm, running_slurm


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    """A running single-machine Slurm.

    Its nodes claim to have more CPUs than the machine, for jobs that ask for that many.
    """
    with running_slurm(cpus=max(8, available_cpu_count() + 1)) as running:
        yield running
