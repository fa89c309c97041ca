"""Which failed trainings are started again, with which attempt, and what Slurm's silence does."""

import asyncio
import itertools
import logging
import os
import subprocess
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from convs2s.pipeline import executors
from convs2s.pipeline.executors import (
    Tries,
    count_tries,
    keep_unanswered_jobs,
    record_no_failures,
)
from convs2s.training.state_folder import STATE, StateFolder

LATER = itertools.count(4_000_000_000)  # seconds since 1970


@dataclass
class Rule:
    name: str = "train_model"


@dataclass(eq=False)
class Job:
    """A job of Snakemake's as far as it is asked here."""

    output: list[str]
    restart_times: int = 2
    attempt: int = 1
    rule: Rule = field(default_factory=Rule)
    is_local: bool = False

    def is_group(self) -> bool:
        return False

    def fails(self, tries: Tries, submitted: bool = True) -> bool:
        """Fail as Snakemake's scheduler has it; whether the job starts again."""
        if submitted:
            tries.note_submission(self)
        tries.count(self)
        again = self.restart_times > self.attempt - 1
        self.attempt += again
        return again


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job([str(tmp_path / "model.safetensors")])


def save(job: Job) -> None:
    """Write a state, as a training does after an update."""
    state = StateFolder(Path(job.output[0]).parent / STATE, {}).last
    state.parent.mkdir(parents=True, exist_ok=True)
    state.touch()
    moment = next(LATER)
    os.utime(state, (moment, moment))


def test_a_training_with_progress_starts_again_without_limit_and_as_it_was(job: Job) -> None:
    tries = Tries("train_model")
    for _ in range(10):
        save(job)
        assert job.fails(tries)
        assert job.attempt == 1


def test_three_starts_in_a_row_without_progress_are_the_end(job: Job) -> None:
    tries = Tries("train_model")
    save(job)
    assert job.fails(tries)
    assert [job.fails(tries) for _ in range(3)] == [True, True, False]
    assert [Job(job.output).fails(Tries("train_model")) for _ in range(2)] == [True, True]


def test_progress_at_the_last_try_gives_three_more_with_no_more_memory_than_it_had(
    job: Job,
) -> None:
    tries, attempts = Tries("train_model"), []
    for saves in [False, False, True, False, False, True, False, False, False]:
        if saves:
            save(job)
        again = job.fails(tries)
        attempts.append(job.attempt)
    assert not again
    assert attempts == [2, 3, 3, 3, 3, 3, 3, 3, 3]


