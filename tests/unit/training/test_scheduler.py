"""What the environment says of the job that a training runs in."""

import pytest

from convs2s.pipeline.living import RUN
from convs2s.training.scheduler import (
    SCHEDULERS,
    begin_run,
    end_of_job,
    is_in_a_job,
    own_slurm_job,
)


def test_slurm_says_when_a_job_ends() -> None:
    assert end_of_job({"SLURM_JOB_END_TIME": "1763790000"}) == 1763790000
    assert end_of_job({}) is None
    assert end_of_job({"SLURM_JOB_END_TIME": "Unknown"}) is None


@pytest.mark.parametrize("variable", SCHEDULERS.values())
def test_a_job_of_a_scheduler_is_known_by_its_variable(variable: str) -> None:
    assert is_in_a_job({variable: "7"})
    assert not is_in_a_job({"HOME": "/root"})


def test_a_job_of_a_run_keeps_the_name_of_the_run() -> None:
    first: dict[str, str] = {}
    begin_run(first)
    job = dict(first)
    begin_run(job)
    assert job == first
    other: dict[str, str] = {}
    begin_run(other)
    assert other != first


def test_a_slurm_job_that_snakemake_runs_in_is_no_trainings_own() -> None:
    shared = {"SLURM_JOB_ID": "7"}
    assert own_slurm_job(shared) == "7"  # by hand
    begin_run(shared)
    assert own_slurm_job(shared) is None
    assert own_slurm_job(shared | {"SLURM_JOB_ID": "8"}) == "8"
    assert own_slurm_job({"SLURM_JOB_ID": "8", RUN: "@login:5:1"}) == "8"
    assert own_slurm_job({}) is None
