"""What the environment says of the job that a training runs in."""

import os

import pytest

from convs2s.pipeline.living import RUN
from convs2s.training.scheduler import (
    SCHEDULERS,
    begin_run,
    end_of_job,
    is_in_a_job,
    own_slurm_job,
)


def end_in(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> float | None:
    monkeypatch.setattr(os, "environ", environment)
    return end_of_job()


def job_in(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> str | None:
    monkeypatch.setattr(os, "environ", environment)
    return own_slurm_job()


def test_slurm_says_when_a_job_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert end_in(monkeypatch, {"SLURM_JOB_END_TIME": "1763790000"}) == 1763790000
    assert end_in(monkeypatch, {}) is None
    assert end_in(monkeypatch, {"SLURM_JOB_END_TIME": "Unknown"}) is None


@pytest.mark.parametrize("variable", SCHEDULERS.values())
def test_a_job_of_a_scheduler_is_known_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setattr(os, "environ", {variable: "7"})
    assert is_in_a_job()
    monkeypatch.setattr(os, "environ", {"HOME": "/root"})
    assert not is_in_a_job()


def test_a_job_of_a_run_keeps_the_name_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first: dict[str, str] = {}
    monkeypatch.setattr(os, "environ", first)
    begin_run()
    job = dict(first)
    monkeypatch.setattr(os, "environ", job)
    begin_run()
    assert job == first
    other: dict[str, str] = {}
    monkeypatch.setattr(os, "environ", other)
    begin_run()
    assert other != first


def test_a_slurm_job_that_snakemake_runs_in_is_no_trainings_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = {"SLURM_JOB_ID": "7"}
    assert job_in(monkeypatch, shared) == "7"  # by hand
    begin_run()
    assert job_in(monkeypatch, shared) is None
    assert job_in(monkeypatch, shared | {"SLURM_JOB_ID": "8"}) == "8"
    assert job_in(monkeypatch, {"SLURM_JOB_ID": "8", RUN: "@login:5:1"}) == "8"
    assert job_in(monkeypatch, {}) is None
