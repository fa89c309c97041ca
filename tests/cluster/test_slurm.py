"""The Slurm of these tests has bad days as a real one has: what other tests here rely on."""

import time
from collections.abc import Callable

import pytest

from tests.support.slurm import Slurm

pytestmark = pytest.mark.slurm

SECONDS = 60


def submit(slurm: Slurm, options: str = "", command: str = "sleep 600") -> str:
    """Submit a job, which may not be queued again; its number."""
    given = f"sbatch --parsable --output=/dev/null --no-requeue {options}"
    return slurm.ask(*given.split(), "--wrap", command)


def running(slurm: Slurm) -> str:
    """Submit a job that runs until something happens to it; its number once it runs."""
    job = submit(slurm)
    until(slurm, lambda: state(slurm, job) == "RUNNING")
    return job


def state(slurm: Slurm, job: str) -> str:
    """What the accounting knows of the job, as Snakemake asks it."""
    return slurm.ask("sacct", "-X", "-n", "-P", "-j", job, "-o", "State")


def until(slurm: Slurm, condition: Callable[[], bool]) -> None:
    """Wait for something; fails where it does not come."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, slurm.logs()
        time.sleep(0.2)


def test_a_node_that_fails_ends_its_jobs_and_comes_back(slurm: Slurm) -> None:
    job = running(slurm)
    node = slurm.ask("squeue", "-h", "-j", job, "-o", "%N")
    with slurm.without_node(node):
        until(slurm, lambda: state(slurm, job) == "NODE_FAIL")
        assert slurm.ask("sinfo", "-h", "-n", node, "-p", "main", "-o", "%T") == "down"
    slurm.wait_for_answers()


def test_jobs_outlive_the_controller_and_the_accounting(slurm: Slurm) -> None:
    job = running(slurm)
    with slurm.without("slurmctld"):
        assert slurm.ask("squeue", "-h") == ""
        assert state(slurm, job) == "RUNNING"
    with slurm.without("slurmdbd"):
        assert state(slurm, job) == ""
    slurm.ask("scancel", job)
    # Snakemake's plugin compares with the word alone.
    until(slurm, lambda: state(slurm, job).startswith("CANCELLED by "))


def test_partitions_limit_time_and_give_way(slurm: Slurm) -> None:
    late = submit(slurm, "-p short -t 31")
    until(
        slurm,
        lambda: (
            slurm.ask("squeue", "-h", "-j", late, "-o", "%r") == "PartitionTimeLimit"
        ),
    )
    slurm.ask("scancel", late)
    job = running(slurm)
    submit(slurm, "-p urgent --exclusive --nodes=2", "true")
    until(slurm, lambda: state(slurm, job) == "PREEMPTED")