def test_what_was_saved_before_the_run_is_no_progress(job: Job) -> None:
    folder = Path(job.output[0]).parent / STATE / "digest"
    folder.mkdir(parents=True)
    (folder / "last.safetensors").touch()
    tries = Tries("train_model")
    assert [job.fails(tries) for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize("changes", [{"rule": Rule("decode_test_set")}, {"restart_times": 0}])
def test_other_jobs_are_left_to_snakemake(job: Job, changes: dict[str, object]) -> None:
    other = Job(job.output, **changes)  # type: ignore[arg-type]
    tries, starts = Tries("train_model"), 0
    while True:
        save(job)
        if not other.fails(tries):
            break
        starts += 1
    assert starts == other.restart_times


@pytest.mark.parametrize("rule", ["train_model", "decode_test_set"])
def test_a_job_that_was_not_submitted_asks_for_no_more(job: Job, rule: str) -> None:
    job.rule, tries = Rule(rule), Tries("train_model")
    tries.note_submission(Job([], is_local=True))
    assert [job.fails(tries, submitted=False) for _ in range(3)] == [True, True, False]
    job.attempt = 1
    assert job.fails(tries)
    for _ in range(2):
        assert job.fails(tries, submitted=False)
        assert job.attempt == 2
    assert job.fails(tries)
    assert job.attempt == 3
    again = [job.fails(tries, submitted=False) for _ in range(executors._REFUSALS + 1)]
    assert again == [True] * executors._REFUSALS + [False]


@dataclass
class Scheduler:
    """Snakemake's, and what it is told, as far as it is asked here."""

    told: list[tuple[str, Job]] = field(default_factory=list)
    submit_callback: Callable[[Job], None] = field(init=False)
    error_callback: Callable[[Job], None] = field(init=False)

    def __post_init__(self) -> None:
        self.submit_callback = lambda job: self.told.append(("submitted", job))
        self.error_callback = lambda job: self.told.append(("failed", job))


def test_snakemake_tells_of_submissions_and_failures(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, waited = Scheduler(), []

    class Timer(threading.Timer):
        def start(self) -> None:
            waited.append(self.interval)
            self.function(*self.args)

    monkeypatch.setattr(threading, "Timer", Timer)
    count_tries(scheduler, "a rule of this test")
    scheduler.error_callback(job)  # it could not be submitted, and none could before
    assert (job.attempt, waited) == (0, [])
    scheduler.submit_callback(job)
    scheduler.error_callback(job)
    assert (job.attempt, waited) == (0, [])
    assert scheduler.told == [("failed", job), ("submitted", job), ("failed", job)]
    scheduler.error_callback(job)
    assert (job.attempt, waited) == (-1, [60.0])


def test_the_record_of_a_failed_job_stays_as_it_was(job: Job) -> None:
    recorded = []

    class Records:
        async def finished(self, job: Job) -> None:
            recorded.append(job)

    class Jobs(Job):
        async def postprocess(self, *, error: bool = False) -> None:
            await Records().finished(self)

    for _ in range(2):  # as a module is read once for each of its `use rule`
        record_no_failures(Jobs, Records)
    failed, other = Jobs(job.output), Jobs(job.output)
    asyncio.run(failed.postprocess(error=True))
    asyncio.run(other.postprocess())
    assert recorded == [other]
    asyncio.run(failed.postprocess())
    assert recorded == [other, failed]


def test_a_job_is_kept_while_slurm_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = pytest.importorskip("snakemake_executor_plugin_slurm")
    for name in ("squeue", "sacct", "scontrol"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(plugin, "query_job_status", plugin.query_job_status)
    keep_unanswered_jobs()
    settings = SimpleNamespace(
        status_command="squeue", status_attempts=2, init_seconds_before_status_checks=20
    )
    executor: Any = SimpleNamespace(
        workflow=SimpleNamespace(executor_settings=settings),
        logger=logging.getLogger("executor"),
        get_status_command=lambda: "squeue",
        run_uuid="run",
        status_rate_limiter=nullcontext(),
        next_seconds_between_status_checks=20,
        _status_query_calls=0,
        _status_query_total_seconds=0.0,
        _status_query_min_seconds=None,
        _status_query_max_seconds=0.0,
        _status_query_failures=0,
        _status_query_cycle_rows=[],
    )
    job = SimpleNamespace(external_jobid="7", aux={})

    async def kept() -> list[object]:
        return [each async for each in plugin.Executor.check_active_jobs(executor, [job])]

    assert subprocess.run(["squeue"], check=False).returncode == 1
    assert asyncio.run(kept()) == [job]
    assert "Slurm does not answer: sacct failed; the jobs are kept" in caplog.text


def test_a_job_that_somebody_has_cancelled_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sacct says who, and the plugin knows no such state."""
    plugin = pytest.importorskip("snakemake_executor_plugin_slurm")

    async def answer(command: str, logger: object) -> tuple[dict[str, str], float]:
        return {"7": "CANCELLED by 1000", "8": "OUT_OF_MEMORY"}, 0.0

    monkeypatch.setattr(plugin, "query_job_status", answer)
    keep_unanswered_jobs()
    states, _ = asyncio.run(plugin.query_job_status("sacct", None))
    assert states == {"7": "CANCELLED", "8": "OUT_OF_MEMORY"}


def test_a_job_that_stays_preempted_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm queues it again at once, or never."""
    plugin = pytest.importorskip("snakemake_executor_plugin_slurm")
    states = ["RUNNING", "PREEMPTED", "PENDING", "PREEMPTED", "PREEMPTED", "PREEMPTED"]

    async def answer(command: str, logger: object) -> tuple[dict[str, str], float]:
        return {"7": states.pop(0)}, 0.0

    monkeypatch.setattr(plugin, "query_job_status", answer)
    keep_unanswered_jobs()
    expected = [*states[:-1], "CANCELLED"]
    asked = [asyncio.run(plugin.query_job_status("sacct", None))[0] for _ in expected]
    assert asked == [{"7": state} for state in expected]
